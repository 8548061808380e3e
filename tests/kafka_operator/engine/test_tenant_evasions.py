"""Ways around the rules for other namespaces, each tried on the whole engine over fakes and virtual time."""

from __future__ import annotations

from typing import Any

import pytest

from reconciler.names import PAUSE
from tests.kafka_operator.makers import raw_plan, raw_reassignment, raw_topic
from tests.kafka_operator.tenants import TEAM, allow, move_key, state_of, tenant_move, tenant_topic, topic_key
from tests.kafka_operator.topics import ORDERS
from tests.kafka_operator.world import running
from tests.reconciler.gate import Gate
from tests.reconciler.virtual_time import in_virtual_time, run_virtually

RULE = {"namespaces": [TEAM], "topicNames": ["${namespace}.*", "orders"]}
OWN = move_key("move", "shop")


@pytest.mark.parametrize("kill_at", [None, *range(20, 140, 12)])
def test_fifty_topics_at_once_and_a_killed_operator_do_not_exceed_a_quota(kill_at: int | None) -> None:
    """The note at the Cluster is written before the topics are created."""

    async def scenario() -> None:
        async with running(Gate(kill_at=kill_at, after=True)) as world:
            allow(world, {"namespaces": [TEAM], "maxTopics": 3})
            for number in range(50):
                world.kube.apply(tenant_topic(f"t{number}", deletionPolicy="Retain"))
            await world.run(20)
            for number in range(50):
                world.kube.delete(topic_key(f"t{number}"))
            await world.run(20)
            for number in range(50, 60):
                world.kube.apply(tenant_topic(f"t{number}"))
            await world.run(20)

            assert len(world.kafka.topics) == 3

    run_virtually(scenario())


@in_virtual_time
async def test_a_second_topic_for_the_same_kafka_topic_and_a_larger_one_of_its_name_count_what_kafka_has() -> None:
    """Two names for one topic count once, and growth under another resource counts like growth."""
    async with running() as world:
        allow(world, {"namespaces": [TEAM], "maxTopics": 1, "maxPartitions": 8})
        world.kube.apply(tenant_topic("a", deletionPolicy="Retain"))
        await world.until(lambda: world.kube.ready(topic_key("a"))[0] == "True")
        world.kube.apply(tenant_topic("b", topicName="a"))
        await world.until(lambda: world.kube.ready(topic_key("b"))[1] == "Conflict")
        world.kube.delete(topic_key("a"))
        await world.until(lambda: world.kube.ready(topic_key("b"))[0] == "True")
        world.kube.apply(tenant_topic("b", topicName="a", partitions=60))
        await world.until(lambda: world.kube.ready(topic_key("b"))[1] == "QuotaExceeded")
        await world.run(10)

        assert len(world.kafka.topics["a"].replicas) == 6


@in_virtual_time
async def test_a_topics_own_throttle_stays_within_the_rule_too() -> None:
    """A Topic whose replication factor changes has a Reassignment with the throttle that the Topic declares."""
    async with running() as world:
        world.kafka.move_s = 100
        allow(world, RULE)
        await world.run(1)
        slow = {"throttle": {"bytesPerSecond": 1}}
        world.kube.apply(tenant_topic("t", topicName="team-a.t", replicationFactor=2, **slow))
        await world.until(lambda: world.kube.ready(topic_key("t"))[0] == "True")
        world.kube.apply(tenant_topic("t", topicName="team-a.t", replicationFactor=3, **slow))
        await world.until(lambda: len(world.kafka.moves) > 0)

        rates = {rate for config in world.kafka.broker_configs.values() for rate in config.values()}
        assert rates == {"1000000"}


@in_virtual_time
async def test_a_move_that_is_paused_before_it_began_keeps_no_partition_from_the_owner() -> None:
    """Nor does it touch the partition when it is resumed."""
    async with running() as world:
        world.kafka.add("orders", [(1, 2, 3)])
        allow(world, RULE)
        await world.run(1)
        world.kube.apply(tenant_move("squat", plan=raw_plan(p0=[2, 3, 4]), throttle={"bytesPerSecond": 1}))
        squat = move_key("squat")
        await world.until(lambda: state_of(world, squat) == "Pending")
        world.kube.annotate(squat, PAUSE, "true")
        await world.run(3)
        world.kube.apply(raw_reassignment(plan=raw_plan(p0=[3, 4, 1])))
        await world.until(lambda: state_of(world, OWN) == "Completed")
        world.kube.annotate(squat, PAUSE, None)
        await world.until(lambda: state_of(world, squat) == "Failed")

        assert world.kafka.topics["orders"].replicas == [(3, 4, 1)]


@in_virtual_time
async def test_a_move_that_waits_keeps_no_partition_from_the_owner() -> None:
    """A canary that is never approved, or a window that is years away, must not block the owner's moves."""
    async with running() as world:
        world.kafka.add("orders", [(1, 2, 3)] * 2)
        allow(world, RULE)
        await world.run(1)
        canary = {"partitions": 1, "soakSeconds": 0}
        squat = move_key("squat")
        plan = raw_plan(p0=[2, 3, 4], p1=[2, 3, 4])
        world.kube.apply(tenant_move("squat", plan=plan, canary=canary))
        await world.until(lambda: world.kube.ready(squat)[1] == "CanaryApprovalRequired")
        world.kube.apply(raw_reassignment(plan=raw_plan(p1=[3, 4, 1])))
        await world.until(lambda: state_of(world, OWN) == "Completed")
        digest = world.kube.objects[squat]["status"]["digest"]
        world.kube.apply(tenant_move("squat", plan=plan, canary={**canary, "approvedDigest": digest}))
        await world.until(lambda: state_of(world, squat) == "Failed")

        assert world.kafka.topics["orders"].replicas == [(2, 3, 4), (3, 4, 1)]


@in_virtual_time
async def test_a_malformed_status_stops_no_other_resource() -> None:
    """One resource whose status cannot be worked with fails alone; others of its Cluster go on."""
    async with running() as world:
        world.kafka.add("orders", [(1, 2, 3)])
        world.kafka.add("team-a.t", [(1, 2, 3)])
        allow(world, RULE)
        await world.run(1)
        world.kube.apply(tenant_move("bad", plan=raw_plan("team-a.t", p0=[2, 3, 4]), approval="Required"))
        bad = move_key("bad")
        await world.until(lambda: state_of(world, bad) == "Proposed")
        status: dict[str, Any] = dict(world.kube.objects[bad]["status"])
        throttle = {"bytesPerSecond": 1, "rates": [], "brokers": [{"id": 1}]}
        world.kube.forge(bad, {**status, "state": "Running", "base": [], "throttle": throttle})
        await world.run(5)
        world.kube.apply(raw_reassignment(plan=raw_plan(p0=[3, 4, 1]), throttle={"bytesPerSecond": 5000}))
        await world.until(lambda: state_of(world, OWN) == "Completed")

        assert world.kafka.topics["team-a.t"].replicas == [(1, 2, 3)]


@in_virtual_time
async def test_a_forged_topic_id_takes_no_topic_that_the_namespace_may_not_name() -> None:
    """status.topicId names the Kafka topic of a Topic; it is no permission of its namespace."""
    async with running() as world:
        world.kafka.add("ledger", [(1, 2, 3)] * 6)
        allow(world, RULE)
        await world.run(1)
        raw = tenant_topic("ledger", partitions=12)
        world.kube.apply(raw)
        key = topic_key("ledger")
        await world.until(lambda: world.kube.ready(key)[1] == "NameNotAllowed")
        world.kube.forge(
            key, {"topicId": world.kafka.topics["ledger"].topic_id, "partitions": 6, "observedGeneration": 1}
        )
        await world.run(5)
        world.kube.delete(key)
        await world.run(10)

        assert len(world.kafka.topics["ledger"].replicas) == 6


@in_virtual_time
async def test_an_older_topic_of_a_namespace_whose_right_is_gone_keeps_no_name_from_the_owner() -> None:
    """Its Topic stays, and owns nothing any more."""
    async with running() as world:
        allow(world, RULE)
        world.kube.apply(tenant_topic("orders"))
        await world.until(lambda: world.kube.ready(topic_key("orders"))[0] == "True")
        allow(world)
        world.kube.apply(raw_topic())
        await world.until(lambda: world.kube.ready(ORDERS)[0] == "True")

        assert world.kube.ready(topic_key("orders"))[1] == "NotAllowed"


@in_virtual_time
async def test_an_unapproved_goal_of_another_namespace_delays_no_automatic_rebalance() -> None:
    """One Reassignment goes on at a time, and that is the owner's when the other one moves nothing; one without a right never counts."""
    async with running() as world:
        world.kafka.broker_ids = (1, 2, 3)
        world.kafka.add("orders", [(1, 2, 3)] * 6)
        world.kafka.add("team-a.t", [(1, 2)])
        automatic = {"onBrokersAdded": True, "approval": "Automatic"}
        allow(world, RULE, autoRebalance=automatic)
        await world.run(60)
        goal = {"replicationFactor": 3, "topics": ["team-a.t"]}
        for namespace in (TEAM, "stranger"):
            world.kube.apply(tenant_move("idle", namespace, goal=goal))
        await world.until(lambda: state_of(world, move_key("idle")) == "Proposed")
        world.kafka.broker_ids = (1, 2, 3, 4)
        made = move_key("main-auto-1", "shop")
        await world.until(lambda: made in world.kube.objects and state_of(world, made) == "Completed", 300)

        assert state_of(world, move_key("idle")) == "Proposed"

"""Plans from ConfigMaps and from goals, with approval: over fakes and virtual time."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from kafka_operator import kinds
from kafka_operator.decide.plans.plan_document import digest_of
from kafka_operator.decide.plans.plan_packing import INLINE_PARTITIONS
from kafka_operator.decide.reassignments import plan_preparation
from kafka_operator.resources.reassignment import Assignment, Partition
from reconciler.names import Key
from tests.kafka_operator.engine.test_throttles import orders, status
from tests.kafka_operator.makers import assignments, raw_plan, raw_reassignment
from tests.kafka_operator.plans import raw_config_map
from tests.kafka_operator.world import running
from tests.reconciler.virtual_time import in_virtual_time, run_virtually

MOVE = Key(kinds.REASSIGNMENT, "shop", "move")
TARGET = assignments(p0=(2, 3, 4), p1=(3, 4, 2), p2=(4, 2, 3))
PLAN = raw_plan(p0=[2, 3, 4], p1=[3, 4, 2], p2=[4, 2, 3])
AT_BASE = [(1, 2, 3)] * 3
ARRIVED = [(2, 3, 4), (3, 4, 2), (4, 2, 3)]


def plan_from(*names: str, digest: str | None = None) -> dict[str, Any]:
    """`spec.planFrom`."""
    return {"planFrom": {"configMaps": list(names), "digest": digest or digest_of(TARGET)}}


@in_virtual_time
async def test_a_plan_in_config_maps_is_carried_out() -> None:
    """Its digest is shown; a small one is readable in the status."""
    async with running() as world:
        await orders(world)
        world.kube.config_maps["shop", "a"] = raw_config_map("a", TARGET[:2], packed=True)
        world.kube.config_maps["shop", "b"] = raw_config_map("b", TARGET[2:])
        world.kube.apply(raw_reassignment(**plan_from("a", "b")))

        await world.until(lambda: status(world).get("state") == "Completed", seconds=60)

        assert world.kafka.topics["orders"].replicas == ARRIVED
        assert digest_of(TARGET) == status(world)["planDigest"]
        assert len(status(world)["plan"]) == 3


TROUBLES = [
    (("gone",), None, {}, "ConfigMapNotFound", "no ConfigMap gone"),
    (("a",), f"sha256:{'0' * 64}", {}, "DigestDiffers", "spec.planFrom.digest is sha256:000"),
    (("a",), None, {"clusterId": "another"}, "AnotherCluster", "computed for cluster another"),
]


@pytest.mark.parametrize(("names", "digest", "more", "reason", "message"), TROUBLES, ids=lambda value: str(value)[:20])
def test_a_plan_that_is_not_what_it_should_be_moves_nothing(
    names: tuple[str, ...], digest: str | None, more: dict[str, Any], reason: str, message: str
) -> None:
    """A ConfigMap gone, a digest that does not match, a plan of another cluster: what it is and what to do."""

    async def story() -> None:
        async with running() as world:
            await orders(world)
            world.kube.config_maps["shop", "a"] = raw_config_map("a", TARGET, **more)
            meant = digest or digest_of(TARGET, cluster_id=more.get("clusterId"))
            world.kube.apply(raw_reassignment(**plan_from(*names, digest=meant)))
            await world.run(60)
            assert world.kube.ready(MOVE)[:2] == ("False", reason)
            assert message in world.kube.ready(MOVE)[2]
            assert "No replica was moved." in world.kube.ready(MOVE)[2]
            assert status(world)["state"] == "Failed"
            assert world.kafka.submitted == []

    run_virtually(story())


@in_virtual_time
async def test_a_config_map_that_comes_in_the_same_breath_is_waited_for() -> None:
    """Kubectl apply -f of a folder."""
    async with running() as world:
        await orders(world)
        world.kube.apply(raw_reassignment(**plan_from("a")))
        await world.run(5)
        assert world.kube.ready(MOVE)[:2] == ("False", "ConfigMapNotFound")
        world.kube.config_maps["shop", "a"] = raw_config_map("a", TARGET)

        await world.until(lambda: status(world).get("state") == "Completed", seconds=60)


@in_virtual_time
async def test_a_large_plan_is_kept_in_config_maps_that_go_with_it() -> None:
    """Objects stay small; what is kept cannot be changed, and is owned."""
    async with running() as world:
        count = INLINE_PARTITIONS + 1
        world.kafka.move_s = 0.01
        await orders(world, partitions=count)
        plan = tuple(Assignment(Partition("orders", index), (2, 3, 4)) for index in range(count))
        world.kube.config_maps["shop", "a"] = raw_config_map("a", plan, packed=True)
        world.kube.apply(
            raw_reassignment(**plan_from("a", digest=digest_of(plan)), concurrency={"perBroker": 1000, "cluster": 2000})
        )

        await world.until(lambda: status(world).get("state") == "Completed", seconds=120)

        assert "plan" not in status(world)
        (name,) = status(world)["stored"]["configMaps"]
        kept = world.kube.config_maps["shop", name]
        assert kept["immutable"] is True
        owner = {"apiVersion": "steward.dev/v1alpha1", "kind": "Reassignment", "name": "move"}
        assert kept["metadata"]["ownerReferences"][0] == owner | {"uid": world.kube.objects[MOVE]["metadata"]["uid"]}
        assert set(world.kafka.topics["orders"].replicas) == {(2, 3, 4)}

        world.kube.apply(
            raw_reassignment(**plan_from("a", digest=digest_of(plan)), action="Rollback")
            | {"spec": world.kube.objects[MOVE]["spec"] | {"action": "Rollback"}}
        )
        await world.until(lambda: status(world).get("state") == "RolledBack", seconds=120)
        assert set(world.kafka.topics["orders"].replicas) == {(1, 2, 3)}


def test_a_plan_or_base_that_is_missing_or_changed_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without them nothing is moved, and nothing is guessed."""
    monkeypatch.setattr(plan_preparation, "INLINE_PARTITIONS", 1)

    async def story() -> None:
        async with running() as world:
            world.kafka.move_s = 500
            await orders(world)
            world.kube.apply(raw_reassignment(plan=PLAN))
            await world.until(lambda: bool(world.kafka.moves), seconds=30)
            (name,) = status(world)["stored"]["configMaps"]
            kept = world.kube.config_maps.pop(("shop", name))
            await world.kill()
            world.start()
            await world.run(5)
            assert world.kube.ready(MOVE)[:2] == ("Unknown", "PlanLost")
            world.kube.config_maps["shop", name] = kept
            await world.until(lambda: world.kube.ready(MOVE)[1] == "Running", seconds=150)

    run_virtually(story())


@pytest.mark.shows("F10")
@in_virtual_time
async def test_a_goal_is_proposed_with_figures_and_waits_for_its_digest() -> None:
    """Features row 10-12: reviewed, approved by digest, executed as approved."""
    async with running() as world:
        await orders(world)
        world.kube.apply(raw_reassignment(goal={"removeBrokers": [1]}))
        await world.run(10)
        assert status(world)["state"] == "Proposed"
        assert world.kube.ready(MOVE)[:2] == ("False", "ApprovalRequired")
        proposal = status(world)["proposal"]
        assert (
            proposal["partitions"],
            proposal["bytesToMove"],
            proposal["lowerBoundBytes"],
        ) == (3, 3_000_000, 3_000_000)
        shown = {item["id"]: item for item in proposal["brokers"]}
        assert tuple(
            shown[1][key]
            for key in ("replicasBefore", "replicasAfter", "leadersBefore", "leadersAfter", "bytesBefore", "bytesAfter")
        ) == (3, 0, 3, 0, 3_000_000, 0)
        assert shown[4]["replicasAfter"] == 3
        assert world.kafka.topics["orders"].replicas == AT_BASE
        plan = status(world)["plan"]

        world.kube.apply(raw_reassignment(goal={"removeBrokers": [1]}, approvedDigest=f"sha256:{'1' * 64}"))
        await world.run(2)
        assert world.kube.ready(MOVE)[:2] == ("False", "ApprovalDiffers")
        world.kube.apply(raw_reassignment(goal={"removeBrokers": [1]}, approvedDigest=status(world)["digest"]))
        await world.until(lambda: status(world)["state"] == "Completed", seconds=60)

        assert plan == status(world)["plan"]
        assert [tuple(entry["replicas"]) for entry in plan] == world.kafka.topics["orders"].replicas


@pytest.mark.shows("F12", "E1")
@in_virtual_time
async def test_a_base_that_drifted_asks_for_approval_again() -> None:
    """Features (e) 1: another proposal, another digest, the old approval void."""
    async with running() as world:
        await orders(world)
        world.kube.apply(raw_reassignment(goal={"removeBrokers": [1]}))
        await world.run(5)
        old = status(world)["digest"]
        world.kafka.topics["orders"].replicas[0] = (4, 3, 1)
        world.kube.apply(raw_reassignment(goal={"removeBrokers": [1]}, approvedDigest=old))
        await world.run(5)
        assert status(world)["state"] == "Proposed"
        assert world.kube.ready(MOVE)[:2] == ("False", "BaseDrifted")
        assert old != status(world)["digest"]
        assert world.kafka.submitted == []

        world.kube.apply(raw_reassignment(goal={"removeBrokers": [1]}, approvedDigest=status(world)["digest"]))
        await world.until(lambda: status(world)["state"] == "Completed", seconds=60)

        assert all(1 not in replicas for replicas in world.kafka.topics["orders"].replicas)


@in_virtual_time
async def test_an_exact_plan_can_be_asked_to_wait_and_a_goal_not_to() -> None:
    """approval, either way."""
    async with running() as world:
        await orders(world)
        world.kube.apply(raw_reassignment(plan=PLAN, approval="Required"))
        world.kafka.add("other", [(1,)])
        goal = {"replicationFactor": 3, "topics": ["other"]}
        world.kube.apply(raw_reassignment("factor", goal=goal, approval="Automatic"))
        await world.run(30)
        assert status(world)["state"] == "Proposed"
        assert world.kafka.topics["orders"].replicas == AT_BASE
        assert status(world, Key(kinds.REASSIGNMENT, "shop", "factor"))["state"] == "Completed"
        assert len(set(world.kafka.topics["other"].replicas[0])) == 3
        assert world.kafka.topics["other"].replicas[0][0] == 1


@pytest.mark.shows("E10")
@in_virtual_time
async def test_a_plan_under_a_limit_of_bytes_is_the_first_part_and_lists_the_rest() -> None:
    """Features (e) 10: a budget in addition to the bound; the same goal once more continues from there."""
    async with running() as world:
        await orders(world)
        goal = {"removeBrokers": [1], "maxBytesMoved": "2.5M"}
        world.kube.apply(raw_reassignment(goal=goal))
        await world.until(lambda: status(world).get("state") == "Proposed", seconds=30)
        proposal = status(world)["proposal"]
        assert (
            proposal["partitions"],
            proposal["bytesToMove"],
            proposal["lowerBoundBytes"],
        ) == (2, 2_000_000, 3_000_000)
        assert proposal["leftOut"] == {"partitions": 1, "bytesToMove": 1_000_000}
        assert "goal.maxBytesMoved excludes 1 more with 976.5KiB" in world.kube.ready(MOVE)[2]
        assert "broker 1 still holds 1 replicas: the budget is used up" in proposal["unreached"][0]

        world.kube.apply(raw_reassignment(goal=goal, approvedDigest=status(world)["digest"]))
        await world.until(lambda: status(world)["state"] == "Completed", seconds=60)
        world.kube.apply(raw_reassignment("rest", goal=goal, approval="Automatic"))
        rest = Key(kinds.REASSIGNMENT, "shop", "rest")
        await world.until(lambda: status(world, rest).get("state") == "Completed", seconds=60)

        assert all(1 not in replicas for replicas in world.kafka.topics["orders"].replicas)


@in_virtual_time
async def test_topics_that_are_excluded_stay_where_they_are() -> None:
    """And count for nothing: the goal is reached without them."""
    async with running() as world:
        await orders(world)
        world.kafka.add("ledger", [(1, 2, 3)])
        goal = {"removeBrokers": [1], "excludedTopics": ["ledger"]}
        world.kube.apply(raw_reassignment(goal=goal, approval="Automatic"))
        await world.until(lambda: status(world).get("state") == "Completed", seconds=60)

        assert world.kafka.topics["ledger"].replicas == [(1, 2, 3)]
        assert all(1 not in replicas for replicas in world.kafka.topics["orders"].replicas)


@in_virtual_time
async def test_a_limit_of_bytes_needs_to_know_them() -> None:
    """Without sizes a limit would be kept by chance."""
    async with running() as world:
        await orders(world)
        world.kafka.silent = {1, 2, 3, 4}
        world.kube.apply(raw_reassignment(goal={"removeBrokers": [1], "maxBytesMoved": 5}))
        await world.run(5)
        assert world.kube.ready(MOVE)[:2] == ("False", "SizesUnknown")


GOALS = [
    ({"removeBrokers": [1], "maxBytesMoved": 999_999}, "NoRoomInLimit"),
    ({"removeBrokers": [1, 2]}, "NotEnough"),
    ({"addBrokers": [9]}, "UnknownBroker"),
    ({"removeBrokers": [9]}, "UnknownBroker"),
    ({"removeBrokers": [1, 2, 3, 4]}, "NotEnoughBrokers"),
    ({"replicationFactor": 5}, "NotEnoughBrokers"),
    ({"racks": True, "topics": ["nope"]}, "UnknownTopic"),
]


@pytest.mark.parametrize(("goal", "reason"), GOALS, ids=lambda value: str(value)[:40])
def test_a_goal_that_cannot_be_reached_is_reported_with_its_reason(goal: dict[str, Any], reason: str) -> None:
    """A reason, or a proposal that lists what it does not reach; nothing moves."""

    async def story() -> None:
        async with running() as world:
            await orders(world)
            world.kube.apply(raw_reassignment(goal=goal))
            await world.run(60)
            assert world.kafka.submitted == []
            if reason == "NotEnough":
                assert any("too few brokers" in message for message in status(world)["proposal"]["unreached"])
            else:
                assert world.kube.ready(MOVE)[:2] == ("False", reason)

    run_virtually(story())


@in_virtual_time
async def test_a_broker_that_is_away_is_not_emptied_by_a_goal_about_something_else() -> None:
    """It restarts; what it holds stays its own."""
    async with running() as world:
        await orders(world)
        world.kafka.broker_ids = (1, 2, 4)
        world.kube.apply(raw_reassignment(goal={"rebalance": True}))
        await world.run(5)
        assert world.kube.ready(MOVE)[:2] == ("False", "BrokerOffline")
        world.kafka.broker_ids = (1, 2, 3, 4)

        await world.until(lambda: status(world)["state"] == "Proposed", seconds=30)


@in_virtual_time
async def test_a_goal_that_is_reached_already_completes() -> None:
    """O2: nothing to approve, nothing to move."""
    async with running() as world:
        await orders(world)
        world.kube.apply(raw_reassignment(goal={"removeBrokers": [4]}))
        await world.until(lambda: status(world).get("state") == "Completed", seconds=20)
        assert world.kafka.submitted == []


@in_virtual_time
async def test_a_tenant_moves_no_topic_that_is_not_its_own() -> None:
    """Cluster.spec.allowedNamespaces holds for Reassignments too, and all topics are for the Cluster's own namespace."""
    async with running() as world:
        await orders(world)
        cluster = {"name": "main", "namespace": "shop"}
        for name, spec in {"exact": {"plan": PLAN}, "all": {"goal": {"rebalance": True}}}.items():
            raw = raw_reassignment(name, **spec)
            raw["metadata"]["namespace"] = "tenant"
            raw["spec"]["clusterRef"] = cluster
            world.kube.apply(raw)
        await world.run(60)
        for name in ("exact", "all"):
            assert world.kube.ready(Key(kinds.REASSIGNMENT, "tenant", name))[1] == "NotAllowed"
        assert world.kafka.submitted == []


@pytest.mark.slow
@pytest.mark.shows("E12")
def test_the_calls_that_begin_a_plan_do_not_depend_on_the_size_of_the_plan() -> None:
    """P8: the base is kept, ten moves begin, and no object grows with the plan; `bench.resources.plan_start` measures the time."""

    async def calls(topics: int) -> Counter[str]:
        async with running() as world:
            partitions = [Partition(f"topic-{number:04}", index) for number in range(topics) for index in range(20)]
            target = [Assignment(partition, (2, 3, 4)) for partition in partitions]
            for number in range(topics):
                world.kafka.add(f"topic-{number:04}", [(1, 2, 3)] * 20)
            world.kafka.move_s = 10_000
            await world.run(1)
            half = len(target) // 2
            world.kube.config_maps["shop", "a"] = raw_config_map("a", target[:half], packed=True)
            world.kube.config_maps["shop", "b"] = raw_config_map("b", target[half:], packed=True)
            before = len(world.gate.calls)
            world.kube.apply(raw_reassignment(**plan_from("a", "b", digest=digest_of(target))))
            await world.until(lambda: bool(world.kafka.moves), seconds=30)
            assert len(world.kafka.moves) == 10
            assert max(len(str(held)) for held in world.kube.objects.values()) < 20_000
            # Names contain the plan's digest; sizes of replicas are read at regular times.
            made = Counter(call.partition(" shop/")[0] for call in world.gate.calls[before:])
            del made["kafka describe_log_dirs"]
            return made

    of_1_000, of_10_000 = run_virtually(calls(50)), run_virtually(calls(500))

    assert of_10_000 == of_1_000
    assert of_1_000["kube create ConfigMap"] == 1

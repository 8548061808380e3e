"""Topics observed, adopted, paused, checked before and mended, over fakes and virtual time."""

from __future__ import annotations

import pytest

from kafka_operator import kinds
from kafka_operator.names import ADOPT
from reconciler.names import PAUSE, Key
from tests.kafka_operator.makers import raw_topic
from tests.kafka_operator.topics import ORDERS, key, settled_topic
from tests.kafka_operator.world import RESYNC_S, World, running
from tests.reconciler.virtual_time import in_virtual_time

CHANGES = ("kafka create", "kafka grow", "kafka alter", "kafka delete")


def changes(world: World) -> int:
    """How many calls have changed something in Kafka."""
    return sum(world.gate.count(name) for name in CHANGES)


def events(world: World) -> list[str]:
    """The reasons of the events about Topic `orders`."""
    return [event.reason for event in world.kube.events if event.key == ORDERS]


@pytest.mark.shows("F8", "F9")
@in_virtual_time
async def test_a_topic_that_observes_writes_one_status_and_nothing_in_kafka() -> None:
    """F8: a drift is reported once, in any number of resyncs; new drift is reported at the next resync."""
    async with running() as world:
        world.kafka.add("orders", [(1, 2, 3)] * 4, retention_ms="9")
        world.kube.apply(raw_topic(policy="Observe", config={"retention.ms": "1", "no.such": "1"}))
        await world.run(2)
        assert "would reject the declared state: Unknown topic config name: no.such" in world.kube.ready(ORDERS)[2]
        world.kube.apply(raw_topic(policy="Observe", config={"retention.ms": "1"}))
        await world.run(2 * RESYNC_S)

        assert changes(world) == 0
        assert world.kube.writes.count(str(ORDERS)) == 2
        assert events(world) == ["Drifted"]
        held = world.kube.objects[ORDERS]
        assert [item["field"] for item in held["status"]["drift"]] == ["partitions", "config.retention.ms"]
        world.core.gauges.refresh()
        assert world.metrics.registry.get_sample_value("steward_topics_drifted") == 1.0
        assert not held["metadata"].get("finalizers")
        world.kafka.topics["orders"].config["retention.ms"] = "1"
        await world.run(RESYNC_S + 5)
        assert [item["field"] for item in world.kube.objects[ORDERS]["status"]["drift"]] == ["partitions"]


@in_virtual_time
async def test_a_topic_that_only_observes_does_not_block_others() -> None:
    """It is older, but owns nothing; its deletion also keeps the Kafka topic."""
    async with running() as world:
        world.kube.apply(raw_topic("watching", topicName="orders", policy="Observe"))
        await world.run(2)
        await settled_topic(world)
        world.kube.touch(key("watching"))
        await world.until(lambda: world.kube.ready(key("watching"))[0] == "True")

        world.kube.delete(key("watching"))
        await world.run(5)

        assert key("watching") not in world.kube.objects
        assert "orders" in world.kafka.topics


@in_virtual_time
async def test_a_refusal_to_an_observing_topic_is_no_problem_of_the_owner() -> None:
    """Both in one batch; the owner's change is carried out."""
    async with running() as world:
        await settled_topic(world)
        world.kube.apply(raw_topic("watching", topicName="orders", policy="Observe", config={"no.such": "1"}))
        world.kube.apply(raw_topic(partitions=8))
        await world.until(lambda: world.kube.ready(ORDERS)[0] == "True" and bool(world.kube.ready(key("watching"))[0]))

        await world.until(lambda: len(world.kafka.topics["orders"].replicas) == 8)
        assert "would reject" in world.kube.ready(key("watching"))[2]


@in_virtual_time
async def test_a_topic_that_differs_waits_for_consent_and_then_costs_two_writes() -> None:
    """Features (e) 8."""
    async with running() as world:
        world.kafka.add("orders", [(1, 2, 3)] * 4)
        world.kube.apply(raw_topic())
        await world.until(lambda: world.kube.ready(ORDERS)[1] == "AdoptionPending")
        await world.run(2 * RESYNC_S)
        assert changes(world) == 0
        assert events(world) == ["AdoptionPending"]
        world.kube.writes.clear()

        world.kube.annotate(ORDERS, ADOPT, "true")
        await world.until(lambda: world.kube.ready(ORDERS)[0] == "True")

        assert len(world.kafka.topics["orders"].replicas) == 6
        assert world.kube.writes.count(str(ORDERS)) == 2
        assert events(world) == ["AdoptionPending", "Adopted"]


@in_virtual_time
async def test_drift_that_is_reverted_is_reported_once() -> None:
    """An event for each change from outside, none at any other poll; no write."""
    async with running() as world:
        await settled_topic(world, config={"retention.ms": "1"})
        for value in ("9", "8"):
            world.kafka.topics["orders"].config["retention.ms"] = value
            await world.run(2 * RESYNC_S)

        assert world.kafka.topics["orders"].config == {"retention.ms": "1"}
        assert events(world) == ["DriftReverted", "DriftReverted"]
        assert str(ORDERS) not in world.kube.writes


@in_virtual_time
async def test_drift_whose_reversal_is_visible_late_is_reported_once_too() -> None:
    """Kafka may show what was mended only later, and the effect is repeated until it does."""
    async with running() as world:
        await settled_topic(world)
        world.kafka.visible_after_s = 3.0
        del world.kafka.topics["orders"]

        await world.run(RESYNC_S + 10)

        assert world.kube.ready(ORDERS)[0] == "True"
        assert events(world) == ["TopicRecreated"]


@in_virtual_time
async def test_a_controller_that_knows_too_little_for_a_moment_changes_nothing() -> None:
    """A topic that is missing from one response is not created, and nothing is written or reported."""
    async with running() as world:
        await settled_topic(world)
        held = world.kafka.topics.pop("orders")
        world.kube.touch(ORDERS)
        await world.run(0.09)
        world.kafka.topics["orders"] = held
        await world.run(5)

        assert changes(world) == 0
        assert world.kube.writes == []
        assert events(world) == []


@in_virtual_time
async def test_a_topic_deleted_in_kafka_is_recreated_with_a_warning() -> None:
    """Its records are lost, which its user must know."""
    async with running() as world:
        await settled_topic(world)
        del world.kafka.topics["orders"]

        await world.run(RESYNC_S + 5)

        assert "orders" in world.kafka.topics
        assert events(world) == ["TopicRecreated"]
        assert world.kube.ready(ORDERS)[0] == "True"


@pytest.mark.shows("E13")
@in_virtual_time
async def test_a_change_is_made_completely_or_not_at_all() -> None:
    """The brokers check all of it before; partitions that are added can never be taken away."""
    async with running() as world:
        await settled_topic(world)
        world.kube.apply(raw_topic(partitions=9, config={"no.such": "1"}))
        await world.until(lambda: world.kube.ready(ORDERS)[1] == "InvalidConfig")

        assert len(world.kafka.topics["orders"].replicas) == 6
        assert world.gate.count("kafka grow_topics") == 0


@in_virtual_time
async def test_checks_are_batched_as_all_calls_are() -> None:
    """One CreateTopics with validate_only for what comes together; a bad one does not keep the others."""
    async with running() as world:
        await world.run(1)
        for index in range(100):
            world.kube.apply(raw_topic(f"t{index}", config={"no.such": "1"} if index == 50 else {}))
        await world.until(lambda: all(world.kube.ready(key(f"t{index}"))[0] for index in range(100)))

        assert len(world.kafka.topics) == 99
        assert world.gate.count("kafka validate_create_topics") <= 4


@in_virtual_time
async def test_a_paused_topic_is_left_as_it_is_and_goes_on_later() -> None:
    """Features 32: Ready is kept."""
    async with running() as world:
        await settled_topic(world)
        world.kube.annotate(ORDERS, PAUSE, "true")
        await world.run(2)
        world.kube.apply(raw_topic(partitions=8))
        del world.kafka.topics["orders"]
        await world.run(2 * RESYNC_S)

        assert world.kafka.topics == {}
        assert world.kube.ready(ORDERS)[0] == "True"
        assert world.kube.writes.count(str(ORDERS)) == 1
        world.kube.annotate(ORDERS, PAUSE, None)
        await world.until(lambda: len(world.kafka.topics["orders"].replicas) == 8 if world.kafka.topics else False)
        await world.run(2)
        assert [item["type"] for item in world.kube.objects[ORDERS]["status"]["conditions"]] == ["Ready"]


@in_virtual_time
async def test_a_foreign_finalizer_holds_the_kafka_topic_too() -> None:
    """Koperator #953: a user wants to do something first, e.g. copy the data."""
    async with running() as world:
        await settled_topic(world)
        world.kube.objects[ORDERS]["metadata"]["finalizers"].append("backup/one")
        world.kube.delete(ORDERS)
        await world.run(2 * RESYNC_S)

        assert "orders" in world.kafka.topics
        assert world.kube.ready(ORDERS)[:2] == ("False", "Deleting")
        assert "backup/one" in world.kube.ready(ORDERS)[2]
        world.kube.objects[ORDERS]["metadata"]["finalizers"].remove("backup/one")
        world.kube.touch(ORDERS)
        await world.until(lambda: ORDERS not in world.kube.objects)
        assert world.kafka.topics == {}


@pytest.mark.shows("E5")
@in_virtual_time
async def test_an_edited_replication_factor_makes_one_reassignment_that_the_topic_owns() -> None:
    """Features (e) 5; however often the Topic is polled in the meantime."""
    async with running() as world:
        await settled_topic(world)
        world.kube.apply(raw_topic(replicationFactor=2, throttle={"bytesPerSecond": 1000}))
        await world.run(0.5)

        (made,) = [held for found, held in world.kube.objects.items() if found.kind == kinds.REASSIGNMENT]
        assert made["spec"]["goal"] == {"replicationFactor": 2, "topics": ["orders"]}
        assert made["spec"]["throttle"] == {"bytesPerSecond": 1000}
        (owner,) = made["metadata"]["ownerReferences"]
        assert ("Topic", "orders", world.kube.objects[ORDERS]["metadata"]["uid"]) == (
            owner["kind"],
            owner["name"],
            owner["uid"],
        )
        world.kube.touch(ORDERS)
        await world.run(0.5)
        assert sum(found.kind == kinds.REASSIGNMENT for found in world.kube.objects) == 1
        assert Key(kinds.REASSIGNMENT, "shop", "orders-rf2-2") in world.kube.objects

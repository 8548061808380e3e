"""Topics from apply to Ready and through every change, over fakes and virtual time."""

from __future__ import annotations

import pytest

from kafka_operator.resources.reassignment import Partition
from reconciler.names import FINALIZER
from tests.kafka_operator.makers import raw_topic
from tests.kafka_operator.topics import ORDERS, key, settled_topic
from tests.kafka_operator.world import RESYNC_S, running
from tests.reconciler.virtual_time import in_virtual_time


@in_virtual_time
async def test_a_topic_is_ready_within_two_seconds_with_two_writes() -> None:
    """Ready within 2 s; at most 3 writes besides the create, 2 are enough (finalizer, status)."""
    async with running() as world:
        await world.run(1)
        world.kube.writes.clear()
        world.kube.apply(raw_topic(config={"retention.ms": "1000"}))

        took_s = await world.until(lambda: world.kube.ready(ORDERS)[0] == "True")

        assert took_s < 2
        await world.run(60)
        assert world.kube.writes == [str(ORDERS)] * 2
        assert len(world.kafka.topics["orders"].replicas) == 6
        assert world.kafka.topics["orders"].config == {"retention.ms": "1000"}
        assert world.kube.objects[ORDERS]["metadata"]["finalizers"] == [FINALIZER]
        status = world.kube.objects[ORDERS]["status"]
        assert (
            status["partitions"],
            status["replicationFactor"],
            status["topicName"],
            status["observedGeneration"],
        ) == (6, 3, "orders", 1)


@in_virtual_time
async def test_many_topics_are_one_admin_call() -> None:
    """Batched: one CreateTopics for what comes together."""
    async with running() as world:
        await world.run(1)
        for index in range(100):
            world.kube.apply(raw_topic(f"t{index}"))
        await world.until(lambda: all(world.kube.ready(key(f"t{index}"))[0] == "True" for index in range(100)))

        assert world.gate.count("kafka create_topics") <= 3
        assert len(world.kafka.topics) == 100


@in_virtual_time
async def test_one_bad_topic_does_not_spoil_the_batch() -> None:
    """Errors are for each topic; the broker's message is that of its Ready."""
    async with running() as world:
        world.kafka.broker_ids = (1, 2, 3)
        world.kube.apply(raw_topic("good"))
        world.kube.apply(raw_topic("bad-key", config={"no.such": "1"}))
        world.kube.apply(raw_topic("too-many", replicationFactor=4))
        await world.run(5)

        assert world.kube.ready(key("good"))[0] == "True"
        assert world.kube.ready(key("bad-key")) == ("False", "InvalidConfig", "Unknown topic config name: no.such")
        assert world.kube.ready(key("too-many")) == (
            "False",
            "NotEnoughBrokers",
            "Replication factor: 4 larger than available brokers: 3.",
        )


@pytest.mark.shows("O7")
@in_virtual_time
async def test_a_topic_that_fails_is_no_hot_loop() -> None:
    """O7: one status write for the failure, tries with growing distance, one event."""
    async with running() as world:
        world.kube.apply(raw_topic(config={"no.such": "1"}))
        await world.run(5)
        world.kube.writes.clear()
        world.gate.calls.clear()

        await world.run(600)

        assert str(ORDERS) not in world.kube.writes
        assert world.gate.count("kafka create_topics") <= 20
        assert [event.reason for event in world.kube.events] == ["InvalidConfig"]


@in_virtual_time
async def test_a_new_broker_wakes_those_that_waited_for_it() -> None:
    """NotEnoughBrokers ends soon after the broker came, not at the next resync."""
    async with running() as world:
        world.kafka.broker_ids = (1, 2)
        world.kube.apply(raw_topic())
        await world.until(lambda: world.kube.ready(ORDERS)[1] == "NotEnoughBrokers")
        await world.run(300)

        world.kafka.broker_ids = (1, 2, 3)

        assert await world.until(lambda: world.kube.ready(ORDERS)[0] == "True") < 15


@pytest.mark.shows("F3")
@in_virtual_time
async def test_partitions_grow_and_settings_change() -> None:
    """A changed spec: two writes at most (names of settings, status)."""
    async with running() as world:
        await settled_topic(world, config={"retention.ms": "1", "min.insync.replicas": "2"})

        world.kube.apply(raw_topic(partitions=8, config={"retention.ms": "2", "cleanup.policy": "compact"}))
        await world.run(3)

        assert len(world.kafka.topics["orders"].replicas) == 8
        assert world.kafka.topics["orders"].config == {"retention.ms": "2", "cleanup.policy": "compact"}
        assert (
            world.kube.ready(ORDERS)[0],
            world.kube.objects[ORDERS]["status"]["observedGeneration"],
        ) == ("True", 2)
        assert (
            world.kube.objects[ORDERS]["metadata"]["annotations"]["steward.dev/managed-config"]
            == "cleanup.policy,retention.ms"
        )
        assert len(world.kube.writes) <= 3


@in_virtual_time
async def test_nothing_is_written_and_nothing_changed_in_kafka_while_nothing_changes() -> None:
    """O1: resyncs only read."""
    async with running() as world:
        await settled_topic(world, config={"retention.ms": "1"})

        await world.run(3 * RESYNC_S)

        assert world.kube.writes == []
        changes = ("kafka create", "kafka grow", "kafka alter", "kafka delete")
        assert sum(world.gate.count(name) for name in changes) == 0
        assert world.gate.count("kafka describe_topics") >= 3


@in_virtual_time
async def test_drift_is_reverted_at_the_resync() -> None:
    """Changed or deleted behind our back; foreign settings stay."""
    async with running() as world:
        await settled_topic(world, config={"retention.ms": "1"})
        world.kafka.topics["orders"].config = {"retention.ms": "9", "min.insync.replicas": "2"}

        await world.run(RESYNC_S + 5)

        assert world.kafka.topics["orders"].config == {"retention.ms": "1", "min.insync.replicas": "2"}
        del world.kafka.topics["orders"]
        await world.run(RESYNC_S + 5)
        assert len(world.kafka.topics["orders"].replicas) == 6


@in_virtual_time
async def test_an_existing_topic_is_adopted() -> None:
    """Also what our own call created whose answer was lost."""
    async with running() as world:
        world.kafka.add("orders", [(1, 2, 3)] * 6)
        world.kafka.lose_answers = 1
        world.kube.apply(raw_topic())
        world.kube.apply(raw_topic("lost"))

        await world.until(
            lambda: all(world.kube.ready(name)[0] == "True" for name in (ORDERS, key("lost"))), seconds=10
        )


@in_virtual_time
async def test_metadata_that_lags_causes_no_second_write() -> None:
    """A created topic may take some time to be visible."""
    async with running() as world:
        world.kafka.visible_after_s = 1.0
        world.kube.apply(raw_topic())

        await world.until(lambda: world.kube.ready(ORDERS)[0] == "True", seconds=4)
        await world.run(10)

        assert world.kube.writes.count(str(ORDERS)) == 2


@in_virtual_time
async def test_a_moving_topic_keeps_its_replication_factor() -> None:
    """While a partition moves it has the union of both; that is no other replication factor."""
    async with running() as world:
        await settled_topic(world)
        world.kafka.move_s = 1000
        await world.kafka.alter_reassignments({Partition("orders", index): (2, 3, 4) for index in range(6)})
        world.kube.writes.clear()

        await world.run(RESYNC_S + 10)

        assert world.kube.ready(ORDERS)[0] == "True"
        assert world.kube.writes == []

"""Topics that go, alone or with all that is around them, over fakes and virtual time."""

from __future__ import annotations

import pytest

from kafka_operator import kinds
from kafka_operator.resources.reassignment import Partition
from reconciler.names import FINALIZER, Key
from tests.kafka_operator.makers import raw_cluster, raw_topic
from tests.kafka_operator.topics import ORDERS, key, settled_topic
from tests.kafka_operator.world import running
from tests.reconciler.virtual_time import in_virtual_time


@in_virtual_time
async def test_a_deleted_topic_goes_from_kafka_and_then_from_kubernetes() -> None:
    """The finalizer is removed after the topic is gone."""
    async with running() as world:
        await settled_topic(world)

        world.kube.delete(ORDERS)
        await world.until(lambda: ORDERS not in world.kube.objects, seconds=3)

        assert world.kafka.topics == {}
        assert world.kube.events == []


@in_virtual_time
async def test_retain_leaves_the_kafka_topic() -> None:
    """DeletionPolicy Retain."""
    async with running() as world:
        await settled_topic(world, deletionPolicy="Retain")

        world.kube.delete(ORDERS)
        await world.until(lambda: ORDERS not in world.kube.objects, seconds=3)

        assert "orders" in world.kafka.topics
        assert [event.reason for event in world.kube.events] == ["TopicRetained"]


@pytest.mark.shows("E7")
@in_virtual_time
async def test_a_namespace_is_not_blocked_by_an_unreachable_cluster() -> None:
    """Within 60 s; Kafka went with the namespace, so its Topics are deleted soon, and events report what is kept."""
    async with running() as world:
        await settled_topic(world)
        world.kafka.reachable = False
        cluster_key = Key(kinds.CLUSTER, "shop", "main")

        world.kube.delete(cluster_key)
        world.kube.delete(ORDERS)
        took_s = await world.until(lambda: not world.kube.objects, seconds=90)

        assert 10 < took_s < 25
        assert "TopicKept" in [event.reason for event in world.kube.events]
        assert "orders" in world.kafka.topics


@in_virtual_time
async def test_a_dead_cluster_whose_resource_stays_is_waited_for_longer() -> None:
    """Only the Topic goes: its Kafka topic may yet be deleted, when the brokers are back in half a minute."""
    async with running() as world:
        await settled_topic(world)
        world.kafka.reachable = False
        world.kube.delete(ORDERS)
        await world.run(20)
        assert ORDERS in world.kube.objects

        world.kafka.reachable = True
        await world.until(lambda: ORDERS not in world.kube.objects, seconds=10)

        assert world.kafka.topics == {}


@in_virtual_time
async def test_a_topic_whose_cluster_is_gone_is_let_go_and_taken_up_again() -> None:
    """An operator that is uninstalled after its Cluster leaves nothing that only it could delete."""
    async with running() as world:
        await settled_topic(world)
        world.kube.delete(Key(kinds.CLUSTER, "shop", "main"))

        await world.until(lambda: not world.kube.objects[ORDERS]["metadata"].get("finalizers"), seconds=30)

        assert world.kafka.topics.keys() == {"orders"}
        assert world.kube.ready(ORDERS)[1] == "ClusterNotFound"
        world.kube.apply(raw_cluster())
        await world.until(lambda: world.kube.ready(ORDERS)[0] == "True", seconds=10)
        assert world.kube.objects[ORDERS]["metadata"]["finalizers"] == [FINALIZER]


@in_virtual_time
async def test_a_deleted_namespace_takes_its_kafka_topics_with_it() -> None:
    """The Cluster outlives the Topics that are deleted with it, though it was deleted first."""
    async with running() as world:
        for index in range(20):
            world.kube.apply(raw_topic(f"t{index}"))
        await world.until(lambda: all(world.kube.ready(key(f"t{index}"))[0] == "True" for index in range(20)))

        world.kube.delete(Key(kinds.CLUSTER, "shop", "main"))
        await world.run(1)
        for index in range(20):
            world.kube.delete(key(f"t{index}"))
        await world.until(lambda: not world.kube.objects, seconds=20)

        assert world.kafka.topics == {}
        assert world.kube.events == []


@in_virtual_time
async def test_a_topic_that_goes_while_it_moves_is_stopped_first() -> None:
    """C10: the deletion would wait for the move's end; a Topic and its Reassignment are often deleted in the same breath."""
    async with running() as world:
        await settled_topic(world)
        world.kafka.move_s = 1000
        await world.kafka.alter_reassignments({Partition("orders", 0): (7, 8, 9)})
        assert world.kafka.moves

        world.kube.delete(ORDERS)
        await world.until(lambda: ORDERS not in world.kube.objects)

        assert world.kafka.submitted[-1] == {Partition("orders", 0): None}
        assert "orders" not in world.kafka.topics

"""Two Topics for one Kafka topic, over fakes and virtual time."""

from __future__ import annotations

import pytest

from tests.kafka_operator.fake_kafka import FakeKafka
from tests.kafka_operator.makers import raw_cluster, raw_topic
from tests.kafka_operator.topics import ORDERS, key, settled_topic
from tests.kafka_operator.world import running
from tests.reconciler.gate import Gate
from tests.reconciler.virtual_time import in_virtual_time


@pytest.mark.shows("O5")
@in_virtual_time
async def test_the_oldest_of_two_topics_wins_and_the_next_takes_over() -> None:
    """O5: the other one has Ready=False, Conflict, with the name of the owner; after the owner's deletion it recreates the topic."""
    async with running() as world:
        await settled_topic(world)
        await world.run(2)
        world.kube.apply(raw_topic("second", topicName="orders", partitions=2))
        await world.run(2)

        status, reason, message = world.kube.ready(key("second"))
        assert (status, reason) == ("False", "Conflict")
        assert "shop/orders" in message
        assert len(world.kafka.topics["orders"].replicas) == 6
        world.kube.delete(ORDERS)
        await world.until(lambda: world.kube.ready(key("second"))[0] == "True", seconds=10)
        assert len(world.kafka.topics["orders"].replicas) == 2


@in_virtual_time
async def test_the_loser_of_a_conflict_goes_without_the_kafka_topic() -> None:
    """O4, O5."""
    async with running() as world:
        await settled_topic(world)
        await world.run(2)
        world.kube.apply(raw_topic("second", topicName="orders"))
        await world.run(2)

        world.kube.delete(key("second"))
        await world.run(5)

        assert "orders" in world.kafka.topics
        assert key("second") not in world.kube.objects


@in_virtual_time
async def test_two_clusters_that_are_one_kafka_cluster_conflict_too() -> None:
    """Clusters differ by Kafka's own id, not by a Cluster's name."""
    async with running() as world:
        await settled_topic(world)
        await world.run(2)
        world.kube.apply(raw_cluster("alias", "other-name:9092"))
        await world.run(2)
        world.kube.apply(raw_topic("again", topicName="orders", cluster="alias"))
        await world.run(3)

        assert world.kube.ready(key("again"))[1] == "Conflict"


@in_virtual_time
async def test_the_same_name_on_two_kafka_clusters_is_no_conflict() -> None:
    """Each cluster has its own names."""
    async with running() as world:
        other = FakeKafka(Gate())
        other.cluster_id = "other"
        world.others["elsewhere:9092"] = other
        world.kube.apply(raw_cluster("second", "elsewhere:9092"))
        await settled_topic(world)
        world.kube.apply(raw_topic("orders-2", topicName="orders", cluster="second"))

        await world.until(lambda: world.kube.ready(key("orders-2"))[0] == "True", seconds=5)

        assert "orders" in other.topics

"""Clusters of several namespaces that reach, or claim to reach, the same Kafka cluster, over fakes and virtual time.

The id of a Kafka cluster is what the brokers of one Cluster report, and a broker of anybody's may report any id.
"""

from __future__ import annotations

from tests.kafka_operator.fake_kafka import FakeKafka
from tests.kafka_operator.makers import raw_cluster, raw_plan, raw_reassignment, raw_topic
from tests.kafka_operator.tenants import (
    TEAM,
    allow,
    move_key,
    state_of,
    tenant_cluster,
    tenant_move,
    tenant_topic,
    topic_key,
)
from tests.kafka_operator.topics import ORDERS
from tests.kafka_operator.world import World, running
from tests.reconciler.virtual_time import in_virtual_time

OWN = move_key("move", "shop")
MINE = {"name": "mine"}


async def lying_cluster(world: World) -> FakeKafka:
    """Have Cluster team-a/mine on a broker of its own that reports the id of Cluster shop/main."""
    liar = FakeKafka(world.gate)
    world.others["liar:9092"] = liar
    liar.cluster_id = world.kafka.cluster_id
    world.kube.apply(tenant_cluster("mine", "liar:9092"))
    await world.run(15)
    return liar


@in_virtual_time
async def test_a_broker_that_reports_another_clusters_id_takes_no_topic_from_its_owner() -> None:
    """An older Topic owns a name (O5) only where the Cluster lets its namespace have that name."""
    async with running() as world:
        await lying_cluster(world)
        world.kube.apply(tenant_topic("squat", clusterRef=MINE, topicName="orders"))
        await world.run(10)
        world.kube.apply(raw_topic())
        await world.until(lambda: world.kube.ready(ORDERS)[0] == "True")

        assert "orders" in world.kafka.topics


@in_virtual_time
async def test_nor_where_the_namespace_may_have_other_names() -> None:
    """A rule for team-a.* is none for orders, through whichever Cluster it is claimed."""
    async with running() as world:
        allow(world, {"namespaces": [TEAM], "topicNames": ["${namespace}.*"]})
        await lying_cluster(world)
        world.kube.apply(tenant_topic("squat", clusterRef=MINE, topicName="orders"))
        world.kube.apply(tenant_topic("fair", clusterRef=MINE, topicName="team-a.x"))
        await world.run(10)
        world.kube.apply(raw_topic())
        world.kube.apply(raw_topic("team-a.x"))
        await world.until(lambda: world.kube.ready(ORDERS)[0] == "True")

        assert world.kube.ready(topic_key("team-a.x", "shop"))[1] == "Conflict"


@in_virtual_time
async def test_nor_makes_its_moves_overlap() -> None:
    """A Reassignment on a Cluster that is not linked is no rival, and its throttle has no weight."""
    async with running() as world:
        world.kafka.add("orders", [(1, 2, 3)])
        liar = await lying_cluster(world)
        liar.move_s = 10**9
        liar.add("orders", [(1, 2, 3)])
        throttle = {"bytesPerSecond": 1}
        squat = tenant_move("squat", clusterRef=MINE, plan=raw_plan(p0=[2, 3, 4]), throttle=throttle)
        world.kube.apply(squat)
        await world.until(lambda: state_of(world, move_key("squat")) == "Running")
        world.kube.apply(raw_reassignment(plan=raw_plan(p0=[2, 3, 4]), throttle={"bytesPerSecond": 5000}))
        rates: set[str] = set()

        def ended() -> bool:
            rates.update(rate for config in world.kafka.broker_configs.values() for rate in config.values())
            return state_of(world, OWN) in {"Completed", "Failed"}

        await world.until(ended)
        assert state_of(world, OWN) == "Completed"
        assert rates == {"5000"}


@in_virtual_time
async def test_clusters_of_one_namespace_on_one_kafka_are_one() -> None:
    """Both belong to the same administrator: the oldest Topic owns the name, whichever Cluster it names."""
    async with running() as world:
        world.kube.apply(raw_cluster("alias", "kafka:9093"))
        await world.run(15)
        world.kube.apply(raw_topic("first", cluster="alias", topicName="orders"))
        await world.until(lambda: world.kube.ready(topic_key("first", "shop"))[0] == "True")
        world.kube.apply(raw_topic())
        await world.until(lambda: world.kube.ready(ORDERS)[1] == "Conflict")


@in_virtual_time
async def test_two_clusters_of_different_namespaces_act_each_on_its_own() -> None:
    """Unlinked: neither waits for the other, and each sees what the other did as anybody's change in Kafka."""
    async with running() as world:
        world.kube.apply(tenant_cluster("mine"))
        await world.run(15)
        world.kube.apply(raw_topic())
        await world.until(lambda: world.kube.ready(ORDERS)[0] == "True")
        world.kube.apply(tenant_topic("orders", clusterRef=MINE, partitions=6))
        await world.until(lambda: world.kube.ready(topic_key("orders"))[0] == "True")

        assert world.kube.ready(ORDERS)[0] == "True"

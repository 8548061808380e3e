"""Topics of other namespaces than their Cluster's, over fakes and virtual time."""

from __future__ import annotations

from typing import Any

from kafka_operator import kinds
from reconciler.names import Key
from tests.kafka_operator.makers import raw_cluster, raw_topic
from tests.kafka_operator.topics import ORDERS, settled_topic
from tests.kafka_operator.world import running
from tests.reconciler.virtual_time import in_virtual_time

TEAM = "team-a"


def tenant(name: str, namespace: str = TEAM, **spec: Any) -> dict[str, Any]:
    """A Topic of another namespace."""
    raw = raw_topic(name, clusterRef={"name": "main", "namespace": "shop"}, **spec)
    raw["metadata"]["namespace"] = namespace
    return raw


def key(name: str, namespace: str = TEAM) -> Key:
    """Its key."""
    return Key(kinds.TOPIC, namespace, name)


@in_virtual_time
async def test_a_namespace_that_no_rule_names_has_no_effect_at_all() -> None:
    """A tenant never edits another's cluster."""
    async with running() as world:
        world.kube.apply(tenant("orders"))
        await world.run(5)

        assert world.kube.ready(key("orders"))[:2] == ("False", "NotAllowed")
        assert world.kafka.topics == {}
        assert not world.kube.objects[key("orders")]["metadata"].get("finalizers")


@in_virtual_time
async def test_a_rule_that_comes_later_is_noticed_at_once() -> None:
    """And so is one that goes; what is there then is left alone, also at the Topic's deletion."""
    async with running() as world:
        world.kube.apply(tenant("orders"))
        await world.until(lambda: world.kube.ready(key("orders"))[1] == "NotAllowed")

        world.kube.apply(raw_cluster(allowedNamespaces=[{"namespaces": [TEAM]}]))
        assert await world.until(lambda: world.kube.ready(key("orders"))[0] == "True") < 2

        world.kube.apply(raw_cluster())
        assert await world.until(lambda: world.kube.ready(key("orders"))[1] == "NotAllowed") < 2
        world.kube.delete(key("orders"))
        await world.until(lambda: key("orders") not in world.kube.objects)
        assert "orders" in world.kafka.topics
        assert [event.reason for event in world.kube.events if event.reason.startswith("Topic")] == ["TopicKept"]


@in_virtual_time
async def test_a_topic_with_a_forbidden_name_blocks_no_other_resource() -> None:
    """An older Topic of a namespace that may not have it does not keep the one that may from it."""
    async with running() as world:
        rule = {"namespaces": ["*"], "topicNames": ["${namespace}.*"]}
        world.kube.apply(raw_cluster(allowedNamespaces=[rule]))
        world.kube.apply(tenant("orders"))
        await world.until(lambda: world.kube.ready(key("orders"))[1] == "NameNotAllowed")
        await world.run(2)

        await settled_topic(world)

        assert world.kube.ready(key("orders"))[1] == "NameNotAllowed"
        world.kube.delete(key("orders"))
        await world.run(5)
        assert "orders" in world.kafka.topics


@in_virtual_time
async def test_two_namespaces_for_one_topic_the_oldest_wins() -> None:
    """O5, across namespaces."""
    async with running() as world:
        world.kube.apply(raw_cluster(allowedNamespaces=[{"namespaces": ["team-*"]}]))
        world.kube.apply(tenant("orders"))
        await world.until(lambda: world.kube.ready(key("orders"))[0] == "True")
        await world.run(2)
        world.kube.apply(raw_topic())
        await world.until(lambda: world.kube.ready(ORDERS)[1] == "Conflict")

        assert f"{TEAM}/orders" in world.kube.ready(ORDERS)[2]


@in_virtual_time
async def test_room_that_becomes_free_is_taken_by_the_next_oldest() -> None:
    """Without waiting for a resync."""
    async with running() as world:
        world.kube.apply(raw_cluster(allowedNamespaces=[{"namespaces": ["*"], "maxPartitions": 10}]))
        for name, partitions in (("a", 6), ("b", 6), ("c", 4)):
            world.kube.apply(tenant(name, partitions=partitions))
            await world.run(2)

        reasons = [world.kube.ready(key(name))[1] for name in "abc"]
        assert reasons == ["AsDeclared", "QuotaExceeded", "AsDeclared"]
        assert "spec.allowedNamespaces[0].maxPartitions" in world.kube.ready(key("b"))[2]
        world.kube.delete(key("a"))
        assert await world.until(lambda: world.kube.ready(key("b"))[0] == "True") < 3
        assert world.kafka.topics.keys() == {"b", "c"}


@in_virtual_time
async def test_an_edit_while_a_topic_is_being_created_is_bound_as_well() -> None:
    """Each step is decided on the Topic of that time, and so is its room in the quota."""
    async with running() as world:
        world.kube.apply(raw_cluster(allowedNamespaces=[{"namespaces": ["*"], "maxPartitions": 30}]))
        await world.run(1)
        for number in range(20):
            space = f"team-{number}"
            world.kube.apply(tenant("t", space, topicName=f"{space}.t", partitions=4))
            await world.run(0.05 + number / 500)
            world.kube.apply(tenant("t", space, topicName=f"{space}.t", partitions=31))
            await world.run(2)

            held = world.kafka.topics.get(f"{space}.t")
            assert held is None or len(held.replicas) == 4
            assert world.kube.ready(key("t", space))[1] == "QuotaExceeded"


@in_virtual_time
async def test_an_unreachable_cluster_is_not_reported_to_namespaces_that_may_not_use_it() -> None:
    """Its addresses are none of their business."""
    async with running() as world:
        world.kafka.reachable = False
        world.kube.apply(tenant("orders"))
        await world.run(5)

        assert world.kube.ready(key("orders"))[1] == "NotAllowed"
        assert "kafka:9092" not in str(world.kube.objects[key("orders")]["status"])

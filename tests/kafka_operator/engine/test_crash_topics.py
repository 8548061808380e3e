"""Topics observed, adopted, paused, protected, mended, and those of other namespaces, with the operator killed after its effects (O3)."""

from __future__ import annotations

from typing import Any

import pytest

from kafka_operator import kinds
from kafka_operator.names import ADOPT
from reconciler.names import PAUSE, Key
from tests.kafka_operator.crash_stories import Story, ends_alike
from tests.kafka_operator.makers import raw_cluster, raw_topic
from tests.kafka_operator.topics import ORDERS
from tests.kafka_operator.world import World

pytestmark = pytest.mark.slow

MAIN = Key(kinds.CLUSTER, "shop", "main")


def tenant(name: str, namespace: str = "team-a", **spec: Any) -> dict[str, Any]:
    """A Topic of another namespace."""
    raw = raw_topic(name, clusterRef={"name": "main", "namespace": "shop"}, **spec)
    raw["metadata"]["namespace"] = namespace
    return raw


async def observe(world: World) -> None:
    """A Topic observes one that differs, then is to enforce, then observes again and goes."""
    world.kafka.add("orders", [(1, 2, 3)] * 4, retention_ms="9")
    world.kube.apply(raw_topic(policy="Observe", config={"retention.ms": "1"}))
    await world.run(2)
    world.kube.apply(raw_topic(config={"retention.ms": "1"}))
    await world.run(2)
    world.kube.apply(raw_topic(policy="Observe", config={"retention.ms": "2"}))
    await world.run(2)
    world.kube.delete(ORDERS)


async def adopt_equal(world: World) -> None:
    """A Topic for one that is as declared."""
    world.kafka.add("orders", [(1, 2, 3)] * 6, retention_ms="1")
    world.kube.apply(raw_topic(config={"retention.ms": "1"}))


async def adopt_by_consent(world: World) -> None:
    """A Topic for one that differs in both ways; its user agrees to these very differences."""
    world.kafka.add("orders", [(1, 2, 3)] * 4, retention_ms="9")
    world.kube.apply(raw_topic(config={"retention.ms": "1"}))
    await world.run(2)
    message = world.kube.ready(ORDERS)[2]
    if f"{ADOPT}=" in message:  # else the operator had died and has not come back yet
        world.kube.annotate(ORDERS, ADOPT, message.partition(f"{ADOPT}=")[2].partition(" ")[0])
    else:
        world.kube.annotate(ORDERS, ADOPT, "true")


async def no_consent(world: World) -> None:
    """A Topic for one that differs goes again; nothing has happened to the Kafka topic."""
    world.kafka.add("orders", [(1, 2, 3)] * 4)
    world.kube.apply(raw_topic())
    await world.run(2)
    world.kube.delete(ORDERS)


async def change_after_creation(world: World) -> None:
    """The spec changes while the topic is being created: what is there is still our own."""
    world.kube.apply(raw_topic(config={"retention.ms": "1"}))
    await world.run(0.08)
    world.kube.apply(raw_topic(config={"retention.ms": "2"}))


async def recreate(world: World) -> None:
    """Another client deletes the Kafka topic; then the spec changes while it is recreated."""
    world.kube.apply(raw_topic(config={"retention.ms": "1"}))
    await world.run(2)
    world.kafka.topics.pop("orders", None)
    world.kube.touch(ORDERS)
    await world.run(0.08)
    world.kube.apply(raw_topic(config={"retention.ms": "2"}))


async def change_setting(world: World) -> None:
    """Another client changes a setting."""
    world.kube.apply(raw_topic(config={"retention.ms": "1"}))
    await world.run(2)
    world.kafka.topics["orders"].config["retention.ms"] = "9"
    world.kube.touch(ORDERS)


async def leave_alone(world: World) -> None:
    """A setting is set, then kept, then changed outside, then no longer declared."""
    world.kube.apply(raw_topic(config={"retention.ms": "1"}))
    await world.run(2)
    world.kube.apply(raw_topic(unmanagedConfig=["retention.ms"]))
    await world.run(2)
    world.kafka.topics["orders"].config["retention.ms"] = "9"
    world.kube.apply(raw_topic())


async def refused_half(world: World) -> None:
    """Partitions could grow, and a setting that goes with it is refused: neither happens."""
    world.kube.apply(raw_topic())
    await world.run(2)
    world.kube.apply(raw_topic(partitions=8, config={"no.such": "1"}))


async def refused_then_mended(world: World) -> None:
    """A Topic that the brokers refuse is mended, and changed again while it is being created."""
    world.kube.apply(raw_topic(config={"no.such": "1"}))
    await world.run(3)
    world.kube.apply(raw_topic(config={"retention.ms": "1"}))
    await world.run(0.09)
    world.kube.apply(raw_topic(config={"retention.ms": "2"}))


async def protect(world: World) -> None:
    """A protected Topic is deleted where nothing keeps it from being."""
    world.kube.apply(raw_topic(deletionPolicy="Protect"))
    await world.run(2)
    world.kube.delete(ORDERS)


async def foreign_finalizer(world: World) -> None:
    """Another controller has a finalizer on a Topic that is deleted, and removes it later."""
    world.kube.apply(raw_topic())
    await world.run(2)
    world.kube.objects[ORDERS]["metadata"].setdefault("finalizers", []).insert(0, "foreign/one")
    world.kube.delete(ORDERS)
    await world.run(5)
    assert "orders" in world.kafka.topics
    world.kube.objects[ORDERS]["metadata"]["finalizers"].remove("foreign/one")
    world.kube.touch(ORDERS)


async def pause(world: World) -> None:
    """A Topic is paused, edited, and goes on; then paused again and deleted."""
    world.kube.apply(raw_topic())
    await world.run(2)
    world.kube.annotate(ORDERS, PAUSE, "true")
    await world.run(2)
    world.kube.apply(raw_topic(partitions=8))
    await world.run(2)
    assert len(world.kafka.topics["orders"].replicas) == 6
    world.kube.annotate(ORDERS, PAUSE, None)
    await world.run(2)
    world.kube.annotate(ORDERS, PAUSE, "true")
    await world.run(2)
    world.kube.delete(ORDERS)


async def tenants(world: World) -> None:
    """Topics of another namespace: one allowed, one beyond the quota until the first goes, one whose name is not theirs."""
    rule = {"namespaces": ["team-*"], "topicNames": ["${namespace}.*"], "maxTopics": 1}
    world.kube.apply(raw_cluster(allowedNamespaces=[rule]))
    world.kube.apply(tenant("first", topicName="team-a.first"))
    await world.run(2)
    world.kube.apply(tenant("second", topicName="team-a.second"))
    world.kube.apply(tenant("third", topicName="orders"))
    world.kube.apply(tenant("first", "stranger"))
    await world.run(2)
    world.kube.delete(Key(kinds.TOPIC, "team-a", "first"))


async def no_longer_allowed(world: World) -> None:
    """A namespace loses its right; its Topic goes, and the Kafka topic stays."""
    world.kube.apply(raw_cluster(allowedNamespaces=[{"namespaces": ["team-a"]}]))
    world.kube.apply(tenant("first"))
    await world.run(2)
    world.kube.apply(raw_cluster())
    await world.run(2)
    world.kube.delete(Key(kinds.TOPIC, "team-a", "first"))


async def retained_under_a_quota(world: World) -> None:
    """A topic that is retained counts until it is gone from Kafka; the next one is created then."""
    world.kube.apply(raw_cluster(allowedNamespaces=[{"namespaces": ["team-a"], "maxTopics": 1}]))
    world.kube.apply(tenant("first", deletionPolicy="Retain"))
    await world.run(2)
    world.kube.delete(Key(kinds.TOPIC, "team-a", "first"))
    await world.run(2)
    world.kube.apply(tenant("second"))
    await world.run(8)
    assert "second" not in world.kafka.topics
    world.kafka.topics.pop("first", None)
    world.kube.touch(Key(kinds.TOPIC, "team-a", "second"))


STORIES: tuple[Story, ...] = (
    observe,
    adopt_equal,
    adopt_by_consent,
    no_consent,
    change_after_creation,
    recreate,
    change_setting,
    leave_alone,
    refused_half,
    refused_then_mended,
    protect,
    foreign_finalizer,
    pause,
    tenants,
    retained_under_a_quota,
    no_longer_allowed,
)


@pytest.mark.shows("O3")
@pytest.mark.parametrize("story", STORIES, ids=lambda story: story.__name__)
def test_killed_at_any_call_the_end_is_the_same(story: Story) -> None:
    """O1, O3: all kinds of effects; every call in the soak."""
    ends_alike(story)

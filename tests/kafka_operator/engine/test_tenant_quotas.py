"""Quotas of other namespaces, over fakes and virtual time: what was created counts until Kafka does not have it any more."""

from __future__ import annotations

from typing import Any

import pytest

from kafka_operator import kinds
from kafka_operator.names import ADOPT
from reconciler.names import PAUSE, Key
from tests.kafka_operator.makers import raw_topic
from tests.kafka_operator.tenants import TEAM, allow, tenant_topic, topic_key
from tests.kafka_operator.world import World, running
from tests.reconciler.virtual_time import in_virtual_time

ONE = {"namespaces": ["team-*"], "maxTopics": 1, "maxPartitions": 6}
MAIN = Key(kinds.CLUSTER, "shop", "main")


async def created(world: World, name: str, namespace: str = TEAM, **spec: Any) -> None:
    """Have a Topic of another namespace Ready."""
    world.kube.apply(tenant_topic(name, namespace, **spec))
    await world.until(lambda: world.kube.ready(topic_key(name, namespace))[0] == "True")


async def removed(world: World, name: str) -> None:
    """Have a Topic deleted."""
    world.kube.delete(topic_key(name))
    await world.until(lambda: topic_key(name) not in world.kube.objects)


async def is_refused(world: World, name: str, namespace: str = TEAM, **spec: Any) -> bool:
    """Return whether another Topic is refused, and stays refused."""
    world.kube.apply(tenant_topic(name, namespace, **spec))
    await world.run(20)
    return world.kube.ready(topic_key(name, namespace))[1] == "QuotaExceeded"


@pytest.mark.shows("O13")
@in_virtual_time
async def test_a_topic_that_outlives_its_resource_counts_until_kafka_does_not_have_it() -> None:
    """O13: DeletionPolicy Retain, and deleting the Kafka topic by hand later."""
    async with running() as world:
        allow(world, ONE)
        await created(world, "a", deletionPolicy="Retain")
        await removed(world, "a")

        assert await is_refused(world, "b")
        assert set(world.kafka.topics) == {"a"}

        del world.kafka.topics["a"]
        world.kube.touch(topic_key("b"))
        await world.until(lambda: world.kube.ready(topic_key("b"))[0] == "True")
        assert set(world.kafka.topics) == {"b"}


@pytest.mark.shows("O13")
@in_virtual_time
async def test_a_topic_that_is_only_observed_now_counts_when_it_was_created_here() -> None:
    """O13: Policy Observe frees no room; nor does its deletion, which keeps the Kafka topic."""
    async with running() as world:
        allow(world, ONE)
        await created(world, "a")
        world.kube.apply(tenant_topic("a", policy="Observe"))
        await world.run(5)
        assert await is_refused(world, "b")
        await removed(world, "a")

        assert await is_refused(world, "c")
        assert set(world.kafka.topics) == {"a"}


@pytest.mark.parametrize("way", ["restart", "strip", "pause", "revoke", "rule"])
def test_no_way_to_part_from_a_topic_frees_room(way: str) -> None:
    """Restarts of the operator, a stripped finalizer, a pause, a right that goes and comes back, a rule that loses its quota for a time."""

    @in_virtual_time
    async def scenario() -> None:
        async with running() as world:
            allow(world, ONE)
            await created(world, "a", deletionPolicy="Retain" if way in {"restart", "rule"} else "Delete")
            if way == "strip":
                world.kube.strip(topic_key("a"))
            elif way == "pause":
                world.kube.annotate(topic_key("a"), PAUSE, "true")
                await world.run(2)
            elif way == "revoke":
                allow(world)
                await world.run(2)
            await removed(world, "a")
            if way == "restart":
                await world.kill()
                world.start()
            if way == "rule":
                allow(world, {"namespaces": ["team-*"]})
                await world.run(5)
            allow(world, ONE)
            await world.run(5)

            assert await is_refused(world, "b")
            assert set(world.kafka.topics) == {"a"}

    scenario()


@pytest.mark.shows("O13")
@in_virtual_time
async def test_a_forged_status_frees_no_room() -> None:
    """O13: What counts is kept at the Cluster, which the namespace cannot write."""
    async with running() as world:
        allow(world, ONE)
        await created(world, "a")
        world.kube.annotate(topic_key("a"), PAUSE, "true")
        await world.run(1)
        world.kube.forge(topic_key("a"), {"partitions": 0})
        world.kube.strip(topic_key("a"))
        world.kube.annotate(topic_key("a"), PAUSE, "true")
        world.kube.apply(tenant_topic("a", policy="Observe"))

        assert await is_refused(world, "b")


@in_virtual_time
async def test_a_retained_topic_may_be_declared_again_and_counts_once() -> None:
    """And its deletion frees the room."""
    async with running() as world:
        allow(world, ONE)
        await created(world, "a", deletionPolicy="Retain")
        await removed(world, "a")
        await created(world, "a")
        await removed(world, "a")
        assert set(world.kafka.topics) == set()

        await created(world, "b")
        counted = world.kube.objects[MAIN]["status"]["countedTopics"]
        assert counted == [{"name": "b", "namespace": TEAM, "partitions": 6}]


@pytest.mark.shows("O13")
@in_virtual_time
async def test_growth_of_a_topic_counts_before_it_happens_and_after_the_resource_is_gone() -> None:
    """O13: MaxPartitions."""
    async with running() as world:
        allow(world, {"namespaces": ["team-*"], "maxPartitions": 10})
        await created(world, "a", partitions=2, deletionPolicy="Retain")
        world.kube.apply(tenant_topic("a", partitions=6, deletionPolicy="Retain"))
        await world.until(lambda: len(world.kafka.topics["a"].replicas) == 6)
        await world.run(2)
        await removed(world, "a")

        assert await is_refused(world, "b", partitions=5)
        assert not await is_refused(world, "c", partitions=4)


@in_virtual_time
async def test_a_topic_that_another_namespace_takes_over_counts_there() -> None:
    """A Kafka topic counts once: two namespaces cannot hand topics to each other to find room, and the owner frees what it adopts."""
    async with running() as world:
        allow(world, ONE)
        await created(world, "a", deletionPolicy="Retain")
        await removed(world, "a")
        await created(world, "b", "team-b", deletionPolicy="Retain")
        assert await is_refused(world, "a", "team-b")
        world.kube.delete(topic_key("a", "team-b"))

        adopting = raw_topic("a")
        adopting["metadata"]["annotations"] = {ADOPT: "true"}
        world.kube.apply(adopting)
        await world.until(lambda: world.kube.ready(topic_key("a", "shop"))[0] == "True")
        await created(world, "c")
        counted = [(item["name"], item["namespace"]) for item in world.kube.objects[MAIN]["status"]["countedTopics"]]
        assert counted == [("b", "team-b"), ("c", TEAM)]


@in_virtual_time
async def test_a_topic_that_the_brokers_refuse_takes_no_room_for_good() -> None:
    """It is counted before it is created, so that no crash loses it, and until its Topic is gone."""
    async with running() as world:
        allow(world, ONE)
        world.kube.apply(tenant_topic("a", replicationFactor=9))
        await world.run(10)
        assert world.kafka.topics == {}
        await removed(world, "a")

        await created(world, "b")


@in_virtual_time
async def test_topics_that_were_there_before_the_quota_are_counted_when_it_comes() -> None:
    """As far as their Topics are there."""
    async with running() as world:
        allow(world, {"namespaces": ["team-*"]})
        await created(world, "a", deletionPolicy="Retain")
        await world.run(2)
        allow(world, ONE)
        await world.run(5)
        await removed(world, "a")

        assert await is_refused(world, "b")

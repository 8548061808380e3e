"""Engines that serve a shard each, over one API server and one Kafka cluster."""

from __future__ import annotations

import asyncio
import random
from datetime import timedelta

import pytest

from kafka_operator import kinds
from kafka_operator.engine.core import build_core
from kafka_operator.metrics import KafkaMetrics
from kafka_operator.resources.cluster_ref import ClusterRef
from reconciler.decide.shards import shard_of
from reconciler.engine.core import Core
from reconciler.names import Key
from tests.kafka_operator.makers import raw_cluster, raw_topic
from tests.kafka_operator.world import RESYNC_S, WATCH_DELAY_S, World
from tests.reconciler.fake_kube import START, WatchEvent
from tests.reconciler.virtual_time import in_virtual_time

SHARDS = 4
MAIN, OTHER = "main", "a"
"""Two Clusters of different shards."""


def serving(world: World, shard: int) -> Core:
    """An engine of one shard."""
    loop = asyncio.get_running_loop()
    return build_core(
        world.kube,
        lambda _servers, _security: world.kafka,
        KafkaMetrics(),
        prometheus=world.prometheus,
        namespaces=(),
        resync_interval_s=RESYNC_S,
        now=lambda: START + timedelta(seconds=loop.time()),
        clock=loop.time,
        rng=random.Random(shard),
        serves=lambda ref: shard_of(ref, SHARDS) == shard,
    )


@pytest.mark.shows("F28", "O5")
@in_virtual_time
async def test_of_two_topics_in_two_shards_one_has_the_kafka_topic() -> None:
    """O5, O10: each process works only on the resources of its own Clusters, and knows all others: by Kafka's own id they are one."""
    shards = {shard_of(ClusterRef("shop", name), SHARDS) for name in (MAIN, OTHER)}
    assert len(shards) == 2
    world = World()
    cores = [serving(world, shard) for shard in range(SHARDS)]
    tasks = [asyncio.create_task(core.resync.run()) for core in cores]

    async def bring(core: Core, event: WatchEvent) -> None:
        await asyncio.sleep(WATCH_DELAY_S)
        await core.event_handler.handle(event.kind, event.type, event.object)

    def watched(event: WatchEvent) -> None:
        tasks.extend(asyncio.create_task(bring(core, event)) for core in cores)

    world.kube.watcher = watched
    for name in (MAIN, OTHER):
        world.kube.apply(raw_cluster(name))
    await asyncio.sleep(2)
    first = world.kube.apply(raw_topic("first", topicName="shared", cluster=MAIN))
    await asyncio.sleep(5)
    second = world.kube.apply(raw_topic("second", topicName="shared", cluster=OTHER))
    await asyncio.sleep(5)

    assert world.kube.ready(first)[0] == "True"
    assert world.kube.ready(second)[1] == "Conflict"
    world.kube.delete(first)
    await asyncio.sleep(60)
    assert world.kube.ready(second)[0] == "True"
    assert first not in world.kube.objects
    assert all(world.kube.ready(Key(kinds.CLUSTER, "shop", name))[0] == "True" for name in (MAIN, OTHER))
    for task in tasks:
        task.cancel()
    for core in cores:
        await core.close()

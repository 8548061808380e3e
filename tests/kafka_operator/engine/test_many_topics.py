"""Some thousands of Topics (ten in the soak): one Admin call for many, two writes each, and a queue that is full slows down."""

from __future__ import annotations

import asyncio

import pytest

from kafka_operator import kinds
from reconciler.engine.loop import MAX_BATCH
from reconciler.names import Key
from tests.effort import EXHAUSTIVE
from tests.kafka_operator.makers import raw_cluster, raw_topic
from tests.kafka_operator.world import RESYNC_S, World
from tests.reconciler.virtual_time import run_virtually

pytestmark = pytest.mark.slow

WRITES_EACH = 2
"""Finalizer and notes, then the status; three would be allowed."""

SPARE_BATCHES = 4
"""The first ones are small: later events wait for the next."""

PATIENCE_S = 600.0


def apply(world: World, count: int) -> list[Key]:
    """Apply so many Topics of one partition."""
    return [world.kube.apply(raw_topic(f"t{index}", partitions=1, replicationFactor=1)) for index in range(count)]


def ready(world: World, keys: list[Key]) -> bool:
    """Whether all are Ready."""
    return all(world.kube.ready(key)[0] == "True" for key in keys)


async def with_topics(world: World, count: int) -> None:
    """Start the operator and have so many Topics created."""
    world.kube.apply(raw_cluster())
    world.start()
    await world.run(1)
    keys = apply(world, count)
    await world.until(lambda: ready(world, keys), PATIENCE_S)
    assert count == len(world.kafka.topics)


@pytest.mark.shows("E12")
@pytest.mark.parametrize("count", [1_000, 10_000] if EXHAUSTIVE else [2_500])
def test_many_topics_are_few_admin_calls_and_two_writes_each(count: int) -> None:
    """Benchmark P8: a resync of all of them writes nothing."""

    async def story() -> None:
        world = World()
        await with_topics(world, count)
        batches = -(-count // MAX_BATCH) + SPARE_BATCHES
        for call in ("kafka create_topics", "kafka validate_create_topics"):
            assert world.gate.count(call) <= batches
        assert world.gate.count("kafka describe_topics") <= 2 * batches
        assert sum(name.startswith(str(kinds.TOPIC)) for name in world.kube.writes) == WRITES_EACH * count
        polled = world.gate.count("kafka describe_topics")
        world.kube.writes.clear()
        await world.run(RESYNC_S + 10)
        assert world.kube.writes == []
        assert world.gate.count("kafka describe_topics") - polled <= batches
        await world.kill()

    run_virtually(story())


@pytest.mark.shows("E12")
def test_a_queue_that_is_full_slows_down_and_neither_exits_nor_drops() -> None:
    """A queue of fifty for a thousand Topics: all become Ready, and no more than fifty ever wait."""

    async def story() -> None:
        longest = 0

        async def watch(world: World) -> None:
            nonlocal longest
            while True:
                await asyncio.sleep(0.01)
                longest = max(longest, len(world.core.loop._queue))

        world = World()
        world.capacity = 50
        watching = asyncio.create_task(watch(world))
        await with_topics(world, 1_000)
        world.kube.writes.clear()
        await world.run(RESYNC_S + 10)  # the resync waits for room as well
        assert world.kube.writes == []
        assert 0 < longest <= world.capacity
        watching.cancel()
        await world.kill()

    run_virtually(story())

"""The loop: queue partitions, batches, and what becomes of a batch."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable, Mapping, Sequence

from kafka_operator import kinds
from reconciler.decide.steps import Done, Outcome, Retry, Wait
from reconciler.engine.loop import MAX_BATCH, Loop, QueuePartition
from reconciler.engine.retries import Retries
from reconciler.metrics import Metrics
from reconciler.names import Key, NamespacedName
from tests.reconciler.virtual_time import run_virtually

Work = Callable[[NamespacedName, Sequence[Key]], Awaitable[Mapping[Key, Outcome]]]


def key(name: str, namespace: str = "shop") -> Key:
    """A Topic's key."""
    return Key(kinds.TOPIC, namespace, name)


class Recorder:
    """Behaves as configured, and records the batches."""

    def __init__(self, work: Work | None = None) -> None:
        self.batches: list[tuple[float, NamespacedName, list[Key]]] = []
        self._work = work

    async def reconcile(self, ref: NamespacedName, keys: Sequence[Key]) -> Mapping[Key, Outcome]:
        self.batches.append((asyncio.get_running_loop().time(), ref, list(keys)))
        return await self._work(ref, keys) if self._work else {item: Done() for item in keys}


def loop_of(recorder: Recorder, metrics: Metrics | None = None) -> Loop:
    """A loop with a queue partition for each namespace."""
    clock = asyncio.get_running_loop().time
    return Loop(
        lambda item: QueuePartition(item.kind, NamespacedName(item.namespace, "main")),
        {kinds.TOPIC: recorder},
        Retries(clock, random.Random(1)),
        metrics or Metrics(),
        clock=clock,
    )


def test_what_comes_together_is_one_batch_of_limited_size() -> None:
    """Linger, then at most MAX_BATCH."""

    async def story() -> None:
        recorder = Recorder()
        loop = loop_of(recorder)
        for index in range(MAX_BATCH + 20):
            await loop.submit(key(f"t{index}"))
        await asyncio.sleep(1)
        assert [len(keys) for _, _, keys in recorder.batches] == [MAX_BATCH, 20]
        assert loop.idle
        await loop.close()

    run_virtually(story())


def test_a_resource_is_never_worked_on_twice_at_once() -> None:
    """Events in the meantime wait for the next batch, and are not lost."""

    async def story() -> None:
        at_work: set[Key] = set()

        async def slow(_: NamespacedName, keys: Sequence[Key]) -> Mapping[Key, Outcome]:
            assert not at_work & set(keys)
            at_work.update(keys)
            await asyncio.sleep(5)
            at_work.difference_update(keys)
            return {item: Done() for item in keys}

        recorder = Recorder(slow)
        loop = loop_of(recorder)
        await loop.submit(key("a"))
        for _ in range(10):
            await asyncio.sleep(0.4)
            await loop.submit(key("a"))
        await asyncio.sleep(20)
        assert len(recorder.batches) == 2
        await loop.close()

    run_virtually(story())


def test_a_cluster_that_hangs_holds_up_no_other() -> None:
    """One queue partition for each cluster; and the age of the oldest batch is known to the probe."""

    async def story() -> None:
        async def hang(ref: NamespacedName, keys: Sequence[Key]) -> Mapping[Key, Outcome]:
            if ref.namespace == "dead":
                await asyncio.sleep(1000)
            return {item: Done() for item in keys}

        recorder = Recorder(hang)
        loop = loop_of(recorder)
        await loop.submit(key("a", "dead"))
        await asyncio.sleep(1)
        await loop.submit(key("b", "alive"))
        await asyncio.sleep(1)
        assert [ref.namespace for _, ref, _ in recorder.batches] == ["dead", "alive"]
        assert 1 < loop.oldest_batch_s < 3
        assert not loop.idle
        await loop.close()

    run_virtually(story())


def test_an_internal_error_ends_no_loop() -> None:
    """It is logged, and the batch is tried again later."""

    async def story() -> None:
        async def fail(_: NamespacedName, keys: Sequence[Key]) -> Mapping[Key, Outcome]:
            raise RuntimeError(f"a bug, with {keys}")

        recorder = Recorder(fail)
        metrics = Metrics()
        loop = loop_of(recorder, metrics)
        await loop.submit(key("a"))
        await asyncio.sleep(30)
        assert 3 <= len(recorder.batches) <= 6
        assert len(recorder.batches) == metrics.registry.get_sample_value(
            "steward_reconciliations_failed_total", {"kind": "Topic"}
        )
        await loop.close()

    run_virtually(story())


def test_retry_backs_off_and_wait_does_not() -> None:
    """Running work is polled at an even pace."""

    async def story() -> None:
        outcomes: dict[str, Outcome] = {"failing": Retry(1.0, 60.0), "moving": Wait(1.0)}

        async def work(_: NamespacedName, keys: Sequence[Key]) -> Mapping[Key, Outcome]:
            return {item: outcomes[item.name] for item in keys}

        recorder = Recorder(work)
        loop = loop_of(recorder)
        await loop.submit(key("failing"))
        await loop.submit(key("moving"))
        await asyncio.sleep(60)
        tries = [item.name for _, _, keys in recorder.batches for item in keys]
        assert 50 <= tries.count("moving") <= 61
        assert 5 <= tries.count("failing") <= 8
        await loop.close()

    run_virtually(story())


def test_the_heartbeat_shows_that_the_loop_turns() -> None:
    """For the probe."""

    async def story() -> None:
        loop = loop_of(Recorder())
        beating = asyncio.create_task(loop.beat())
        await asyncio.sleep(100)
        assert asyncio.get_running_loop().time() - loop.beat_s <= 1
        beating.cancel()
        await loop.close()

    run_virtually(story())


def test_batches_in_progress_are_shown_with_their_start() -> None:
    """For alerts on what is stuck: the sample is there while the batch is, and goes with it."""

    async def story() -> None:
        async def slow(_: NamespacedName, keys: Sequence[Key]) -> Mapping[Key, Outcome]:
            await asyncio.sleep(5)
            return {item: Done() for item in keys}

        metrics = Metrics()
        loop = loop_of(Recorder(slow), metrics)
        labels = {"kind": "Topic", "namespace": "shop", "name": "a"}
        await loop.submit(key("a"))
        await asyncio.sleep(1)
        name = "steward_reconciliations_in_progress_start_time_seconds"
        assert metrics.registry.get_sample_value(name, labels) is not None
        await asyncio.sleep(10)
        assert metrics.registry.get_sample_value(name, labels) is None
        await loop.close()

    run_virtually(story())

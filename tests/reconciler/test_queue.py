"""Names that wait for their turn."""

from __future__ import annotations

import asyncio

from kafka_operator import kinds
from reconciler.engine.queue import WorkQueue
from reconciler.names import Key
from tests.reconciler.virtual_time import run_virtually

A, B, C = (Key(kinds.TOPIC, "shop", name) for name in "abc")
OTHER = Key(kinds.TOPIC, "other", "x")


def queue(capacity: int = 10) -> tuple[WorkQueue, list[object]]:
    """A queue with a partition for each namespace, and the partitions that were woken."""
    woken: list[object] = []
    return WorkQueue(lambda key: key.namespace or None, woken.append, capacity=capacity), woken


def test_a_name_waits_once_and_in_order() -> None:
    """Bounded by the number of resources."""

    async def story() -> None:
        waiting, woken = queue()
        for key in (A, B, A, OTHER, C, A):
            await waiting.put(key)
        assert len(waiting) == 4
        assert set(woken) == {"shop", "other"}
        assert waiting.take("shop", 2) == [A, B]
        assert waiting.take("shop", 9) == [C]
        assert waiting.take("other", 9) == [OTHER]
        assert len(waiting) == 0

    run_virtually(story())


def test_a_full_queue_slows_down_and_drops_nothing() -> None:
    """Putting waits until there is room; a name that waits already needs none."""

    async def story() -> None:
        waiting, _ = queue(capacity=2)
        await waiting.put(A)
        await waiting.put(B)
        await waiting.put(A)
        third = asyncio.create_task(waiting.put(C))
        await asyncio.sleep(1)
        assert not third.done()
        assert waiting.take("shop", 1) == [A]
        await asyncio.sleep(0)
        await third
        assert waiting.take("shop", 9) == [B, C]

    run_virtually(story())


def test_a_timer_puts_a_name_later_and_a_put_makes_it_void() -> None:
    """The last call for a name counts."""

    async def story() -> None:
        waiting, _ = queue()
        waiting.put_after(A, 5)
        waiting.put_after(A, 9)
        waiting.put_after(B, 3)
        waiting.put_now(B)
        assert waiting.take("shop", 9) == [B]
        await asyncio.sleep(8)
        assert len(waiting) == 0
        await asyncio.sleep(2)
        assert waiting.take("shop", 9) == [A]

    run_virtually(story())


def test_taking_a_name_stops_its_timer() -> None:
    """It is processed now; the time of the next poll is decided then."""

    async def story() -> None:
        waiting, _ = queue()
        waiting.put_now(A)
        waiting.put_after(A, 1)
        waiting.put_now(A)
        waiting.take("shop", 1)
        waiting.put_after(B, 1)
        waiting.close()
        await asyncio.sleep(5)
        assert len(waiting) == 0

    run_virtually(story())


def test_a_name_without_an_object_is_forgotten() -> None:
    """Its resource is gone."""

    async def story() -> None:
        waiting, woken = queue()
        await waiting.put(Key(kinds.TOPIC, "", "gone"))
        assert len(waiting) == 0
        assert woken == []

    run_virtually(story())

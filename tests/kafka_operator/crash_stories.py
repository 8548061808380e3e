"""A story told in the world of fakes, with the operator killed before and after every call that it makes."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator, Sequence

from tests.kafka_operator.gate import Gate
from tests.kafka_operator.makers import raw_cluster
from tests.kafka_operator.virtual_time import run_virtually
from tests.kafka_operator.world import RESYNC_S, World

Story = Callable[[World], Awaitable[None]]

EXHAUSTIVE = os.environ.get("HYPOTHESIS_PROFILE") == "soak"
"""Whether the process is killed at every single call, also where it only looks for the tenth time whether a move has ended."""

READS = ("kafka describe_", "kafka list_", "kube list", "kube get")
"""Calls without an effect: to die after one is to die before it."""

SAME_LOOKS = 2
"""How often a look that follows the same call is tried: the first, and one that finds what the first did not."""

SETTLE_S = 60.0
"""Longer than every patience of a decision that these stories touch."""


async def tell(story: Story, gate: Gate) -> tuple[object, list[str]]:
    """Tell a story; return what is seen in the end, and the calls that were made until things had settled."""
    world = World(gate)
    world.kube.apply(raw_cluster())
    world.start()
    try:
        await world.run(0.5)
        await story(world)
        await world.run(SETTLE_S)
        calls = list(gate.calls)
        world.kube.writes.clear()
        await world.run(RESYNC_S + 30)
        assert [] == world.kube.writes, "something is still being written"
        return world.state(), calls
    finally:
        await world.kill()


def ends_alike(story: Story) -> None:
    """Assert O1 and O3: the end is the same whichever call the process died at, before and after its effect.

    Looks that repeat are tried twice each; `HYPOTHESIS_PROFILE=soak` tries all.
    """
    expected, calls = run_virtually(tell(story, Gate()))
    assert any(call.startswith("kube patch") for call in calls)

    for number, after in _deaths(calls):
        gate = Gate(kill_at=number, after=after)
        state, _ = run_virtually(tell(story, gate))
        where = f"killed {'after' if after else 'before'} call {number}: {calls[number - 1]}"
        assert expected == state, where


def _deaths(calls: Sequence[str]) -> Iterator[tuple[int, bool]]:
    """Yield the number of a call, from 1, and whether the process dies after its effect."""
    seen: Counter[tuple[str, str]] = Counter()
    for number, (before, call) in enumerate(zip(["", *calls], calls, strict=False), 1):
        seen[before, call] += 1
        reads = call.startswith(READS)
        if EXHAUSTIVE or not reads or seen[before, call] <= SAME_LOOKS:
            yield number, False
        if EXHAUSTIVE or not reads:
            yield number, True

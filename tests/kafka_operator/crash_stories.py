"""A story told in the world of fakes, with the operator killed before and after every call that it makes."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from tests.kafka_operator.gate import Gate
from tests.kafka_operator.makers import raw_cluster
from tests.kafka_operator.virtual_time import run_virtually
from tests.kafka_operator.world import RESYNC_S, World

Story = Callable[[World], Awaitable[None]]

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
    """Assert O1 and O3: the end is the same whichever call the process died at, before and after its effect."""
    expected, calls = run_virtually(tell(story, Gate()))
    assert any(call.startswith("kube patch") for call in calls)

    for number in range(1, len(calls) + 1):
        for after in (False, True):
            gate = Gate(kill_at=number, after=after)
            state, _ = run_virtually(tell(story, gate))
            where = f"killed {'after' if after else 'before'} call {number}: {calls[number - 1]}"
            assert expected == state, where

"""Stories in a world of fakes, in which the operator is killed after its effects; in the soak before and after every call."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Sequence
from typing import Any

from tests.effort import EXHAUSTIVE
from tests.kafka_operator.makers import raw_cluster
from tests.kafka_operator.world import World
from tests.reconciler.gate import Gate
from tests.reconciler.virtual_time import run_virtually

Story = Callable[[World], Awaitable[None]]
State = tuple[dict[str, Any], dict[str, Any]]
"""What is seen of Kubernetes and of Kafka."""

READS = ("kafka describe_", "kafka list_", "kafka validate_", "kube list", "kube get")
"""Calls without an effect: a kill after one equals a kill before it."""

SETTLE_S = 60.0
"""Longer than every timeout of a decision in these stories."""


async def run_story(story: Story, gate: Gate) -> tuple[State, list[str]]:
    """Run a story; return the final state, and the calls that were made until it was stable."""
    world = World(gate)
    world.kube.apply(raw_cluster())
    world.start()
    try:
        await world.run(0.5)
        await story(world)
        await world.run(SETTLE_S)
        calls = list(gate.calls)
        await world.check_that_writes_have_ended()
        return world.state(), calls
    finally:
        await world.kill()


def ends_alike(story: Story) -> State:
    """Assert O1 and O3: the final state is the same for each call at which the process is killed; return that state.

    `deaths` chooses the calls; `HYPOTHESIS_PROFILE=soak` tries all.
    """
    expected, calls = run_virtually(run_story(story, Gate()))
    assert any(call.startswith("kube patch") for call in calls)

    for number, after in deaths(calls):
        gate = Gate(kill_at=number, after=after)
        state, _ = run_virtually(run_story(story, gate))
        where = f"killed {'after' if after else 'before'} call {number}: {calls[number - 1]}"
        assert state == expected, where
    return expected


def deaths(calls: Sequence[str]) -> Iterator[tuple[int, bool]]:
    """Yield the number of a call, from 1, and whether the process dies after its effect.

    Between two effects nothing outside the process changes by its calls, so that a death after each effect, and one before the first,
    meets every state that a restarted process can find. Of an effect that repeats, the first and the last time are tried. The soak kills
    it before and after every call.
    """
    if EXHAUSTIVE:
        yield from ((number, after) for number in range(1, len(calls) + 1) for after in (False, True))
        return
    effects = [(number, call) for number, call in enumerate(calls, 1) if not call.startswith(READS)]
    first = {call: number for number, call in reversed(effects)}
    last = {call: number for number, call in effects}
    yield from ((number, False) for number, _ in effects[:1])
    yield from ((number, True) for number in sorted({*first.values(), *last.values()}))

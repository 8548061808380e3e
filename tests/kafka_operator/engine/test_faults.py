"""Every call spoilt in every way, events lost, late and doubled, lists that are stale: the end is always the same (O1, O3).

In test_crash_anywhere the process dies. Here it lives, and its peers fail or mislead it.
"""

from __future__ import annotations

import random
from collections.abc import Sequence

import pytest

from tests.effort import EXHAUSTIVE
from tests.kafka_operator.crash_stories import READS, SETTLE_S, Story
from tests.kafka_operator.faults import Fault, FaultyGate, FaultyWorld, Watch
from tests.kafka_operator.makers import raw_cluster
from tests.kafka_operator.patient_stories import (
    cancel,
    change,
    conflict,
    create,
    delete,
    delete_running,
    elect,
    reassign,
    refused,
)
from tests.kafka_operator.world import World
from tests.reconciler.gate import Gate
from tests.reconciler.virtual_time import run_virtually

pytestmark = pytest.mark.slow

STORIES: tuple[Story, ...] = (create, change, delete, conflict, refused, reassign, cancel, delete_running, elect)

EVENTS = range(1, 9) if EXHAUSTIVE else (1, 2, 4, 7)
"""Numbers of the events of a story that are lost or late: the first ones, and some later ones."""

RANDOM_RUNS = 100 if EXHAUSTIVE else 6
"""Runs of each story, in which a fifth of all calls fail and the operator is killed."""

FAULTS_A_CALL = len(Fault) if EXHAUSTIVE else 1
"""Number of faults tried at each call, different ones at the next call; the soak tries all."""


async def run_story(story: Story, world: World) -> object:
    """Run a story in a world; return the final state, after faults and writes have ended."""
    world.kube.apply(raw_cluster())
    world.start()
    try:
        await world.run(0.5)
        await story(world)
        await world.run(SETTLE_S)
        if isinstance(world.gate, FaultyGate) and world.gate.faults:
            world.gate.heal()
            await world.run(world.resync_s)
        await world.check_that_writes_have_ended()
        return world.state()
    finally:
        await world.kill()


def undisturbed(story: Story) -> tuple[object, list[str]]:
    """Return the final state of a story without faults, and its calls."""
    gate = Gate()
    return run_virtually(_undisturbed(story, gate)), gate.calls


async def _undisturbed(story: Story, gate: Gate) -> object:
    return await run_story(story, World(gate))


def ways(number: int) -> list[Fault]:
    """The ways in which the call of this number is spoilt."""
    every = list(Fault)
    return [every[(number + further) % len(every)] for further in range(FAULTS_A_CALL)]


def looked_before(calls: Sequence[str]) -> frozenset[int]:
    """Return the numbers, from 1, of reads that followed the same call before; none of them in the soak."""
    seen: set[tuple[str, str]] = set()
    repeated: set[int] = set()
    for number, (before, call) in enumerate(zip(["", *calls], calls, strict=False), 1):
        if call.startswith(READS) and (before, call) in seen and not EXHAUSTIVE:
            repeated.add(number)
        seen.add((before, call))
    return frozenset(repeated)


def story_name(story: Story) -> str:
    """For a test's id."""
    return story.__name__


@pytest.mark.shows("O1")
@pytest.mark.parametrize("fault", Fault)
@pytest.mark.parametrize("story", STORIES, ids=story_name)
def test_whichever_call_is_spoilt_the_end_is_the_same(story: Story, fault: Fault) -> None:
    """O1, O3: 429, 5xx, 409, a time-out after success, a request that arrives twice; brokers or the controller away.

    A poll that repeats after the same call fails once, and each call in one of the ways; `HYPOTHESIS_PROFILE=soak` has all.
    """
    expected, calls = undisturbed(story)
    busy = calls.index("kube list Reassignment") + 1
    last = max(number for number, call in enumerate(calls, 1) if "list" not in call and "describe_cluster" not in call)

    repeated = looked_before(calls)
    for number in range(busy, last + 1):
        if number in repeated or fault not in ways(number):
            continue

        async def spoilt(number: int = number) -> object:
            return await run_story(story, World(FaultyGate(faults={number: fault})))

        assert run_virtually(spoilt()) == expected, f"{fault} at call {number}: {calls[number - 1]}"


@pytest.mark.shows("F19", "O3")
@pytest.mark.parametrize("story", STORIES, ids=story_name)
def test_many_faults_and_a_kill_change_no_end(story: Story) -> None:
    """O1, O3: a fifth of all calls spoilt anyhow, the process killed at one of them; the seed is in the message."""
    expected, calls = undisturbed(story)
    for seed in range(RANDOM_RUNS):
        rng = random.Random(f"{story.__name__} {seed}")
        faults = {number: rng.choice(list(Fault)) for number in range(4, len(calls)) if rng.random() < 0.2}
        gate = FaultyGate(faults=faults, kill_at=rng.randrange(4, len(calls)), after=rng.random() < 0.5)

        async def spoilt(gate: Gate = gate) -> object:
            return await run_story(story, World(gate))

        assert run_virtually(spoilt()) == expected, f"seed {seed}: {faults}"


@pytest.mark.shows("O2")
@pytest.mark.parametrize("watch", Watch)
@pytest.mark.parametrize("story", STORIES, ids=story_name)
def test_whichever_event_is_lost_or_late_the_end_is_the_same(story: Story, watch: Watch) -> None:
    """O1, O2: all others come twice. What a gap hid, the next resync finds."""
    expected, _ = undisturbed(story)
    for number in EVENTS:

        async def watched(number: int = number) -> object:
            world = FaultyWorld(watch=watch, event=number)
            world.resync_s = 1.0
            return await run_story(story, world)

        assert run_virtually(watched()) == expected, f"{watch} from event {number} on"


@pytest.mark.shows("O1")
@pytest.mark.parametrize("story", STORIES, ids=story_name)
def test_stale_lists_change_no_end(story: Story) -> None:
    """O1: every second list is three seconds old, and one is made each second: what is gone comes up again, what is new is missing."""
    expected, _ = undisturbed(story)

    async def stale() -> object:
        world = FaultyWorld(stale=True)
        world.resync_s = 1.0
        return await run_story(story, world)

    assert run_virtually(stale()) == expected

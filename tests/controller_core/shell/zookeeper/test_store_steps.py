"""Writes of many partition states in steps: the result is the same as in one step."""

import asyncio
from uuid import UUID

import numpy as np
import pytest

from controller_core.model import Origin
from controller_core.model.changes import Change, PartitionStates, RequestsToBrokers, TopicAdded
from controller_core.shell.active import TermEndedError
from controller_core.shell.store import Outcome
from controller_core.shell.zookeeper import store as store_module
from controller_core.shell.zookeeper.operations import groups_of
from controller_core.zookeeper_mode.transitions import apply
from kafka_zookeeper import paths
from tests.controller_core.shell.zookeeper.world import NO_READ, World

PARTITIONS = 20
STALE = (4, 5, 11)


async def world() -> World:
    """A world with a topic whose states are written."""
    made = World()
    numbers, replicas = np.arange(PARTITIONS, dtype=np.int32), np.full((PARTITIONS, 1), 1, np.int32)
    await commit(made, TopicAdded("orders", UUID(int=7), numbers, replicas, Origin.REQUESTED))
    await commit(made, states(made))
    made.server.lines.clear()
    return made


async def commit(made: World, change: Change) -> None:
    """Write a change and apply it."""
    assert (await made.store.commit(made.cluster, [change], NO_READ)).is_whole
    apply(made.cluster, change)


def states(made: World) -> PartitionStates:
    """The next states of all partitions."""
    columns, rows = made.cluster.columns, made.cluster.topics["orders"].rows
    return PartitionStates(
        rows,
        columns.replicas[rows, 0],
        columns.leader_epoch[rows] + 1,
        columns.replicas[rows],
        RequestsToBrokers.LEADER_AND_ISR,
    )


async def committed(made: World, *, stale: tuple[int, ...] = ()) -> Outcome:
    """Commit the next states after another process wrote some of the znodes."""
    for partition in stale:
        path = paths.partition_state("orders", partition)
        made.server.put(path, made.server.at(path).data)
    return await made.store.commit(made.cluster, [states(made)], NO_READ)


def written(outcome: Outcome) -> list[list[int]]:
    """Rows of each committed change."""
    return [change.rows.tolist() for change in outcome.committed if isinstance(change, PartitionStates)]


@pytest.mark.parametrize("stale", [(), STALE, tuple(range(PARTITIONS))])
@pytest.mark.parametrize("step", [1, 3, PARTITIONS - 1])
async def test_steps_have_the_same_result(stale: tuple[int, ...], step: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Committed changes, stale rows and znodes."""
    whole, in_steps = await world(), await world()
    expected = await committed(whole, stale=stale)
    monkeypatch.setattr(store_module, "STATES_PER_STEP", step)
    actual = await committed(in_steps, stale=stale)
    assert written(actual) == written(expected)
    assert sorted(actual.stale_rows) == sorted(expected.stale_rows)
    assert (actual.unknown, actual.is_whole) == (expected.unknown, expected.is_whole)
    assert in_steps.tree(paths.TOPICS) == whole.tree(paths.TOPICS)


async def test_the_size_of_a_step_is_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    """The event loop runs between two steps: 60,000 states took a third of a second in one step."""
    made = await world()
    sizes: list[int] = []
    iterations_at: list[int] = []
    iterations = 0

    def noted(cluster, change, expected, present):
        sizes.append(len(change.rows))
        iterations_at.append(iterations)
        return groups_of(cluster, change, expected, present)

    async def count() -> None:
        nonlocal iterations
        while True:
            iterations += 1
            await asyncio.sleep(0)

    monkeypatch.setattr(store_module, "STATES_PER_STEP", 3)
    monkeypatch.setattr(store_module, "groups_of", noted)
    counting = asyncio.create_task(count())
    outcome = await committed(made)
    counting.cancel()
    assert outcome.is_whole
    assert sum(sizes) == PARTITIONS
    assert max(sizes) <= 3
    assert len(set(iterations_at)) == len(iterations_at)


async def test_a_fence_that_does_not_hold_ends_all_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    """C5: another controller has raised the epoch; no part of the change is written, and no task is left."""
    monkeypatch.setattr(store_module, "STATES_PER_STEP", 3)
    made = await world()
    before = made.tree(paths.TOPICS)
    made.server.put(paths.CONTROLLER_EPOCH, b"10")
    with pytest.raises(TermEndedError):
        await committed(made)
    await asyncio.sleep(0)
    assert made.tree(paths.TOPICS) == before
    for _ in range(10):
        await asyncio.sleep(0)
    assert asyncio.all_tasks() == {asyncio.current_task()}

"""Writes of many groups in few transactions: exactly the stale groups are not written, however many there are."""

import asyncio
from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from controller_core.shell.active import TermEndedError
from controller_core.shell.store import Outcome
from controller_core.shell.zookeeper import removal as removal_module
from controller_core.shell.zookeeper.batches import MAX_RETRIES_PER_BATCH, may_be_there
from controller_core.shell.zookeeper.store import MAX_BATCHES_IN_FLIGHT, Store
from controller_core.zookeeper_mode.transitions import apply
from kafka_zookeeper import paths, writes
from kafka_zookeeper.writes import MAX_BATCH_OPERATIONS, MultiResult, Operation, Refused, RefusedReason
from tests.controller_core.shell.zookeeper.fake_zookeeper import Fault
from tests.controller_core.shell.zookeeper.vocabulary import read_change
from tests.controller_core.shell.zookeeper.world import NO_READ, World


async def topic_of(partitions: int) -> World:
    """A world with a topic whose partitions all have a state."""
    world = World()
    await world.do("written new t " + " ".join(f"{number}=1,2" for number in range(partitions)))
    await world.do("written states " + " ".join(f"t-{number}=1/0/1,2" for number in range(partitions)))
    return world


async def elect(world: World, partitions: int) -> Outcome:
    """Elect broker 2 as the leader of all partitions."""
    change = read_change(world.cluster, "states " + " ".join(f"t-{number}=2/1/2" for number in range(partitions)))
    return await world.store.commit(world.cluster, [change], NO_READ)


def versions(world: World, partitions: int) -> list[int]:
    """Versions of the states' znodes."""
    return [world.server.at(paths.partition_state("t", number)).version for number in range(partitions)]


def recorded(world: World) -> list[Sequence[Operation]]:
    """Record every transaction, and check how many are in flight at once."""
    seen: list[Sequence[Operation]] = []
    multi, in_flight = world.session.multi, 0

    async def record(operations: Sequence[Operation]) -> MultiResult:
        nonlocal in_flight
        seen.append(operations)
        in_flight += 1
        assert in_flight <= MAX_BATCHES_IN_FLIGHT
        try:
            return await multi(operations)
        finally:
            in_flight -= 1

    world.session.multi = record
    return seen


@pytest.mark.shows("C4")
@settings(deadline=None, max_examples=60)
@given(st.lists(st.booleans(), min_size=1, max_size=12), st.integers(2, 6))
def test_exactly_the_stale_groups_are_not_written(stale: list[bool], operations: int) -> None:
    """C4: no other process's write is overwritten; all other states are written, whatever else is in their transaction."""

    async def live() -> None:
        world = await topic_of(len(stale))
        for number, is_stale in enumerate(stale):
            if is_stale:
                world.run_other(f"rewrite {paths.partition_state('t', number)}")
        outcome = await elect(world, len(stale))

        expected = [number for number, is_stale in enumerate(stale) if is_stale]
        assert sorted(outcome.stale_rows) == expected
        assert versions(world, len(stale)) == [1] * len(stale)
        committed = [row for change in outcome.committed for row in change.rows.tolist()]
        assert committed == [number for number, is_stale in enumerate(stale) if not is_stale]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(writes, "MAX_BATCH_OPERATIONS", operations)
        asyncio.run(live())


async def test_a_thousand_states_are_written_in_few_transactions() -> None:
    """`kafka_zookeeper.writes`: 500 operations each, including the fence; at most eight in flight."""
    world = await topic_of(1_100)
    seen = recorded(world)
    outcome = await elect(world, 1_100)

    assert outcome.is_whole
    assert [len(operations) for operations in seen] == [500, 500, 103]
    assert all(len(operations) <= MAX_BATCH_OPERATIONS for operations in seen)
    assert {operations[0].path for operations in seen} == {paths.CONTROLLER_EPOCH}


@pytest.mark.slow
async def test_one_read_finds_that_all_states_are_stale() -> None:
    """There is no attempt for each of them."""
    world = await topic_of(499)
    for number in range(499):
        world.run_other(f"rewrite {paths.partition_state('t', number)}")
    seen = recorded(world)
    outcome = await elect(world, 499)

    assert len(outcome.stale_rows) == 499
    assert len(seen) == 1


async def test_retries_are_limited_while_another_process_keeps_writing() -> None:
    """The remaining states are read again and the event is decided again."""
    world = await topic_of(10)
    for number in range(10):
        world.run_other(f"before write rewrite {paths.partition_state('t', number)}")
    seen = recorded(world)
    outcome = await elect(world, 10)

    assert len(seen) == 1 + MAX_RETRIES_PER_BATCH
    assert sorted(outcome.stale_rows) == list(range(10))


async def test_only_the_transaction_without_an_answer_is_unknown() -> None:
    """The other one is committed."""
    world = await topic_of(600)
    world.server.faults += [Fault.DONE]
    outcome = await elect(world, 600)

    assert outcome.unknown
    assert sorted(outcome.stale_rows) == list(range(499))
    assert versions(world, 600) == [1] * 600


async def test_a_refusal_that_a_read_does_not_explain_is_not_repeated_forever(caplog: pytest.LogCaptureFixture) -> None:
    """For example an ACL: the culprit is removed and logged, the others are committed."""
    world = await topic_of(3)
    world.server.faults += [Refused(2, RefusedReason.NO_AUTH, "NoAuthError")]
    outcome = await elect(world, 3)

    assert outcome.stale_rows == [1]
    assert versions(world, 3) == [1, 0, 1]
    (record,) = [record for record in caplog.records if "non-retriable" in record.getMessage()]
    assert (vars(record)["path"], vars(record)["reason"]) == (paths.partition_state("t", 1), "no auth")


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("/config/topics/state", True),
        ("/admin/delete_topics/state", True),
        ("/brokers/topics/state", False),
        ("/brokers/topics/state/partitions", True),
        ("/brokers/topics/partitions/partitions/0", True),
        ("/brokers/topics/partitions/partitions/0/state", False),
        (paths.PRODUCER_ID_BLOCK, False),
    ],
)
def test_only_znodes_without_significant_data_may_exist_already(path: str, expected: bool) -> None:
    """A topic may have the name of any other znode."""
    assert may_be_there(path) == expected


async def test_a_large_topic_is_removed_in_several_transactions_and_its_queued_name_last() -> None:
    """Protocol notes, Z80: a controller that finds the name in the queue continues the deletion."""
    world = await topic_of(300)
    await world.do("commit queue t")
    seen = recorded(world)
    outcome = await world.store.commit(world.cluster, [read_change(world.cluster, "remove t")], NO_READ)

    assert outcome.is_whole
    assert [len(operations) for operations in seen] == [500, 103, 4]
    assert [operation.path for operation in seen[-1][1:]] == [
        paths.topic("t"),
        paths.topic_config("t"),
        paths.delete_topic("t"),
    ]
    assert world.server.children(paths.TOPICS) == []


async def test_an_interrupted_removal_is_continued_by_the_next_controller() -> None:
    """C5: the controller is deposed during the removal; the next one finds the name in the queue, and the remaining znodes."""
    world = await topic_of(300)
    await world.do("commit queue t")
    world.run_other("before write nothing")
    world.run_other("before write another controller")
    with pytest.raises(TermEndedError):
        await world.store.commit(world.cluster, [read_change(world.cluster, "remove t")], NO_READ)
    assert world.server.children(paths.DELETE_TOPICS) == ["t"]
    assert 0 < len(world.server.children(f"{paths.topic('t')}/partitions")) < 300

    next_store = Store(world.server.session(), world.server.at(paths.CONTROLLER_EPOCH).version)
    outcome = await next_store.commit(world.cluster, [read_change(world.cluster, "remove t")], NO_READ)

    assert outcome.is_whole
    assert [*world.server.children(paths.TOPICS), *world.server.children(paths.DELETE_TOPICS)] == []


async def test_a_topic_with_too_many_levels_below_it_stays_queued(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The depth is limited; an administrator has to check such a topic."""
    monkeypatch.setattr(removal_module, "MAX_TRIES", 2)
    world = await topic_of(1)
    apply(world.cluster, read_change(world.cluster, "queued t"))
    world.server.put(paths.topic("t") + "/1/2/3/4/5/6/7/8/9")
    outcome = await world.store.commit(world.cluster, [read_change(world.cluster, "remove t")], NO_READ)

    assert outcome.unknown
    assert world.server.children(paths.TOPICS) == ["t"]

"""Many groups in few transactions: exactly what is stale is left out, however much of it there is."""

import asyncio
from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from controller_core.decisions.transition import apply
from controller_core.shell.active import TermEndedError
from controller_core.shell.store import Outcome
from controller_core.shell.zookeeper import batches as batches_module
from controller_core.shell.zookeeper import removal as removal_module
from controller_core.shell.zookeeper.batches import MAX_RETRIES_PER_BATCH, may_be_there
from controller_core.shell.zookeeper.store import MAX_BATCHES_IN_FLIGHT, Store
from kafka_zookeeper import paths
from kafka_zookeeper.writes import MAX_BATCH_OPERATIONS, MultiResult, Operation, Refused, RefusedReason
from tests.controller_core.shell.zookeeper.fake_zookeeper import Fault
from tests.controller_core.shell.zookeeper.vocabulary import read_change
from tests.controller_core.shell.zookeeper.world import World


async def topic_of(partitions: int) -> World:
    """A topic whose partitions all have a state."""
    world = World()
    await world.do("written new t " + " ".join(f"{number}=1,2" for number in range(partitions)))
    await world.do("written states " + " ".join(f"t-{number}=1/0/1,2" for number in range(partitions)))
    return world


async def elect(world: World, partitions: int) -> Outcome:
    """Let broker 2 lead all of them."""
    change = read_change(world.cluster, "states " + " ".join(f"t-{number}=2/1/2" for number in range(partitions)))
    return await world.store.commit(world.cluster, [change])


def versions(world: World, partitions: int) -> list[int]:
    """Versions of the states' znodes."""
    return [world.server.at(paths.partition_state("t", number)).version for number in range(partitions)]


def spied_on(world: World) -> list[Sequence[Operation]]:
    """Note every transaction, and how many are under way at once."""
    seen: list[Sequence[Operation]] = []
    multi, under_way = world.session.multi, 0

    async def noted(operations: Sequence[Operation]) -> MultiResult:
        nonlocal under_way
        seen.append(operations)
        under_way += 1
        assert under_way <= MAX_BATCHES_IN_FLIGHT
        try:
            return await multi(operations)
        finally:
            under_way -= 1

    world.session.multi = noted  # type: ignore[method-assign]
    return seen


@pytest.mark.shows("C4")
@settings(deadline=None, max_examples=60)
@given(st.lists(st.booleans(), min_size=1, max_size=12), st.integers(2, 6))
def test_exactly_what_is_stale_is_left_out(stale: list[bool], operations: int) -> None:
    """C4: nobody's write is written over; everybody else's state is written, whatever travels with it."""

    async def live() -> None:
        world = await topic_of(len(stale))
        for number, is_stale in enumerate(stale):
            if is_stale:
                world.happens(f"again {paths.partition_state('t', number)}")
        outcome = await elect(world, len(stale))

        expected = [number for number, is_stale in enumerate(stale) if is_stale]
        assert sorted(outcome.stale_rows) == expected
        assert versions(world, len(stale)) == [1] * len(stale)
        committed = [row for change in outcome.committed for row in change.rows.tolist()]  # type: ignore[union-attr]
        assert [number for number, is_stale in enumerate(stale) if not is_stale] == committed

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(batches_module.writes, "MAX_BATCH_OPERATIONS", operations)
        asyncio.run(live())


async def test_a_thousand_states_travel_in_few_transactions() -> None:
    """Kafka_zookeeper.writes: 500 operations in one, the fence included; eight under way at most."""
    world = await topic_of(1_100)
    seen = spied_on(world)
    outcome = await elect(world, 1_100)

    assert outcome.is_whole
    assert [len(operations) for operations in seen] == [500, 500, 103]
    assert all(len(operations) <= MAX_BATCH_OPERATIONS for operations in seen)
    assert {operations[0].path for operations in seen} == {paths.CONTROLLER_EPOCH}


async def test_where_all_of_five_hundred_are_stale_one_look_tells() -> None:
    """Not a round for each of them."""
    world = await topic_of(499)
    for number in range(499):
        world.happens(f"again {paths.partition_state('t', number)}")
    seen = spied_on(world)
    outcome = await elect(world, 499)

    assert len(outcome.stale_rows) == 499
    assert len(seen) == 1


async def test_somebody_who_goes_on_writing_is_given_way_to_after_some_looks() -> None:
    """A limit on everything: the rest is read again and decided anew."""
    world = await topic_of(10)
    for number in range(10):
        world.happens(f"meanwhile again {paths.partition_state('t', number)}")
    seen = spied_on(world)
    outcome = await elect(world, 10)

    assert len(seen) == 1 + MAX_RETRIES_PER_BATCH
    assert list(range(10)) == sorted(outcome.stale_rows)


async def test_of_two_transactions_the_one_that_is_not_heard_of_is_unknown() -> None:
    """The other one is written."""
    world = await topic_of(600)
    world.server.faults += [Fault.DONE]
    outcome = await elect(world, 600)

    assert outcome.unknown
    assert list(range(499)) == sorted(outcome.stale_rows)
    assert versions(world, 600) == [1] * 600


async def test_a_refusal_that_no_look_explains_is_not_repeated_for_ever(caplog: pytest.LogCaptureFixture) -> None:
    """An ACL, say: the culprit is left out, the others go through, and somebody is told."""
    world = await topic_of(3)
    world.server.faults += [Refused(2, RefusedReason.NO_AUTH, "NoAuthError")]
    outcome = await elect(world, 3)

    assert outcome.stale_rows == [1]
    assert versions(world, 3) == [1, 0, 1]
    (record,) = [record for record in caplog.records if "non-retriable" in record.getMessage()]
    assert (paths.partition_state("t", 1), "no auth") == (record.path, record.reason)


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
def test_only_what_says_nothing_may_be_there_already(path: str, expected: bool) -> None:
    """A topic may be called like any other znode."""
    assert may_be_there(path) == expected


async def test_a_topic_of_hundreds_of_partitions_is_removed_in_several_transactions_and_its_name_last() -> None:
    """Protocol notes, Z80: whoever finds the name in the queue goes on."""
    world = await topic_of(300)
    await world.do("commit queue t")
    seen = spied_on(world)
    outcome = await world.store.commit(world.cluster, [read_change(world.cluster, "remove t")])

    assert outcome.is_whole
    assert [len(operations) for operations in seen] == [500, 103, 4]
    assert [one.path for one in seen[-1][1:]] == [paths.topic("t"), paths.topic_config("t"), paths.delete_topic("t")]
    assert world.server.children(paths.TOPICS) == []


async def test_a_removal_that_another_controller_cuts_short_is_taken_up_by_it() -> None:
    """C5: we are deposed half-way; the next controller finds the name in the queue, and what is left."""
    world = await topic_of(300)
    await world.do("commit queue t")
    world.happens("quietly")
    world.happens("meanwhile another controller")
    with pytest.raises(TermEndedError):
        await world.store.commit(world.cluster, [read_change(world.cluster, "remove t")])
    assert world.server.children(paths.DELETE_TOPICS) == ["t"]
    assert 0 < len(world.server.children(f"{paths.topic('t')}/partitions")) < 300

    next_store = Store(world.server.session(), world.server.at(paths.CONTROLLER_EPOCH).version)  # type: ignore[arg-type]
    outcome = await next_store.commit(world.cluster, [read_change(world.cluster, "remove t")])

    assert outcome.is_whole
    assert [*world.server.children(paths.TOPICS), *world.server.children(paths.DELETE_TOPICS)] == []


async def test_what_is_deeper_below_a_topic_than_anybody_writes_keeps_it_queued(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A limit on everything; somebody has to look at it."""
    monkeypatch.setattr(removal_module, "MAX_TRIES", 2)
    world = await topic_of(1)
    apply(world.cluster, read_change(world.cluster, "queued t"))
    world.server.put(paths.topic("t") + "/1/2/3/4/5/6/7/8/9")
    outcome = await world.store.commit(world.cluster, [read_change(world.cluster, "remove t")])

    assert outcome.unknown
    assert world.server.children(paths.TOPICS) == ["t"]

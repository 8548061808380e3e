"""Whose turn it is: laws of admission against a plain twin, order, cancellation, overload."""

import asyncio
from collections.abc import AsyncIterator, Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from controller_core.model import scope
from controller_core.model.ids import TopicPartition
from controller_core.model.scope import ALL, NOTHING, Scope
from controller_core.shell import turns as turns_module
from controller_core.shell.active import OverloadedError
from controller_core.shell.turns import Turns, admissible

TOPICS = st.frozensets(st.sampled_from("abc"), max_size=2)
PARTITIONS = st.frozensets(
    st.builds(TopicPartition, st.sampled_from("abc"), st.integers(0, 1)),
    max_size=2,
)
SCOPES = st.one_of(
    st.builds(Scope, topics=TOPICS, partitions=PARTITIONS),
    st.just(ALL),
    st.just(NOTHING),
)
MANY = st.lists(SCOPES, max_size=8)
A, B = scope.topics(["a"]), scope.topics(["b"])
A0, A1 = (scope.partitions([TopicPartition("a", partition)]) for partition in (0, 1))


def plainly_admissible(running: Sequence[Scope], waiting: Sequence[Scope]) -> list[int]:
    """The rule as it reads, one scope against each that runs or waits before it."""
    return [
        place
        for place, mine in enumerate(waiting)
        if not any(mine.meets(other) for other in (*running, *waiting[:place]))
    ]


@settings(deadline=None)
@given(MANY, MANY)
def test_admission_agrees_with_its_plain_twin(running: list[Scope], waiting: list[Scope]) -> None:
    """Style.md, habit 14: many scopes put together are met as each of them is."""
    assert plainly_admissible(running, waiting) == admissible(running, waiting)


@settings(deadline=None)
@given(SCOPES, SCOPES)
def test_meeting_is_mutual(mine: Scope, other: Scope) -> None:
    """Who is met has to wait as well, whoever came first."""
    assert mine.meets(other) == other.meets(mine)


@settings(deadline=None)
@given(MANY, MANY)
def test_those_who_run_together_do_not_meet(running: list[Scope], waiting: list[Scope]) -> None:
    """Design: a decision is never made on a state that another one is about to change."""
    admitted = admissible(running, waiting)
    together = [*running, *(waiting[place] for place in admitted)]

    assert [] == [
        (place, other)
        for place in range(len(running), len(together))
        for other in range(place)
        if together[place].meets(together[other])
    ]


@settings(deadline=None)
@given(MANY)
def test_whoever_is_first_starts_when_nobody_runs(waiting: list[Scope]) -> None:
    """So nobody waits for ever."""
    assert ([0] if waiting else []) == admissible([], waiting)[:1]


class Crowd:
    """Events that take their turns and hold them until they are told to end."""

    def __init__(self) -> None:
        self.turns = Turns()
        self.began: list[int] = []
        self._ends: list[asyncio.Event] = []
        self._tasks: list[asyncio.Task[None]] = []

    async def arrive(self, *scopes: Scope) -> None:
        """Ask for a turn, for each scope."""
        for mine in scopes:
            self._ends.append(asyncio.Event())
            self._tasks.append(asyncio.create_task(self._live(len(self._tasks), mine)))
        await settled()

    async def end(self, *numbers: int) -> None:
        """Let events end."""
        for number in numbers:
            self._ends[number].set()
        await settled()

    async def cancel(self, *numbers: int) -> None:
        """Cancel events, in one go."""
        for number in numbers:
            self._tasks[number].cancel()
        await settled()

    def running(self) -> list[int]:
        """Events that hold their turn."""
        return [number for number in self.began if not self._tasks[number].done()]

    async def _live(self, number: int, mine: Scope) -> None:
        async with self.turns.take(mine):
            self.began.append(number)
            await self._ends[number].wait()

    async def close(self) -> None:
        """End all."""
        await self.cancel(*range(len(self._tasks)))
        await asyncio.gather(*self._tasks, return_exceptions=True)


async def settled() -> None:
    """Let everything run that can."""
    for _ in range(10):
        await asyncio.sleep(0)


@pytest.fixture
async def crowd() -> AsyncIterator[Crowd]:
    """A crowd that ends with its test."""
    crowd = Crowd()
    yield crowd
    await crowd.close()


async def test_events_of_different_partitions_run_at_the_same_time(crowd: Crowd) -> None:
    """Design, pipelining: events on partitions with a write in flight wait, all others go on."""
    await crowd.arrive(A0, A1, B)

    assert [0, 1, 2] == crowd.running()


async def test_events_of_one_topic_take_turns_in_the_order_they_came(crowd: Crowd) -> None:
    """A topic's event waits for those of its partitions, and these for it."""
    await crowd.arrive(A0, A, A1)
    assert [0] == crowd.running()
    await crowd.end(0)
    assert [1] == crowd.running()
    await crowd.end(1)
    assert [2] == crowd.running()


async def test_nobody_overtakes_an_event_that_waits_for_everything(crowd: Crowd) -> None:
    """A stream of small events never starves a look at everything."""
    await crowd.arrive(A, ALL, B)
    assert [0] == crowd.running()
    await crowd.end(0)
    assert [1] == crowd.running()
    await crowd.end(1)
    assert [2] == crowd.running()


async def test_one_that_is_cancelled_while_it_waits_holds_up_nobody(crowd: Crowd) -> None:
    """A caller that hangs up leaves the queue."""
    await crowd.arrive(A, ALL, B)
    await crowd.cancel(1)
    assert [0, 2] == crowd.running()
    assert 0 == crowd.turns.waiting


async def test_one_that_is_cancelled_while_it_runs_ends_its_turn(crowd: Crowd) -> None:
    """However a turn ends, the next one begins."""
    await crowd.arrive(A, A)
    await crowd.cancel(0)
    assert [1] == crowd.running()


async def test_one_that_is_cancelled_between_admission_and_its_first_step_gives_its_turn_on(crowd: Crowd) -> None:
    """The turn was given and not begun: it must not be held by somebody who is gone."""
    await crowd.arrive(A, A, A)
    crowd._ends[0].set()
    while crowd._tasks[0] in asyncio.all_tasks():  # noqa: ASYNC110 - to the very step in which the first one ends
        await asyncio.sleep(0)
    await crowd.cancel(1)
    assert [2] == crowd.running()
    assert [0, 2] == crowd.began


async def test_a_failure_ends_its_turn(crowd: Crowd) -> None:
    """As does every other way out of it."""
    with pytest.raises(ZeroDivisionError):
        async with crowd.turns.take(ALL):
            raise ZeroDivisionError
    await crowd.arrive(ALL)
    assert [0] == crowd.running()


async def test_too_many_that_wait_are_refused_and_the_others_go_on(
    crowd: Crowd, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A limit on everything: the caller gets a retriable error at once instead of an answer after its time-out."""
    monkeypatch.setattr(turns_module, "MAX_WAITING", 3)
    await crowd.arrive(ALL, A, A, A)
    with pytest.raises(OverloadedError, match="3 events wait"):
        async with crowd.turns.take(A):
            pass
    await crowd.end(0, 1)
    assert [2] == crowd.running()


@settings(deadline=None, max_examples=60)
@given(st.data())
def test_turns_follow_the_plain_rule_whatever_comes_ends_or_is_cancelled(data: st.DataObject) -> None:
    """FIFO among those that meet: after each step exactly those run who meet nobody before them that is still there."""

    async def live() -> None:
        crowd = Crowd()
        scopes: list[Scope] = []
        there: list[int] = []
        expected: list[int] = []
        for _ in range(data.draw(st.integers(1, 12))):
            step = data.draw(st.sampled_from(["arrive", "end", "cancel"] if there else ["arrive"]))
            if step == "arrive":
                new = data.draw(SCOPES)
                there.append(len(scopes))
                scopes.append(new)
                await crowd.arrive(new)
            else:
                # Only those who run can end; anybody can be cancelled.
                chosen = data.draw(st.sampled_from(expected if step == "end" and expected else there))
                there.remove(chosen)
                await (crowd.end(chosen) if chosen in expected else crowd.cancel(chosen))
            running = [number for number in there if number in expected]
            waiting = [number for number in there if number not in expected]
            admitted = plainly_admissible([scopes[one] for one in running], [scopes[one] for one in waiting])
            expected = sorted([*running, *(waiting[place] for place in admitted)])
            assert expected == sorted(crowd.running())
            assert len(there) - len(expected) == crowd.turns.waiting
        await crowd.close()

    asyncio.run(live())

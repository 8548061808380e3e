"""Event scheduler: laws of admission against a plain twin; order, priority, cancellation, overload."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from controller_core.model import TopicPartition, scope
from controller_core.model.scope import ALL, Scope
from controller_core.shell import scheduler
from controller_core.shell import scheduler as scheduler_module
from controller_core.shell.active import OverloadedError
from controller_core.shell.scheduler import CLIENT, CLIENT_HANDICAP, OWN, Scheduler, ScopeLocks, Source, SourceKind
from tests.twins.scope import overlap

TOPICS = st.frozensets(st.sampled_from("abc"), max_size=2)
PARTITIONS = st.frozensets(
    st.builds(TopicPartition, st.sampled_from("abc"), st.integers(0, 1)),
    max_size=2,
)
SCOPES = st.one_of(
    st.builds(Scope, topics=TOPICS, partitions=PARTITIONS),
    st.just(ALL),
    st.just(Scope()),
)
MANY = st.lists(SCOPES, max_size=8)
A, B = scope.topics(["a"]), scope.topics(["b"])
A0, A1 = (scope.partitions([TopicPartition("a", partition)]) for partition in (0, 1))


def plain_admissible(running: Sequence[Scope], waiting: Sequence[Scope]) -> list[int]:
    """The rule without optimisation: one scope against each that runs or waits before it."""
    return [
        place
        for place, mine in enumerate(waiting)
        if not any(overlap(mine, other) for other in (*running, *waiting[:place]))
    ]


@settings(deadline=None)
@given(SCOPES, SCOPES)
def test_overlap_is_symmetric(mine: Scope, other: Scope) -> None:
    """Of two overlapping scopes each waits for the other, whichever came first."""
    assert overlap(mine, other) == overlap(other, mine)


@settings(deadline=None)
@given(MANY)
def test_locks_agree_with_their_plain_twin(waiting: list[Scope]) -> None:
    """Locks on topics and partitions admit the same events as pairwise comparison of scopes."""
    locks = ScopeLocks()
    claims = [locks.claim(scope, (place, place)) for place, scope in enumerate(waiting)]

    assert [place for place, claim in enumerate(claims) if locks.is_free(claim)] == plain_admissible([], waiting)


@settings(deadline=None)
@given(MANY, st.randoms(use_true_random=False))
def test_released_locks_take_no_memory(waiting: list[Scope], random: Random) -> None:
    """In any order of release."""
    locks = ScopeLocks()
    claims = [locks.claim(scope, (place, place)) for place, scope in enumerate(waiting)]
    random.shuffle(claims)
    for claim in claims:
        locks.release(claim)

    assert locks._queues == {}


class Crowd:
    """Events that hold their scope until the test ends them."""

    def __init__(self) -> None:
        self.scheduler = Scheduler()
        self.began: list[int] = []
        self._ends: list[asyncio.Event] = []
        self._tasks: list[asyncio.Task[None]] = []

    async def arrive(self, *scopes: Scope, source: Source = OWN) -> None:
        """Submit an event for each scope."""
        for mine in scopes:
            self._ends.append(asyncio.Event())
            self._tasks.append(asyncio.create_task(self._live(len(self._tasks), mine, source)))
        await settled()

    async def end(self, *numbers: int) -> None:
        """Let events end."""
        for number in numbers:
            self._ends[number].set()
        await settled()

    async def cancel(self, *numbers: int) -> None:
        """Cancel events, all at once."""
        for number in numbers:
            self._tasks[number].cancel()
        await settled()

    def running(self) -> list[int]:
        """Events that hold their scope."""
        return [number for number in self.began if not self._tasks[number].done()]

    async def _live(self, number: int, mine: Scope, source: Source) -> None:
        async with self.scheduler.run_exclusively(mine, source):
            self.began.append(number)
            await self._ends[number].wait()

    async def close(self) -> None:
        """End all events."""
        await self.cancel(*range(len(self._tasks)))
        await asyncio.gather(*self._tasks, return_exceptions=True)


async def settled() -> None:
    """Let all runnable tasks run."""
    for _ in range(10):
        await asyncio.sleep(0)


@pytest.fixture
async def crowd() -> AsyncIterator[Crowd]:
    """A crowd that ends with its test."""
    crowd = Crowd()
    yield crowd
    await crowd.close()


async def test_events_of_different_partitions_run_at_the_same_time(crowd: Crowd) -> None:
    """`shell.scheduler`: events on partitions with a write in flight wait, all others run."""
    await crowd.arrive(A0, A1, B)

    assert crowd.running() == [0, 1, 2]


async def test_events_of_one_topic_run_in_the_order_of_arrival(crowd: Crowd) -> None:
    """A topic's event waits for those of its partitions, and these for it."""
    await crowd.arrive(A0, A, A1)
    assert crowd.running() == [0]
    await crowd.end(0)
    assert crowd.running() == [1]
    await crowd.end(1)
    assert crowd.running() == [2]


async def test_no_event_overtakes_one_that_waits_for_everything(crowd: Crowd) -> None:
    """A stream of small events never starves a periodic check."""
    await crowd.arrive(A, ALL, B)
    assert crowd.running() == [0]
    await crowd.end(0)
    assert crowd.running() == [1]
    await crowd.end(1)
    assert crowd.running() == [2]


async def test_an_event_cancelled_while_it_waits_delays_no_other(crowd: Crowd) -> None:
    """Its claim leaves the queue."""
    await crowd.arrive(A, ALL, B)
    await crowd.cancel(1)
    assert crowd.running() == [0, 2]
    assert crowd.scheduler.waiting == 0


async def test_an_event_cancelled_while_it_runs_releases_its_scope(crowd: Crowd) -> None:
    """The next event begins."""
    await crowd.arrive(A, A)
    await crowd.cancel(0)
    assert crowd.running() == [1]


async def test_an_event_cancelled_between_admission_and_its_first_step_releases_its_scope(crowd: Crowd) -> None:
    """It was admitted and has not run yet."""
    await crowd.arrive(A, A, A)
    crowd._ends[0].set()
    while crowd._tasks[0] in asyncio.all_tasks():  # noqa: ASYNC110 - up to the very step in which the first event ends
        await asyncio.sleep(0)
    await crowd.cancel(1)
    assert crowd.running() == [2]
    assert crowd.began == [0, 2]


async def test_a_failed_event_releases_its_scope(crowd: Crowd) -> None:
    """As an event that succeeds."""
    with pytest.raises(ZeroDivisionError):
        async with crowd.scheduler.run_exclusively(ALL):
            raise ZeroDivisionError
    await crowd.arrive(ALL)
    assert crowd.running() == [0]


BROKER_1, BROKER_2 = Source(SourceKind.BROKER, 1), Source(SourceKind.BROKER, 2)


async def test_too_many_events_of_clients_are_refused_and_the_others_run(
    crowd: Crowd, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A limit on everything: the caller gets a retriable error at once instead of an answer after its time-out."""
    monkeypatch.setattr(scheduler, "MAX_CLIENT_WAITING", 3)
    await crowd.arrive(ALL, A, A, A, source=CLIENT)
    with pytest.raises(OverloadedError, match=r"source \(client\): the limit is 3"):
        async with crowd.scheduler.run_exclusively(A, CLIENT):
            pass
    await crowd.end(0, 1)
    assert crowd.running() == [2]


async def test_each_source_has_its_own_limit(crowd: Crowd, monkeypatch: pytest.MonkeyPatch) -> None:
    """Clients at their limit do not limit brokers, nor one broker another; the controller has no limit."""
    monkeypatch.setattr(scheduler, "MAX_CLIENT_WAITING", 2)
    monkeypatch.setattr(scheduler, "MAX_WAITING_PER_BROKER", 1)
    await crowd.arrive(ALL)
    await crowd.arrive(A, A, source=CLIENT)
    await crowd.arrive(A, source=BROKER_1)
    with pytest.raises(OverloadedError, match=r"source \(broker 1\): the limit is 1"):
        async with crowd.scheduler.run_exclusively(A, BROKER_1):
            pass
    await crowd.arrive(A, source=BROKER_2)
    await crowd.arrive(*[ALL] * 10)

    assert crowd.scheduler.waiting == 2 + 1 + 1 + 10


async def test_brokers_and_the_controller_pass_clients(crowd: Crowd) -> None:
    """An AlterPartition does not wait for earlier requests of tools; those keep their order."""
    await crowd.arrive(ALL)
    await crowd.arrive(A, A, source=CLIENT)
    await crowd.arrive(A0, source=BROKER_1)
    await crowd.arrive(ALL)
    for number in (0, 3, 4, 1, 2):
        await crowd.end(number)

    assert crowd.began == [0, 3, 4, 1, 2]


async def test_an_event_of_a_client_is_passed_a_limited_number_of_times(
    crowd: Crowd, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A broker that never pauses does not make a client wait forever."""
    monkeypatch.setattr(scheduler_module, "CLIENT_HANDICAP", 4)
    await crowd.arrive(A)
    await crowd.arrive(A, source=CLIENT)
    await crowd.arrive(*[A] * 5, source=BROKER_1)
    for number in (0, 2, 3, 4, 1):
        await crowd.end(number)

    assert crowd.began == [0, 2, 3, 4, 1, 5]
    assert CLIENT_HANDICAP > scheduler.MAX_CLIENT_WAITING


async def test_a_running_event_is_not_passed(crowd: Crowd) -> None:
    """A client's running event ends before overlapping ones begin."""
    await crowd.arrive(A, source=CLIENT)
    await crowd.arrive(A, ALL, source=BROKER_1)
    assert crowd.running() == [0]
    await crowd.end(0)
    assert crowd.running() == [1]


@settings(deadline=None, max_examples=60)
@given(st.data())
def test_admissions_follow_the_plain_rule_for_any_arrivals_ends_and_cancellations(data: st.DataObject) -> None:
    """FIFO among overlapping events: after each step exactly those run that overlap no earlier event."""

    async def run_steps() -> None:
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
                # Only running events can end; any event can be cancelled.
                chosen = data.draw(st.sampled_from(expected if step == "end" and expected else there))
                there.remove(chosen)
                await (crowd.end(chosen) if chosen in expected else crowd.cancel(chosen))
            running = [number for number in there if number in expected]
            waiting = [number for number in there if number not in expected]
            admitted = plain_admissible([scopes[event] for event in running], [scopes[event] for event in waiting])
            expected = sorted([*running, *(waiting[place] for place in admitted)])
            assert sorted(crowd.running()) == expected
            assert len(there) - len(expected) == crowd.scheduler.waiting
        await crowd.close()

    asyncio.run(run_steps())

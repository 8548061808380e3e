"""Purgatory. Source: Kafka's DelayedOperationPurgatory and DelayedOperationTest."""

from dataclasses import dataclass, field

import pytest
from hypothesis import given
from hypothesis import strategies as st

from light_broker.core.purgatory import MIN_STALE_DEADLINES, Purgatory


@dataclass(eq=False)
class Waits:
    """An operation that is satisfied when the test sets it so, and notes how it completed."""

    is_ready: bool = False
    examined: list[str | None] = field(default_factory=list)
    completions: list[bool] = field(default_factory=list)
    """For each completion whether the operation had expired."""

    def is_satisfied(self, key: str | None) -> bool:
        self.examined.append(key)
        return self.is_ready

    def complete(self, *, expired: bool) -> None:
        self.completions.append(expired)


@pytest.mark.shows("B6")
def test_an_operation_that_is_satisfied_at_once_does_not_wait() -> None:
    """B6."""
    purgatory: Purgatory[str] = Purgatory()
    operation = Waits(is_ready=True)

    assert purgatory.add(operation, ["a"], 10) is None
    assert (operation.completions, len(purgatory), purgatory.next_deadline_ms) == ([False], 0, None)


@pytest.mark.shows("B6")
def test_a_change_completes_only_the_operations_under_its_key() -> None:
    """B6."""
    purgatory: Purgatory[str] = Purgatory()
    first, second = Waits(), Waits()
    purgatory.add(first, ["a", "b"], 10)
    purgatory.add(second, ["b"], 10)
    first.is_ready = second.is_ready = True

    assert purgatory.check("a") == 1
    assert (first.completions, second.completions) == ([False], [])
    assert purgatory.check("b") == 1
    assert (first.completions, second.completions) == ([False], [False])


@pytest.mark.shows("B6")
def test_an_operation_expires_at_its_deadline_only_if_it_still_waits() -> None:
    """B6."""
    purgatory: Purgatory[str] = Purgatory()
    early, late, done = Waits(), Waits(), Waits()
    for operation, deadline_ms in ((late, 20), (early, 10), (done, 5)):
        purgatory.add(operation, ["a"], deadline_ms)
    done.is_ready = True
    purgatory.check("a")

    assert purgatory.next_deadline_ms == 10
    assert purgatory.expire(10) == 1
    assert (early.completions, late.completions, done.completions) == ([True], [], [False])
    assert purgatory.next_deadline_ms == 20


@pytest.mark.shows("B6")
def test_a_cancelled_operation_never_completes() -> None:
    """B6: its connection is gone."""
    purgatory: Purgatory[str] = Purgatory()
    operation = Waits()
    number = purgatory.add(operation, ["a"], 10)
    assert number is not None

    assert (purgatory.cancel(number), purgatory.cancel(number)) == (True, False)
    operation.is_ready = True
    purgatory.check("a")
    purgatory.expire(10)

    assert operation.completions == []


def test_deadlines_of_completed_operations_do_not_pile_up() -> None:
    """A client that is always answered before its deadline leaves one behind for each request."""
    purgatory: Purgatory[str] = Purgatory()
    for _ in range(2 * MIN_STALE_DEADLINES):
        operation = Waits()
        purgatory.add(operation, ["a"], 1_000_000)
        operation.is_ready = True
        purgatory.check("a")

    assert len(purgatory._deadlines) <= MIN_STALE_DEADLINES + 1


@pytest.mark.shows("B6")
@given(
    steps=st.lists(
        st.one_of(
            st.tuples(st.just("add"), st.sets(st.sampled_from("abc"), min_size=1), st.integers(0, 30)),
            st.tuples(st.just("ready"), st.integers(0, 20)),
            st.tuples(st.just("check"), st.sampled_from("abc")),
            st.tuples(st.just("time"), st.integers(0, 10)),
            st.tuples(st.just("cancel"), st.integers(0, 20)),
        ),
        max_size=60,
    )
)
def test_each_operation_completes_once_or_is_cancelled(steps: list[tuple]) -> None:
    """B6: whatever happens in whatever order. At the end all time is over."""
    purgatory: Purgatory[str] = Purgatory()
    operations: list[Waits] = []
    numbers: list[int | None] = []
    cancelled: set[int] = set()
    now_ms = 0
    for step in steps:
        match step:
            case ("add", keys, wait_ms):
                operations.append(Waits())
                numbers.append(purgatory.add(operations[-1], keys, now_ms + wait_ms))
            case ("ready", index) if index < len(operations):
                operations[index].is_ready = True
            case ("check", key):
                purgatory.check(key)
            case ("time", passed_ms):
                now_ms += passed_ms
                purgatory.expire(now_ms)
            case ("cancel", index) if index < len(operations):
                number = numbers[index]
                if number is not None and purgatory.cancel(number):
                    cancelled.add(index)
    purgatory.expire(now_ms + 1_000)

    assert [len(operation.completions) for operation in operations] == [
        int(index not in cancelled) for index in range(len(operations))
    ]
    assert (len(purgatory), purgatory._by_key, purgatory.next_deadline_ms) == (0, {}, None)

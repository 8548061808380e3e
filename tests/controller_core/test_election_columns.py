"""Elections over columns: the same answers as one partition after another."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from controller_core.cluster import election
from controller_core.cluster.election import Election, Reason
from controller_core.cluster.election_columns import (
    Elections,
    close_up,
    elect_new,
    elect_no_op,
    elect_offline,
    elect_preferred,
    elect_reassigned,
    elect_shutdown,
    membership,
)
from controller_core.model.columns import IntArray, pad, unpad
from tests.controller_core.cases import MAX_BROKER, PartitionCase, ids, partition_cases

SIZE = MAX_BROKER + 1
CASES = st.lists(partition_cases(), min_size=1, max_size=20)
BROKERS = st.sets(ids())


def replicas_of(cases: list[PartitionCase]) -> IntArray:
    """Return the assignments as a column."""
    return pad([case.assignment for case in cases])


def isr_of(cases: list[PartitionCase]) -> IntArray:
    """Return the ISRs as a column, of whatever width they need."""
    return pad([case.isr for case in cases])


def leader_of(cases: list[PartitionCase]) -> IntArray:
    """Return the leaders as a column."""
    return np.array([case.leader for case in cases], dtype=np.int32)


def rows(elections: Elections, replicas: IntArray) -> list[Election]:
    """Read columns as the values that the plain twin returns."""
    return [
        Election(
            int(elections.leader[row]),
            unpad(elections.isr[row]),
            bool(elections.unclean[row]),
            Reason(elections.reason[row]),
            tuple(replicas[row][elections.receivers[row]].tolist()),
        )
        for row in range(len(replicas))
    ]


@given(CASES)
def test_no_op_agrees_row_by_row(cases: list[PartitionCase]) -> None:
    """The plain twin is election.elect_no_op."""
    replicas = replicas_of(cases)

    expected = [election.elect_no_op(case.leader, case.assignment, case.isr) for case in cases]

    assert expected == rows(elect_no_op(leader_of(cases), replicas, isr_of(cases)), replicas)


@given(CASES, BROKERS)
def test_offline_agrees_row_by_row(cases: list[PartitionCase], live: set[int]) -> None:
    """The plain twin is election.elect_offline; whether unclean is allowed differs from row to row."""
    replicas = replicas_of(cases)
    allowed = np.array([case.unclean_allowed for case in cases])

    expected = [
        election.elect_offline(case.assignment, case.isr, live, unclean_allowed=case.unclean_allowed) for case in cases
    ]

    assert expected == rows(elect_offline(replicas, isr_of(cases), membership(live, SIZE), allowed), replicas)


@given(CASES, BROKERS)
def test_reassigned_agrees_row_by_row(cases: list[PartitionCase], live: set[int]) -> None:
    """The plain twin is election.elect_reassigned."""
    targets = replicas_of(cases)

    expected = [election.elect_reassigned(case.assignment, case.isr, live) for case in cases]

    assert expected == rows(elect_reassigned(targets, isr_of(cases), membership(live, SIZE)), targets)


@given(CASES, BROKERS)
def test_preferred_agrees_row_by_row(cases: list[PartitionCase], live: set[int]) -> None:
    """The plain twin is election.elect_preferred."""
    replicas = replicas_of(cases)

    expected = [election.elect_preferred(case.leader, case.assignment, case.isr, live) for case in cases]

    elected = elect_preferred(leader_of(cases), replicas, isr_of(cases), membership(live, SIZE))
    assert expected == rows(elected, replicas)


@given(CASES, BROKERS, BROKERS)
def test_shutdown_agrees_row_by_row(cases: list[PartitionCase], live: set[int], leaving: set[int]) -> None:
    """The plain twin is election.elect_shutdown."""
    replicas = replicas_of(cases)

    expected = [election.elect_shutdown(case.assignment, case.isr, live, leaving) for case in cases]

    elected = elect_shutdown(replicas, isr_of(cases), membership(live, SIZE), membership(leaving, SIZE))
    assert expected == rows(elected, replicas)


@given(CASES, BROKERS)
def test_new_agrees_row_by_row(cases: list[PartitionCase], live: set[int]) -> None:
    """The plain twin is election.elect_new."""
    replicas = replicas_of(cases)

    expected = [election.elect_new(case.assignment, live) for case in cases]

    assert expected == rows(elect_new(replicas, membership(live, SIZE)), replicas)


@given(st.lists(st.lists(st.tuples(ids(), st.booleans()), max_size=6), min_size=1, max_size=10))
def test_closing_up_keeps_order_and_pads(lists: list[list[tuple[int, bool]]]) -> None:
    """ISRs are kept in Kafka's order and padded on the right (model.columns)."""
    padded = pad([[broker for broker, _ in pairs] for pairs in lists])
    kept = pad([[int(keep) for _, keep in pairs] for pairs in lists]) == 1

    expected = pad([[broker for broker, keep in pairs if keep] for pairs in lists], padded.shape[1])

    assert np.array_equal(expected, close_up(padded, kept))


def test_no_rows_are_no_elections() -> None:
    """An event may concern no partition at all."""
    none, live = np.zeros((0, 3), dtype=np.int32), membership([1], SIZE)

    assert 0 == len(elect_offline(none, none, live, np.zeros(0, dtype=np.bool_)).leader)
    assert 0 == len(elect_shutdown(none, none, live, live).leader)
    assert 0 == len(elect_new(none, live).leader)


def test_the_columns_given_are_left_as_they_were() -> None:
    """A decision changes nothing: only `apply` does (ARCHITECTURE.md)."""
    replicas = pad([[1, 2, 3], [2, 3, 1]])
    isr = pad([[1, 2], [2]])
    before = (replicas.copy(), isr.copy())
    live, leaving = membership([1, 3], SIZE), membership([1], SIZE)

    elect_offline(replicas, isr, live, np.array([True, True]))
    elect_shutdown(replicas, isr, live, leaving)
    elect_new(replicas, live)

    assert all(np.array_equal(old, new) for old, new in zip(before, (replicas, isr), strict=True))


def test_a_broker_id_beyond_the_flags_is_an_error_and_not_a_wrong_answer() -> None:
    """Flags are made for the highest id known; an id above them is a defect of the caller."""
    with pytest.raises(IndexError):
        elect_new(pad([[SIZE + 1]]), membership(range(SIZE), SIZE))


def test_membership_refuses_an_id_that_does_not_fit() -> None:
    """The last flag belongs to the padding and stays False."""
    with pytest.raises(AssertionError, match="broker 3 is outside"):
        membership([3], 3)

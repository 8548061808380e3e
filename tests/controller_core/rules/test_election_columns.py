"""Elections over columns: the same results as one partition after another."""

from collections.abc import Iterable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from controller_core.model import BoolArray, IntArray
from controller_core.model.columns import pad, unpad
from controller_core.rules import election
from controller_core.rules.election import Election, ElectionReason
from controller_core.rules.election_columns import (
    Elections,
    elect_new,
    elect_offline,
    elect_online,
    elect_preferred,
    elect_shutdown,
)
from tests.controller_core.cases import MAX_BROKER, PartitionCase, ids, partition_cases
from tests.twins import election as twins

SIZE = MAX_BROKER + 1
CASES = st.lists(partition_cases(), min_size=1, max_size=20)
BROKERS = st.sets(ids())


def membership(brokers: Iterable[int]) -> BoolArray:
    """Return flags by broker id; the last one is False, for the padding."""
    flags = np.zeros(SIZE + 1, dtype=np.bool_)
    flags[list(brokers)] = True
    return flags


def replicas_of(cases: list[PartitionCase]) -> IntArray:
    """Return the assignments as a column."""
    return pad([case.assignment for case in cases])


def isr_of(cases: list[PartitionCase]) -> IntArray:
    """Return the ISRs as a column of the required width."""
    return pad([case.isr for case in cases])


def leader_of(cases: list[PartitionCase]) -> IntArray:
    """Return the leaders as a column."""
    return np.array([case.leader for case in cases], dtype=np.int32)


def rows(elections: Elections) -> list[Election]:
    """Convert columns to the values that the plain twin returns."""
    return [
        Election(
            int(elections.leader[row]),
            unpad(elections.isr[row]),
            bool(elections.unclean[row]),
            ElectionReason(elections.reason[row]),
        )
        for row in range(len(elections.leader))
    ]


@given(CASES, BROKERS)
def test_offline_agrees_row_by_row(cases: list[PartitionCase], live: set[int]) -> None:
    """The plain twin is election.elect_offline; whether unclean election is allowed differs between rows."""
    replicas = replicas_of(cases)
    allowed = np.array([case.unclean_allowed for case in cases])

    expected = [
        election.elect_offline(case.assignment, case.isr, live, unclean_allowed=case.unclean_allowed) for case in cases
    ]

    assert rows(elect_offline(replicas, isr_of(cases), membership(live), allowed)) == expected


@given(CASES, BROKERS, BROKERS, st.data())
def test_online_agrees_row_by_row(
    cases: list[PartitionCase], live: set[int], suspected: set[int], data: st.DataObject
) -> None:
    """The plain twin is election.elect_online: KRaft mode, with last known leaders and suspected brokers."""
    last = [data.draw(st.lists(st.sampled_from(case.assignment), max_size=2, unique=True)) for case in cases]
    allowed = np.array([case.unclean_allowed for case in cases])

    expected = [
        election.elect_online(
            case.leader,
            case.assignment,
            case.isr,
            live,
            unclean_allowed=case.unclean_allowed,
            last_known=known,
            suspected=suspected,
        )
        for case, known in zip(cases, last, strict=True)
    ]

    replicas, isr, leaders = replicas_of(cases), isr_of(cases), leader_of(cases)
    flags = membership(live), membership(suspected)
    assert rows(elect_online(leaders, replicas, isr, flags[0], allowed, pad(last), flags[1])) == expected


@given(CASES, BROKERS)
def test_preferred_agrees_row_by_row(cases: list[PartitionCase], live: set[int]) -> None:
    """The plain twin is election.elect_preferred."""
    replicas = replicas_of(cases)

    expected = [election.elect_preferred(case.leader, case.assignment, case.isr, live) for case in cases]

    elected = elect_preferred(leader_of(cases), replicas, isr_of(cases), membership(live))
    assert rows(elected) == expected


@given(CASES, BROKERS, BROKERS)
def test_shutdown_agrees_row_by_row(cases: list[PartitionCase], live: set[int], leaving: set[int]) -> None:
    """The plain twin is election.elect_shutdown."""
    replicas = replicas_of(cases)

    expected = [election.elect_shutdown(case.assignment, case.isr, live, leaving) for case in cases]

    elected = elect_shutdown(replicas, isr_of(cases), membership(live), membership(leaving))
    assert rows(elected) == expected


@given(CASES, BROKERS)
def test_new_agrees_row_by_row(cases: list[PartitionCase], live: set[int]) -> None:
    """The plain twin is tests.twins.election.elect_new."""
    replicas = replicas_of(cases)

    expected = [twins.elect_new(case.assignment, live) for case in cases]

    assert rows(elect_new(replicas, membership(live))) == expected


def test_no_rows_have_no_elections() -> None:
    """An event may concern no partition."""
    none, live = np.zeros((0, 3), dtype=np.int32), membership([1])

    assert len(elect_offline(none, none, live, np.zeros(0, dtype=np.bool_)).leader) == 0
    assert len(elect_shutdown(none, none, live, live).leader) == 0
    assert len(elect_new(none, live).leader) == 0


def test_the_given_columns_are_not_changed() -> None:
    """Only `apply` changes the cluster's state (ARCHITECTURE.md)."""
    replicas = pad([[1, 2, 3], [2, 3, 1]])
    isr = pad([[1, 2], [2]])
    before = (replicas.copy(), isr.copy())
    live, leaving = membership([1, 3]), membership([1])

    elect_offline(replicas, isr, live, np.array([True, True]))
    elect_shutdown(replicas, isr, live, leaving)
    elect_new(replicas, live)

    assert all(np.array_equal(old, new) for old, new in zip(before, (replicas, isr), strict=True))


def test_a_broker_id_beyond_the_flags_is_an_error() -> None:
    """Flags cover the highest known id; an id above it is a defect of the caller."""
    with pytest.raises(IndexError):
        elect_new(pad([[SIZE + 1]]), membership(range(SIZE)))

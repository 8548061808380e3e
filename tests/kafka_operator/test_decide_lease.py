"""Who may hold a Lease, as values."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafka_operator.decide.lease import (
    CALL_TIMEOUT_S,
    LEASE_DURATION_S,
    MAX_DURATION_S,
    RENEW_DEADLINE_S,
    RETRY_PERIOD_S,
    RETRY_SOON_S,
    Lost,
    Sighting,
    Standby,
    Take,
    decide_candidate,
    decide_holder,
    holds,
    released,
    sight,
)
from kafka_operator.resources.lease import Lease, lease_spec, read_lease

OTHERS = Lease("operator", "7", "other", LEASE_DURATION_S, "a", "r1", 3)


def test_one_that_is_not_there_or_held_by_nobody_is_taken() -> None:
    """Created, or replaced at the version that was seen; a Lease that passes on counts it."""
    new = decide_candidate("operator", None, "us", 5)
    assert new == Take(Lease("operator", "", "us", LEASE_DURATION_S))

    taken = decide_candidate("operator", Sighting(released(OTHERS), 5), "us", 5)
    assert taken == Take(replace(OTHERS, holder="us", acquired="", transitions=4))


def test_one_that_is_ours_is_taken_up_again_at_once() -> None:
    """A container that is started anew in its pod waits for nobody."""
    ours = replace(OTHERS, holder="us")

    assert decide_candidate("operator", Sighting(ours, 5), "us", 5) == Take(ours)


def test_one_of_somebody_else_is_taken_when_it_stood_still_for_its_duration() -> None:
    """By our own clock, from when it was seen; the next look is no later than that."""
    sighting = Sighting(OTHERS, 100)

    assert decide_candidate("operator", sighting, "us", 100) == Standby("other", RETRY_PERIOD_S)
    assert decide_candidate("operator", sighting, "us", 109.5) == Standby("other", 0.5)
    assert isinstance(decide_candidate("operator", sighting, "us", 110), Take)


def test_only_a_renewal_prolongs_it() -> None:
    """Somebody's label on it is no sign of life; nor does the holder's clock matter."""
    first = sight(None, OTHERS, 100)

    assert sight(first, replace(OTHERS, resource_version="8"), 105).since_s == 100
    assert sight(first, replace(OTHERS, renewed="r2", resource_version="8"), 105).since_s == 105


def test_a_duration_that_no_operator_writes_is_not_believed() -> None:
    """A year, or nothing."""
    for_ever = Sighting(replace(OTHERS, duration_s=10**8), 0)
    for_nothing = Sighting(replace(OTHERS, duration_s=0), 0)

    assert isinstance(decide_candidate("operator", for_ever, "us", MAX_DURATION_S), Take)
    assert isinstance(decide_candidate("operator", for_nothing, "us", 0.5), Standby)


def test_a_holder_that_meets_another_has_lost() -> None:
    """One that meets itself renews that version; one whose Lease was deleted makes it anew."""
    assert decide_holder("operator", OTHERS, "us") == Lost("other")
    ours = replace(OTHERS, holder="us")
    assert decide_holder("operator", ours, "us") == Take(ours)
    assert decide_holder("operator", None, "us") == Take(Lease("operator", "", "us", LEASE_DURATION_S))


@pytest.mark.shows("O10")
@given(st.floats(0, 1e6), st.floats(0, 100))
def test_nobody_acts_when_another_may_begin(renewed_s: float, later_s: float) -> None:
    """O10: a holder counts from before its call, others from when they saw it: it stops seconds before they may begin."""
    now_s = renewed_s + later_s
    seen_later = Sighting(OTHERS, renewed_s)
    if isinstance(decide_candidate("operator", seen_later, "us", now_s), Take):
        assert not holds(renewed_s, now_s)


def test_the_periods_fit_each_other() -> None:
    """A standby takes over within 15 s; a renewal is tried twice before the deadline."""
    list_s = 2.0
    assert RETRY_PERIOD_S + LEASE_DURATION_S + list_s < 15
    assert RETRY_PERIOD_S + CALL_TIMEOUT_S + RETRY_SOON_S < RENEW_DEADLINE_S < LEASE_DURATION_S


def test_a_lease_reads_back_as_it_was_written() -> None:
    """One that another client made empty is held by nobody."""
    raw = {"metadata": {"name": "operator", "resourceVersion": "7"}, "spec": lease_spec(OTHERS)}
    assert read_lease(raw) == OTHERS

    assert read_lease({"metadata": {"name": "operator", "resourceVersion": "7"}}) == Lease("operator", "7")

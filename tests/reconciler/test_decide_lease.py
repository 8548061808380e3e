"""Decisions about acquiring and holding a Lease."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconciler.decide.lease import (
    CALL_TIMEOUT_S,
    LEASE_DURATION_S,
    MAX_DURATION_S,
    RENEW_DEADLINE_S,
    RETRY_PERIOD_S,
    RETRY_SOON_S,
    Lost,
    ObservedLease,
    Standby,
    Take,
    decide_candidate,
    decide_holder,
    is_lease_valid,
    observe_lease,
    released,
)
from reconciler.resources.lease import Lease, lease_spec, read_lease

OTHERS = Lease("operator", "7", "other", LEASE_DURATION_S, "a", "r1", 3)


def test_a_missing_or_released_lease_is_acquired() -> None:
    """It is created, or replaced at the version that was read. A change of the holder increments the transitions."""
    new = decide_candidate("operator", None, "us", 5)
    assert new == Take(Lease("operator", "", "us", LEASE_DURATION_S))

    taken = decide_candidate("operator", ObservedLease(released(OTHERS), 5), "us", 5)
    assert taken == Take(replace(OTHERS, holder="us", acquired="", transitions=4))


def test_a_missing_lease_is_left_to_another_client_for_a_time() -> None:
    """Helm creates Leases after Deployments, and an install fails where a resource exists already."""
    assert decide_candidate("operator", None, "us", 5, may_create=False) == Standby("", RETRY_SOON_S)
    released_lease = ObservedLease(released(OTHERS), 5)
    assert isinstance(decide_candidate("operator", released_lease, "us", 5, may_create=False), Take)


def test_a_lease_of_the_same_identity_is_acquired_at_once() -> None:
    """A container that is restarted in its pod does not wait."""
    ours = replace(OTHERS, holder="us")

    assert decide_candidate("operator", ObservedLease(ours, 5), "us", 5) == Take(ours)


def test_a_lease_of_another_process_is_acquired_when_it_was_not_renewed_for_its_duration() -> None:
    """Measured with the local clock from when the renewal was read. The next poll is at that time at the latest."""
    observed = ObservedLease(OTHERS, 100)

    assert decide_candidate("operator", observed, "us", 100) == Standby("other", RETRY_PERIOD_S)
    assert decide_candidate("operator", observed, "us", 109.5) == Standby("other", 0.5)
    assert isinstance(decide_candidate("operator", observed, "us", 110), Take)


def test_only_a_renewal_extends_a_lease() -> None:
    """Another client's edit of its labels is no renewal, and the holder's clock does not matter."""
    first = observe_lease(None, OTHERS, 100)

    assert observe_lease(first, replace(OTHERS, resource_version="8"), 105).since_s == 100
    assert observe_lease(first, replace(OTHERS, renewed="r2", resource_version="8"), 105).since_s == 105


def test_a_duration_that_no_operator_writes_is_limited() -> None:
    """Three years, or zero."""
    too_long = ObservedLease(replace(OTHERS, duration_s=10**8), 0)
    zero = ObservedLease(replace(OTHERS, duration_s=0), 0)

    assert isinstance(decide_candidate("operator", too_long, "us", MAX_DURATION_S), Take)
    assert isinstance(decide_candidate("operator", zero, "us", 0.5), Standby)


def test_a_holder_that_reads_another_holder_has_lost() -> None:
    """A Lease with its own identity is renewed at that version; a deleted Lease is created again."""
    assert decide_holder("operator", OTHERS, "us") == Lost("other")
    ours = replace(OTHERS, holder="us")
    assert decide_holder("operator", ours, "us") == Take(ours)
    assert decide_holder("operator", None, "us") == Take(Lease("operator", "", "us", LEASE_DURATION_S))


@pytest.mark.shows("O10")
@given(st.floats(0, 1e6), st.floats(0, 100))
def test_a_holder_stops_before_another_process_may_begin(renewed_s: float, later_s: float) -> None:
    """O10: a holder measures from before its call, others from when they read the renewal: it stops seconds before they may begin."""
    now_s = renewed_s + later_s
    seen_later = ObservedLease(OTHERS, renewed_s)
    if isinstance(decide_candidate("operator", seen_later, "us", now_s), Take):
        assert not is_lease_valid(renewed_s, now_s)


def test_the_periods_are_consistent() -> None:
    """A standby takes over within 15 s; a renewal is tried twice before the deadline."""
    list_s = 2.0
    assert RETRY_PERIOD_S + LEASE_DURATION_S + list_s < 15
    assert RETRY_PERIOD_S + CALL_TIMEOUT_S + RETRY_SOON_S < RENEW_DEADLINE_S < LEASE_DURATION_S


def test_a_lease_reads_back_as_it_was_written() -> None:
    """A Lease without a spec has no holder."""
    raw = {"metadata": {"name": "operator", "resourceVersion": "7"}, "spec": lease_spec(OTHERS)}
    assert read_lease(raw) == OTHERS

    assert read_lease({"metadata": {"name": "operator", "resourceVersion": "7"}}) == Lease("operator", "7")

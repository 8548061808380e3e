"""Lease protocol: decisions of standbys and of the holder.

    seen                                        one that stands by
    no Lease                                    creates it, held by itself
    held by nobody, or by itself                takes it
    unchanged for the duration that it names    takes it
    anything else                               waits, at most until it could have run out

The habits are client-go's: only the process's own monotonic clock counts, from when it saw the Lease change, so that clocks need not
agree; every write is bound to the version that was seen, so that of two one wins. A Lease does not fence: a holder that was frozen acts
once more before it looks at its clock. What it does then is refused by versions, or done twice with the same end (docs/operations.md).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from kafka_operator.resources.lease import NOBODY, Lease

LEASE_DURATION_S = 10
"""How long others wait for a holder that renews no more. With the look in which its last renewal is seen late, and the first list, a
killed holder is followed within 15 s; shorter ones would be lost to an API server that is busy for some seconds."""

RENEW_DEADLINE_S = 7.0
"""A holder that could not renew for so long stops: 3 s before anybody else may begin, for what it has under way."""

RETRY_PERIOD_S = 2.0
"""How often a holder renews and others look, as in client-go: one small write and one small read."""

RETRY_SOON_S = 0.5
"""Delay after a renewal that failed: what is left of the deadline is short."""

CALL_TIMEOUT_S = 2.5
"""How long one call may take: two of them fit between a renewal that was due and the deadline."""

MAX_DURATION_S = 60
"""The longest duration that is believed: a Lease that names a year, by hand or by mistake, must not end the service for a year."""


@dataclass(frozen=True, slots=True)
class Sighting:
    """A Lease, and since when (monotonic clock) it has been seen so."""

    lease: Lease
    since_s: float


@dataclass(frozen=True, slots=True)
class Take:
    """Write this Lease, which is held by us: create it (`lease.resource_version` is empty), or replace that version."""

    lease: Lease


@dataclass(frozen=True, slots=True)
class Standby:
    """Another process holds the Lease: read it again after this time."""

    holder: str
    seconds: float


@dataclass(frozen=True, slots=True)
class Lost:
    """Another process has acquired this process's Lease."""

    holder: str


def sight(before: Sighting | None, lease: Lease, now_s: float) -> Sighting:
    """Return what is known of a Lease that is seen now; a change of labels alone renews nothing."""
    if before is not None and _record(before.lease) == _record(lease):
        return Sighting(lease, before.since_s)
    return Sighting(lease, now_s)


def decide_candidate(name: str, sighting: Sighting | None, identity: str, now_s: float) -> Take | Standby:
    """Decide what a process does that holds nothing; `sighting` is None when there is no Lease."""
    if sighting is None:
        return Take(Lease(name=name, resource_version="", holder=identity, duration_s=LEASE_DURATION_S))
    lease = sighting.lease
    ends_s = sighting.since_s + min(max(lease.duration_s, 1), MAX_DURATION_S)
    if lease.holder not in {identity, NOBODY} and now_s < ends_s:
        return Standby(lease.holder, min(RETRY_PERIOD_S, ends_s - now_s))
    passed_on = lease.holder != identity
    return Take(
        replace(
            lease,
            holder=identity,
            duration_s=LEASE_DURATION_S,
            acquired="" if passed_on else lease.acquired,
            transitions=lease.transitions + passed_on,
        )
    )


def decide_holder(name: str, lease: Lease | None, identity: str) -> Take | Lost:
    """Decide what the holder does when its renewal met another version of the Lease, or (None) none at all."""
    if lease is None:
        return Take(Lease(name=name, resource_version="", holder=identity, duration_s=LEASE_DURATION_S))
    if lease.holder != identity:
        return Lost(lease.holder)
    return Take(replace(lease, duration_s=LEASE_DURATION_S))


def released(lease: Lease) -> Lease:
    """Return the Lease as its holder leaves it: others need not wait."""
    return replace(lease, holder=NOBODY, duration_s=1)


def holds(renewed_s: float, now_s: float) -> bool:
    """Return whether a Lease renewed at that time (before the call was sent) is still valid."""
    return now_s - renewed_s < RENEW_DEADLINE_S


def _record(lease: Lease) -> tuple[str, str, int, int]:
    return lease.holder, lease.renewed, lease.duration_s, lease.transitions

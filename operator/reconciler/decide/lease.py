"""Lease protocol: decisions of standbys and of the holder.

    observed                                    standby
    no Lease                                    creates it, held by itself; may have to wait before the first time
    without holder, or held by itself           takes it
    unchanged for its own duration              takes it
    anything else                               waits, at most until it could have expired

The protocol is client-go's: only the process's own monotonic clock counts, from when it saw the Lease change, so clocks need not
agree; every write is bound to the version that was read, so one of two writers wins. A Lease does not fence: a holder that was frozen
acts once more before it checks its clock. Resource versions reject such an action, or it is idempotent (docs/operations.md).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from reconciler.resources.lease import NO_HOLDER, Lease

LEASE_DURATION_S = 10
"""How long others wait for a holder that no longer renews. With the poll that sees its last renewal late, and the first list, a
killed holder is replaced within 15 s; shorter durations would be lost to an API server that is busy for some seconds."""

RENEW_DEADLINE_S = 7.0
"""A holder that could not renew for this time stops, 3 s before another process may start, to finish calls in progress."""

RETRY_PERIOD_S = 2.0
"""Interval of renewals and of polls of standbys, as in client-go: one small write and one small read."""

RETRY_SOON_S = 0.5
"""Retry delay after a failed renewal: the rest of the deadline is short."""

CALL_TIMEOUT_S = 2.5
"""Timeout of one call: two of them fit between a due renewal and the deadline."""

MAX_DURATION_S = 60
"""Maximum duration that is accepted: a wrong Lease that names a year must not stop the service for a year."""


@dataclass(frozen=True, slots=True)
class ObservedLease:
    """A Lease, and the monotonic time since which it has not changed."""

    lease: Lease
    since_s: float


@dataclass(frozen=True, slots=True)
class Take:
    """Write this Lease, held by this process: create it (`lease.resource_version` is empty), or replace that version."""

    lease: Lease


@dataclass(frozen=True, slots=True)
class Standby:
    """Another process holds the Lease, or (no holder) it is to be created by another client: read it again after this time."""

    holder: str
    seconds: float


@dataclass(frozen=True, slots=True)
class Lost:
    """Another process has acquired this process's Lease."""

    holder: str


def observe_lease(before: ObservedLease | None, lease: Lease, now_s: float) -> ObservedLease:
    """Return the updated sighting of a Lease; a change of labels is no renewal."""
    if before is not None and _record(before.lease) == _record(lease):
        return ObservedLease(lease, before.since_s)
    return ObservedLease(lease, now_s)


def decide_candidate(
    name: str, observed: ObservedLease | None, identity: str, now_s: float, *, may_create: bool = True
) -> Take | Standby:
    """Decide the action of a process that holds no Lease; `observed` is None when there is no Lease."""
    if observed is None and not may_create:
        return Standby(NO_HOLDER, RETRY_SOON_S)
    if observed is None:
        return Take(Lease(name=name, resource_version="", holder=identity, duration_s=LEASE_DURATION_S))
    lease = observed.lease
    ends_s = observed.since_s + min(max(lease.duration_s, 1), MAX_DURATION_S)
    if lease.holder not in {identity, NO_HOLDER} and now_s < ends_s:
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
    """Decide the action of the holder when its renewal met another version of the Lease, or (None) no Lease."""
    if lease is None:
        return Take(Lease(name=name, resource_version="", holder=identity, duration_s=LEASE_DURATION_S))
    if lease.holder != identity:
        return Lost(lease.holder)
    return Take(replace(lease, duration_s=LEASE_DURATION_S))


def released(lease: Lease) -> Lease:
    """Return the released Lease: others need not wait."""
    return replace(lease, holder=NO_HOLDER, duration_s=1)


def is_lease_valid(renewed_s: float, now_s: float) -> bool:
    """Return whether a Lease renewed at that time (before the call was sent) is still valid."""
    return now_s - renewed_s < RENEW_DEADLINE_S


def _record(lease: Lease) -> tuple[str, str, int, int]:
    return lease.holder, lease.renewed, lease.duration_s, lease.transitions

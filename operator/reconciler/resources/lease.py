"""A coordination.k8s.io Lease: holder, and renewals.

Its times come from the holder's clock and are never compared with the local clock: a renewal is detected by a change.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

NO_HOLDER = ""
"""The holder of a Lease that was released."""


@dataclass(frozen=True, slots=True)
class Lease:
    """One Lease."""

    name: str
    resource_version: str
    holder: str = NO_HOLDER
    duration_s: int = 0
    """How long others have to wait after the holder's last observed renewal."""
    acquired: str = ""
    renewed: str = ""
    transitions: int = 0
    """How often it has passed from one holder to another."""


def read_lease(raw: Mapping[str, Any]) -> Lease:
    """Read a Lease of any client; missing fields have the values of a Lease without a holder."""
    metadata, spec = raw["metadata"], raw.get("spec") or {}
    return Lease(
        name=metadata["name"],
        resource_version=metadata["resourceVersion"],
        holder=spec.get("holderIdentity") or NO_HOLDER,
        duration_s=spec.get("leaseDurationSeconds") or 0,
        acquired=spec.get("acquireTime") or "",
        renewed=spec.get("renewTime") or "",
        transitions=spec.get("leaseTransitions") or 0,
    )


def lease_spec(lease: Lease) -> dict[str, Any]:
    """Return the API's form of a Lease's spec."""
    return {
        "holderIdentity": lease.holder,
        "leaseDurationSeconds": lease.duration_s,
        "acquireTime": lease.acquired or None,
        "renewTime": lease.renewed or None,
        "leaseTransitions": lease.transitions,
    }


def micro_time(moment: datetime) -> str:
    """Write a moment as metav1.MicroTime.

    >>> micro_time(datetime(2026, 1, 1, 12, tzinfo=UTC))
    '2026-01-01T12:00:00.000000Z'
    """
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")

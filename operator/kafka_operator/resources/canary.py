"""Canary of a Reassignment: the first partitions of its plan, after which the others wait."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from kafka_operator.resources.reassignment_terms import Approval
from reconciler.resources.metadata import RawObject

DEFAULT_SOAK_S = 600
"""Time in which consumers, retention and an alert with a usual `for` show what the new placement does."""


@dataclass(frozen=True, slots=True)
class Canary:
    """The number of partitions, how long they must be healthy, and who decides that the others move."""

    partitions: int
    soak_s: int = DEFAULT_SOAK_S
    approval: Approval = Approval.REQUIRED
    approved_digest: str | None = None


@dataclass(frozen=True, slots=True)
class CanaryRecord:
    """Since when the canary's partitions are moved and healthy, in RFC 3339."""

    healthy_time: str

    def to_json(self) -> dict[str, Any]:
        """Return the API's form."""
        return {"healthyTime": self.healthy_time}


def read_canary(raw: RawObject | None) -> Canary | None:
    """Read `spec.canary`."""
    if raw is None:
        return None
    return Canary(
        int(raw["partitions"]),
        int(raw.get("soakSeconds", DEFAULT_SOAK_S)),
        Approval(raw.get("approval", Approval.REQUIRED)),
        raw.get("approvedDigest"),
    )


def read_canary_record(raw: RawObject | None) -> CanaryRecord | None:
    """Read `status.canary`."""
    return None if raw is None or not raw.get("healthyTime") else CanaryRecord(raw["healthyTime"])

"""Guard of a Reassignment: limits that are checked while its partitions move, and the record of breaches in its status."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from reconciler.resources.metadata import RawObject

DEFAULT_RESUME_AFTER_S = 300
"""Quiet time after a breach: as long as the `for` of usual alerts, and longer than a broker's restart."""


class GuardAction(StrEnum):
    """Effect of a breach."""

    PAUSE = "Pause"
    ROLLBACK = "Rollback"


@dataclass(frozen=True, slots=True)
class LagLimit:
    """Maximum lag of a consumer group, in records over all partitions."""

    group: str
    max_records: int


@dataclass(frozen=True, slots=True)
class QueryLimit:
    """A Prometheus query with one value, and its bound: the highest value, or (`is_minimum`) the lowest."""

    name: str
    query: str
    bound: float
    is_minimum: bool = False


@dataclass(frozen=True, slots=True)
class Guard:
    """Limits; None for none."""

    action: GuardAction = GuardAction.PAUSE
    resume_after_s: int = DEFAULT_RESUME_AFTER_S
    max_under_min_isr: int | None = None
    max_offline: int | None = None
    max_isr_shrinks_per_minute: int | None = None
    lags: tuple[LagLimit, ...] = ()
    queries: tuple[QueryLimit, ...] = ()


@dataclass(frozen=True, slots=True)
class GuardRecord:
    """What is known of a guard across readings; times are RFC 3339."""

    breaches: int = 0
    """Breaches so far; each one prolongs the quiet time after the next."""
    limits: tuple[str, ...] = ()
    """The limits that are breached; empty once the quiet time is over."""
    message: str | None = None
    """The values at the breach, or why a limit cannot be checked."""
    breach_time: str | None = None
    quiet_time: str | None = None
    """Since when no limit is exceeded."""
    unknown_time: str | None = None
    """Since when a limit cannot be checked."""

    def to_json(self) -> dict[str, Any]:
        """Return the API's form, with None for what is not known: a patch takes that away."""
        return {
            "breaches": self.breaches,
            "limits": list(self.limits) or None,
            "message": self.message,
            "breachTime": self.breach_time,
            "quietTime": self.quiet_time,
            "unknownTime": self.unknown_time,
        }


def read_guard(raw: RawObject | None) -> Guard | None:
    """Read `spec.guard`."""
    if raw is None:
        return None
    return Guard(
        action=GuardAction(raw.get("action", GuardAction.PAUSE)),
        resume_after_s=int(raw.get("resumeAfterSeconds", DEFAULT_RESUME_AFTER_S)),
        max_under_min_isr=raw.get("maxUnderMinIsrPartitions"),
        max_offline=raw.get("maxOfflinePartitions"),
        max_isr_shrinks_per_minute=raw.get("maxIsrShrinksPerMinute"),
        lags=tuple(LagLimit(item["group"], int(item["maxRecords"])) for item in raw.get("consumerLag") or ()),
        queries=tuple(_read_query(item) for item in raw.get("queries") or ()),
    )


def read_guard_record(raw: RawObject | None) -> GuardRecord | None:
    """Read `status.guard`."""
    if raw is None:
        return None
    return GuardRecord(
        int(raw.get("breaches", 0)),
        tuple(raw.get("limits") or ()),
        raw.get("message"),
        raw.get("breachTime"),
        raw.get("quietTime"),
        raw.get("unknownTime"),
    )


def _read_query(item: Mapping[str, Any]) -> QueryLimit:
    minimum = item.get("min")
    return QueryLimit(
        item["name"], item["query"], float(item["max"] if minimum is None else minimum), minimum is not None
    )

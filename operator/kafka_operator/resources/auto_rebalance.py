"""Automatic rebalances of a Cluster: `spec.autoRebalance` and `status.autoRebalance`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from kafka_operator.resources.reassignment_terms import Approval
from reconciler.resources.metadata import RawObject

DEFAULT_THRESHOLD_PERCENT = 20
"""Default deviation from the mean: four times the planner's own tolerance, so that a day's growth alone triggers no copies."""

DEFAULT_MINIMUM_INTERVAL_S = 86_400
"""A day: loads have a daily pattern, and a rebalance of the morning's load would be reverted in the evening."""


TERMS = ("throttle", "concurrency", "windows", "guard", "canary")
"""Fields of the template that are copied to the spec of each Reassignment."""


@dataclass(frozen=True, slots=True)
class OnImbalance:
    """Allowed deviation of a broker's bytes from the mean, and the minimum time since the last rebalance."""

    threshold_percent: int = DEFAULT_THRESHOLD_PERCENT
    minimum_interval_s: int = DEFAULT_MINIMUM_INTERVAL_S


@dataclass(frozen=True, slots=True)
class AutoRebalance:
    """`spec.autoRebalance`: triggers, and the template of the Reassignment."""

    on_brokers_added: bool = False
    on_brokers_removed: bool = False
    on_imbalance: OnImbalance | None = None
    approval: Approval = Approval.REQUIRED
    excluded_topics: tuple[str, ...] = ()
    max_bytes_moved: int | str | None = None
    """As its user wrote it."""
    terms: Mapping[str, Any] = field(default_factory=dict)
    """Fields of TERMS, in the API's form."""


@dataclass(frozen=True, slots=True)
class OpenRebalance:
    """The last Reassignment, if it has not ended; one that neither adds nor removes brokers rebalances."""

    name: str
    added: tuple[int, ...] = ()
    removed: tuple[int, ...] = ()
    withdrawn: bool = False
    """Whether it is being cancelled because it is no longer needed; recorded before the cancellation."""

    def to_json(self) -> dict[str, Any]:
        """Return the API's form; None takes away."""
        return {
            "name": self.name,
            "added": list(self.added) or None,
            "removed": list(self.removed) or None,
            "withdrawn": self.withdrawn or None,
        }


@dataclass(frozen=True, slots=True)
class RebalanceRecord:
    """`status.autoRebalance`: state that survives a restart of the operator.

    `made` numbers the Reassignments, so that each name is used once. `brokers` are known: others count as new.
    `declined` are brokers whose removal failed or was cancelled; they are not removed until they are declared again.
    """

    made: int = 0
    brokers: tuple[int, ...] = ()
    declined: tuple[int, ...] = ()
    open: OpenRebalance | None = None
    last_end_time: str | None = None
    spread_percent: int | None = None
    """Largest deviation of a broker from the mean at the last measurement."""

    def to_json(self) -> dict[str, Any]:
        """Return the API's form; None takes away."""
        return {
            "made": self.made,
            "brokerIds": list(self.brokers),
            "declinedBrokerIds": list(self.declined) or None,
            "open": None if self.open is None else self.open.to_json(),
            "lastEndTime": self.last_end_time,
            "spreadPercent": self.spread_percent,
        }


def read_auto_rebalance(raw: RawObject | None) -> AutoRebalance | None:
    """Read `spec.autoRebalance`."""
    if raw is None:
        return None
    template = raw.get("template") or {}
    return AutoRebalance(
        on_brokers_added=bool(raw.get("onBrokersAdded", False)),
        on_brokers_removed=bool(raw.get("onBrokersRemoved", False)),
        on_imbalance=_read_on_imbalance(raw.get("onImbalance")),
        approval=Approval(raw.get("approval", Approval.REQUIRED)),
        excluded_topics=tuple(template.get("excludedTopics") or ()),
        max_bytes_moved=template.get("maxBytesMoved"),
        terms={name: template[name] for name in TERMS if name in template},
    )


def read_rebalance_record(raw: RawObject | None) -> RebalanceRecord | None:
    """Read `status.autoRebalance`."""
    if raw is None:
        return None
    return RebalanceRecord(
        made=raw["made"],
        brokers=tuple(raw["brokerIds"]),
        declined=tuple(raw.get("declinedBrokerIds") or ()),
        open=_read_open(raw.get("open")),
        last_end_time=raw.get("lastEndTime"),
        spread_percent=raw.get("spreadPercent"),
    )


def _read_on_imbalance(raw: RawObject | None) -> OnImbalance | None:
    if raw is None:
        return None
    return OnImbalance(
        raw.get("thresholdPercent", DEFAULT_THRESHOLD_PERCENT),
        raw.get("minimumIntervalSeconds", DEFAULT_MINIMUM_INTERVAL_S),
    )


def _read_open(raw: RawObject | None) -> OpenRebalance | None:
    if raw is None:
        return None
    added, removed = tuple(raw.get("added") or ()), tuple(raw.get("removed") or ())
    return OpenRebalance(raw["name"], added, removed, bool(raw.get("withdrawn", False)))

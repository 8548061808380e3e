"""Fields of a Reassignment's spec other than an exact plan: plan source, goal, approval, concurrency, windows, action."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from kafka_operator.resources.quantity import read_bytes
from reconciler.resources.metadata import RawObject

DEFAULT_MOVES_PER_BROKER = 10
"""Moves that a broker takes part in at once: what Cruise Control takes by default. More share one disk and one network card, so that
each takes longer and a stuck move is noticed later."""

DEFAULT_MOVES = 200
"""Moves at once in the whole cluster: what twenty brokers do at ten each. It bounds what a cancel has to undo, and the lists of
throttled replicas that the status holds."""


class Action(StrEnum):
    """Requested action; it only changes forward, from Execute to Cancel to Rollback."""

    EXECUTE = "Execute"
    CANCEL = "Cancel"
    ROLLBACK = "Rollback"


class Approval(StrEnum):
    """Whether a plan waits for approval of its digest."""

    AUTOMATIC = "Automatic"
    REQUIRED = "Required"


@dataclass(frozen=True, slots=True)
class PlanFrom:
    """ConfigMaps that hold a plan together, in this order, and its digest."""

    config_maps: tuple[str, ...]
    digest: str


@dataclass(frozen=True, slots=True)
class Goal:
    """Goal for all topics, (not empty) for the named ones, or for all but the excluded ones."""

    add_brokers: tuple[int, ...] = ()
    remove_brokers: tuple[int, ...] = ()
    rebalance: bool = False
    balance_log_dirs: bool = False
    """Moves between the log directories of each broker; combined with no other goal."""
    racks: bool = False
    replication_factor: int | None = None
    topics: tuple[str, ...] = ()
    excluded_topics: tuple[str, ...] = ()
    max_bytes_moved: int | None = None
    """Most bytes that the plan may copy; what does not fit is left out."""


@dataclass(frozen=True, slots=True)
class Concurrency:
    """Moves at once: those that one broker takes part in, and all of them."""

    per_broker: int = DEFAULT_MOVES_PER_BROKER
    cluster: int = DEFAULT_MOVES


@dataclass(frozen=True, slots=True)
class Window:
    """A window opens at the times of a cron schedule, and is open for a duration such as 6h or 1h30m."""

    schedule: str
    duration: str
    time_zone: str = "UTC"


def read_plan_from(raw: RawObject | None) -> PlanFrom | None:
    """Read `spec.planFrom`."""
    return None if raw is None else PlanFrom(tuple(raw["configMaps"]), raw["digest"])


def read_goal(raw: RawObject | None) -> Goal | None:
    """Read `spec.goal`."""
    if raw is None:
        return None
    return Goal(
        add_brokers=tuple(raw.get("addBrokers") or ()),
        remove_brokers=tuple(raw.get("removeBrokers") or ()),
        rebalance=bool(raw.get("rebalance", False)),
        balance_log_dirs=bool(raw.get("balanceLogDirs", False)),
        racks=bool(raw.get("racks", False)),
        replication_factor=raw.get("replicationFactor"),
        topics=tuple(raw.get("topics") or ()),
        excluded_topics=tuple(raw.get("excludedTopics") or ()),
        max_bytes_moved=None if raw.get("maxBytesMoved") is None else read_bytes(raw["maxBytesMoved"]),
    )


def read_concurrency(raw: RawObject | None) -> Concurrency:
    """Read `spec.concurrency`."""
    given: dict[str, Any] = dict(raw or {})
    return Concurrency(int(given.get("perBroker", DEFAULT_MOVES_PER_BROKER)), int(given.get("cluster", DEFAULT_MOVES)))


def read_windows(raw: Iterable[RawObject] | None) -> tuple[Window, ...]:
    """Read `spec.windows`; a schedule that is invalid is reported in the status (`decide/reassignments/move_windows.py`)."""
    return tuple(Window(item["schedule"], item["duration"], item.get("timeZone", "UTC")) for item in raw or ())

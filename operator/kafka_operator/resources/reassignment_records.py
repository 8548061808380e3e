"""Records in a Reassignment's status: progress, proposal, location of a large plan."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from reconciler.resources.metadata import RawObject


@dataclass(frozen=True, slots=True)
class Progress:
    """Partitions that have arrived, of all that the plan names; bytes copied of all that are to be, where they are known."""

    done: int
    total: int
    bytes_moved: int | None = None
    bytes_total: int | None = None
    eta_s: int | None = None
    """Seconds that are left at the measured speed, None where it is not known."""

    @property
    def percent(self) -> int:
        """Return the share in percent, rounded down: of bytes where there are any, else of partitions; 100 only at the end."""
        if self.done >= self.total:
            return 100
        if self.bytes_total:
            return min(99, 100 * (self.bytes_moved or 0) // self.bytes_total)
        return 100 * self.done // self.total

    def to_json(self) -> dict[str, Any]:
        """Return the API's form, with None for what is not known: a patch takes that away."""
        moved, total = self.bytes_moved, self.bytes_total
        known = moved is not None and total is not None
        return {
            "partitionsDone": self.done,
            "partitionsTotal": self.total,
            "percent": self.percent,
            "partitions": f"{self.done}/{self.total}",
            "bytesMoved": moved,
            "bytesTotal": total,
            "bytes": f"{written_bytes(moved or 0)}/{written_bytes(total or 0)}" if known else None,
            "etaSeconds": self.eta_s,
            "eta": None if self.eta_s is None else written_seconds(self.eta_s),
        }


@dataclass(frozen=True, slots=True)
class BrokerFigures:
    """A broker before and after: replicas, preferred leaders, bytes."""

    broker_id: int
    replicas: tuple[int, int]
    leaders: tuple[int, int]
    bytes: tuple[int, int]

    def to_json(self) -> dict[str, Any]:
        """Return the API's form."""
        return {
            "id": self.broker_id,
            "replicasBefore": self.replicas[0],
            "replicasAfter": self.replicas[1],
            "leadersBefore": self.leaders[0],
            "leadersAfter": self.leaders[1],
            "bytesBefore": self.bytes[0],
            "bytesAfter": self.bytes[1],
        }


@dataclass(frozen=True, slots=True)
class DirectoryFigures:
    """A log directory of a broker: bytes of its logs before and after."""

    broker_id: int
    path: str
    bytes: tuple[int, int]

    def to_json(self) -> dict[str, Any]:
        """Return the API's form."""
        return {"broker": self.broker_id, "path": self.path, "bytesBefore": self.bytes[0], "bytesAfter": self.bytes[1]}


@dataclass(frozen=True, slots=True)
class LeftOut:
    """Moves that a goal asks for and that its limit of bytes left out."""

    partitions: int
    bytes: int

    def to_json(self) -> dict[str, Any]:
        """Return the API's form."""
        return {"partitions": self.partitions, "bytesToMove": self.bytes}


@dataclass(frozen=True, slots=True)
class Proposal:
    """Effects of a plan, for its approval."""

    partitions: int
    bytes_to_move: int
    lower_bound_bytes: int
    """What any plan that reaches the same goal must copy."""
    brokers: tuple[BrokerFigures, ...] = ()
    unreached: tuple[str, ...] = ()
    """What of the goal is not reached, and why."""
    left_out: LeftOut | None = None
    """What `maxBytesMoved` left out, None where it left nothing out."""
    log_dirs: tuple[DirectoryFigures, ...] = ()
    """Log directories of the brokers whose replicas move between them."""

    def to_json(self) -> dict[str, Any]:
        """Return the API's form."""
        return {
            "partitions": self.partitions,
            "bytesToMove": self.bytes_to_move,
            "lowerBoundBytes": self.lower_bound_bytes,
            "brokers": [item.to_json() for item in self.brokers],
            "unreached": list(self.unreached),
            "leftOut": None if self.left_out is None else self.left_out.to_json(),
            "logDirs": [item.to_json() for item in self.log_dirs] or None,
        }


@dataclass(frozen=True, slots=True)
class Stored:
    """ConfigMaps of the operator's own that hold plan and base together, where they are large."""

    config_maps: tuple[str, ...]
    partitions: int

    def to_json(self) -> dict[str, Any]:
        """Return the API's form."""
        return {"configMaps": list(self.config_maps), "partitions": self.partitions}


def read_progress(raw: RawObject | None) -> Progress | None:
    """Read `status.progress`."""
    if raw is None:
        return None
    return Progress(
        raw["partitionsDone"],
        raw["partitionsTotal"],
        raw.get("bytesMoved"),
        raw.get("bytesTotal"),
        raw.get("etaSeconds"),
    )


def read_proposal(raw: RawObject | None) -> Proposal | None:
    """Read `status.proposal`."""
    if raw is None:
        return None
    left_out = raw.get("leftOut")
    return Proposal(
        raw["partitions"],
        raw["bytesToMove"],
        raw["lowerBoundBytes"],
        tuple(
            BrokerFigures(
                item["id"],
                (item["replicasBefore"], item["replicasAfter"]),
                (item["leadersBefore"], item["leadersAfter"]),
                (item["bytesBefore"], item["bytesAfter"]),
            )
            for item in raw.get("brokers") or ()
        ),
        tuple(raw.get("unreached") or ()),
        None if left_out is None else LeftOut(left_out["partitions"], left_out["bytesToMove"]),
        tuple(
            DirectoryFigures(item["broker"], item["path"], (item["bytesBefore"], item["bytesAfter"]))
            for item in raw.get("logDirs") or ()
        ),
    )


def read_stored(raw: RawObject | None) -> Stored | None:
    """Read `status.stored`."""
    return None if raw is None else Stored(tuple(raw["configMaps"]), raw["partitions"])


def written_bytes(count: int) -> str:
    """Write a number of bytes for people.

    >>> [written_bytes(0), written_bytes(1999), written_bytes(2_500_000)]
    ['0B', '1.9KiB', '2.3MiB']
    """
    if count < 1024:
        return f"{count}B"
    for power, unit in enumerate(("KiB", "MiB", "GiB", "TiB"), start=1):
        if count < 1024 ** (power + 1):
            return f"{10 * count // 1024**power / 10}{unit}"
    return f"{10 * count // 1024**5 / 10}PiB"


def written_seconds(seconds: int) -> str:
    """Write a length of time as Kubernetes writes ages.

    >>> [written_seconds(5), written_seconds(125), written_seconds(7260), written_seconds(200_000)]
    ['5s', '2m5s', '2h1m', '2d7h']
    """
    minutes, hours, days = seconds // 60, seconds // 3600, seconds // 86_400
    if days:
        return f"{days}d{hours % 24}h"
    if hours:
        return f"{hours}h{minutes % 60}m"
    return f"{minutes}m{seconds % 60}s" if minutes else f"{seconds}s"

"""Log directories of brokers in the status of a Cluster: those that are offline, unevenly used or cordoned."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from reconciler.resources.metadata import RawObject


@dataclass(frozen=True, slots=True, order=True)
class Directory:
    """A log directory of a broker; the used share of its volume in percent where it matters, else None."""

    broker_id: int
    path: str
    used_percent: int | None = None

    def to_json(self) -> dict[str, Any]:
        """Return the API's form."""
        used = {} if self.used_percent is None else {"usedPercent": self.used_percent}
        return {"broker": self.broker_id, "path": self.path, **used}


@dataclass(frozen=True, slots=True)
class LogDirsStatus:
    """Log directories by problem, each ascending; `uneven` has the fullest and the emptiest one of a broker."""

    offline: tuple[Directory, ...] = ()
    uneven: tuple[Directory, ...] = ()
    cordoned: tuple[Directory, ...] = ()

    def to_json(self) -> dict[str, Any] | None:
        """Return the API's form; None takes away."""
        found = {"offline": self.offline, "uneven": self.uneven, "cordoned": self.cordoned}
        if not any(found.values()):
            return None
        return {name: [item.to_json() for item in items] or None for name, items in found.items()}


NO_PROBLEMS = LogDirsStatus()


def read_log_dirs(raw: RawObject | None) -> LogDirsStatus:
    """Read `status.logDirs`."""
    given = raw or {}
    return LogDirsStatus(*(_read(given.get(name) or ()) for name in ("offline", "uneven", "cordoned")))


def _read(items: Iterable[RawObject]) -> tuple[Directory, ...]:
    return tuple(Directory(int(item["broker"]), item["path"], item.get("usedPercent")) for item in items)

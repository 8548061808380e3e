"""Windows of a Reassignment: times at which its moves may start.

Leaves out the times themselves (`decide/move_windows.py`): a schedule that cannot be read is reported in the status.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from reconciler.resources.metadata import RawObject


@dataclass(frozen=True, slots=True)
class Window:
    """A window opens at the times of a cron schedule, and is open for a duration such as 6h or 1h30m."""

    schedule: str
    duration: str
    time_zone: str = "UTC"


def read_windows(raw: Iterable[RawObject] | None) -> tuple[Window, ...]:
    """Read `spec.windows`."""
    return tuple(Window(item["schedule"], item["duration"], item.get("timeZone", "UTC")) for item in raw or ())

"""What a watch tells: that something changed once, never what it is now; whoever watches reads again."""

import enum
from collections.abc import Callable
from dataclasses import dataclass


class WatchKind(enum.Enum):
    """What to watch."""

    DATA = "data"
    """The znode's data changes, or it goes; where it is missing, that it comes."""
    CHILDREN = "children"
    """A child comes or goes, or the znode itself goes; where it is missing, that it comes."""
    EXISTS = "exists"
    """The znode comes, goes, or its data changes."""


class EventKind(enum.Enum):
    """What happened to a watched znode."""

    CREATED = "created"
    DELETED = "deleted"
    DATA_CHANGED = "data changed"
    CHILDREN_CHANGED = "children changed"


@dataclass(frozen=True, slots=True)
class WatchEvent:
    """Something happened to a watched znode."""

    kind: EventKind
    path: str
    """Without the chroot."""


WatchCallback = Callable[[WatchEvent | None], None]
"""Called once, in the event loop's thread. None: the connection broke, the watch is gone, and anything may have happened."""


class OneShot:
    """A callback that is called at most once, however many watches of ZooKeeper carry it."""

    __slots__ = ("_callback", "_fired")

    def __init__(self, callback: WatchCallback) -> None:
        self._callback = callback
        self._fired = False

    def fire(self, event: WatchEvent | None) -> None:
        """Tell of an event, unless one was told already."""
        if not self._fired:
            self._fired = True
            self._callback(event)

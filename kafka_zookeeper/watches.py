"""Watches. A watch reports one change, without the new value: the watching component reads again."""

import enum
from collections.abc import Callable
from dataclasses import dataclass


class WatchKind(enum.Enum):
    """Kind of a watch."""

    DATA = "data"
    """Fires when the znode's data changes or the znode is deleted; for a missing znode, when it is created."""
    CHILDREN = "children"
    """Fires when a child is created or deleted or the znode is deleted; for a missing znode, when it is created."""
    EXISTS = "exists"
    """Fires when the znode is created or deleted, or its data changes."""


class EventKind(enum.Enum):
    """Kind of a change of a watched znode."""

    CREATED = "created"
    DELETED = "deleted"
    DATA_CHANGED = "data changed"
    CHILDREN_CHANGED = "children changed"


@dataclass(frozen=True, slots=True)
class WatchEvent:
    """Change of a watched znode."""

    kind: EventKind
    path: str
    """Without the chroot."""


WatchCallback = Callable[[WatchEvent | None], None]
"""Called once, in the event loop's thread. None: the connection was lost, which ended the watch; the znode may have changed."""


class OneShot:
    """A callback that is called at most once, even if several ZooKeeper watches use it."""

    __slots__ = ("_callback", "_fired")

    def __init__(self, callback: WatchCallback) -> None:
        self._callback = callback
        self._fired = False

    def fire(self, event: WatchEvent | None) -> None:
        """Call the callback, unless it was called before."""
        if not self._fired:
            self._fired = True
            self._callback(event)

"""Topics whose znode cannot be decoded: counted for a metric, logged once for each version of the znode.

A known topic keeps its last known state. Its partitions still fail over, since their states are separate znodes. Its assignment
cannot be written until an administrator corrects the znode.
"""

import logging
from collections.abc import Iterable, Mapping

from controller_core.shell.zookeeper.reading import TopicsFound, Unreadable

log = logging.getLogger(__name__)


class UnreadableTopics:
    """The unreadable topics of one active term."""

    def __init__(self) -> None:
        self._found: dict[str, Unreadable] = {}

    def __len__(self) -> int:
        return len(self._found)

    def names(self) -> list[str]:
        """Return their names, sorted."""
        return sorted(self._found)

    def version(self, name: str) -> int | None:
        """Return the version of a topic's unreadable znode; None if it is not known to be unreadable."""
        found = self._found.get(name)
        return None if found is None else found.version

    def note(self, read: Iterable[str], found: TopicsFound) -> None:
        """Record the result of reading the topics `read`."""
        for name in read:
            if name not in found.unreadable:
                self._found.pop(name, None)
        self._add(found.unreadable)

    def keep(self, present: Iterable[str]) -> None:
        """Forget topics that are not in `current`: their znodes were deleted."""
        names = set(present)
        self._found = {name: found for name, found in self._found.items() if name in names}

    def _add(self, unreadable: Mapping[str, Unreadable]) -> None:
        for name, found in unreadable.items():
            if self.version(name) != found.version:
                log.error(
                    "Failed to decode a topic's znode; its last known state remains in force. Correct the znode",
                    extra={"topic": name, "version": found.version, "error": found.reason},
                )
            self._found[name] = found

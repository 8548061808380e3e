"""Topics whose znode cannot be decoded: counted for a metric, logged once for each version of the znode.

A topic that was known keeps its last known state and fails over as before, since partition states are znodes of their own.
Its assignment cannot be written until somebody corrects the znode.
"""

import logging
from collections.abc import Iterable, Mapping

from controller_core.shell.zookeeper.reading import TopicsFound, Unreadable

log = logging.getLogger(__name__)


class UnreadableTopics:
    """The unreadable topics of one term."""

    def __init__(self) -> None:
        self._found: dict[str, Unreadable] = {}

    def __len__(self) -> int:
        return len(self._found)

    def names(self) -> list[str]:
        """Name them, in order."""
        return sorted(self._found)

    def version(self, name: str) -> int | None:
        """Give the version of a topic's unreadable znode; None where it is not known to be unreadable."""
        found = self._found.get(name)
        return None if found is None else found.version

    def note(self, read: Iterable[str], found: TopicsFound) -> None:
        """Take in what a read of topics found."""
        for name in read:
            if name not in found.unreadable:
                self._found.pop(name, None)
        self._add(found.unreadable)

    def keep(self, present: Iterable[str]) -> None:
        """Forget topics whose znode is gone."""
        there = set(present)
        self._found = {name: found for name, found in self._found.items() if name in there}

    def _add(self, unreadable: Mapping[str, Unreadable]) -> None:
        for name, found in unreadable.items():
            if self.version(name) != found.version:
                log.error(
                    "Failed to decode a topic's znode; its last known state remains in force. Correct the znode",
                    extra={"topic": name, "version": found.version, "why": found.reason},
                )
            self._found[name] = found

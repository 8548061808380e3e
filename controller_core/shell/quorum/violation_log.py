"""Violations of the protocol by other nodes of a quorum, in the log: at most one message in an interval.

`controller_core.quorum` decides what is a violation, and what the node does after it.
"""

import logging

log = logging.getLogger(__name__)

LOG_INTERVAL_MS = 10_000
"""Between two messages: a node that rejects this one does so at each retry, 50 times a second."""


class ViolationLog:
    """Counts violations and logs some of them; a message has the number of those that were not logged before it."""

    def __init__(self) -> None:
        self.count = 0
        """Messages by which another node broke the protocol or rejected this node."""
        self._logged_count = 0
        """`count` at the last message."""
        self._next_log_ms = 0

    def add(self, reason: str, now_ms: int) -> None:
        """Count a violation, and log it unless the last message is too recent."""
        self.count += 1
        if now_ms < self._next_log_ms:
            return
        log.error(
            "Another node of the quorum broke the protocol or rejects this node",
            extra={"reason": reason, "skipped": self.count - self._logged_count - 1},
        )
        self._logged_count = self.count
        self._next_log_ms = now_ms + LOG_INTERVAL_MS

"""Log level of messages about a host: one warning in an interval, so that no peer floods the log."""

import logging

WARNING_INTERVAL_S = 10.0
"""Interval between warnings about a host."""
MAX_WARNED_HOSTS = 1_000
"""Hosts whose last warning is stored; the oldest is removed for a new one."""


class HostWarnings:
    """Times of the last warnings, by host; in s of any clock."""

    def __init__(self) -> None:
        self._warned: dict[str, float] = {}

    def level(self, host: str, now_s: float) -> int:
        """Return WARNING for the first message about a host in an interval, DEBUG for the others."""
        if now_s - self._warned.get(host, -WARNING_INTERVAL_S) < WARNING_INTERVAL_S:
            return logging.DEBUG
        self._warned.pop(host, None)  # keeps the dict in the order of the times
        if len(self._warned) >= MAX_WARNED_HOSTS:
            del self._warned[next(iter(self._warned))]
        self._warned[host] = now_s
        return logging.WARNING

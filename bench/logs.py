"""Timestamps of lines in a broker's log, by the machine's clock."""

import datetime as dt
import re
from collections.abc import Iterator
from pathlib import Path

STAMP = re.compile(r"\[(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3})\]")


class BrokerLog:
    """One broker's log after a mark."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._from = 0

    def mark(self) -> None:
        """Set the mark to the current end of the log."""
        self._from = self._path.stat().st_size

    def stamps(self, pattern: str) -> list[float]:
        """Return the times of the lines after the mark in which the pattern is found."""
        with self._path.open("rb") as log:
            log.seek(self._from)
            text = log.read().decode("utf-8", errors="replace")
        return list(stamps(text, pattern))


def stamps(text: str, pattern: str) -> Iterator[float]:
    """Yield the times, in seconds since 1970, of the lines in which the pattern is found."""
    wanted = re.compile(pattern)
    for line in text.splitlines():
        stamp = STAMP.match(line)
        if stamp is not None and wanted.search(line):
            yield dt.datetime.strptime(stamp[1], "%Y-%m-%d %H:%M:%S,%f").astimezone().timestamp()

"""Names in a node's properties file that have no effect: in the log, and as sentences of a command."""

import logging
from typing import Protocol

log = logging.getLogger(__name__)

MAX_UNKNOWN_LOGGED = 20
"""Unknown names with a line each; a file with more is of another program, and one line has the number of the others."""


class IgnoredNames(Protocol):
    """Names without effect."""

    @property
    def unused(self) -> tuple[str, ...]:
        """Settings of Kafka that the process does not use, sorted."""

    @property
    def unknown(self) -> tuple[str, ...]:
        """Names that Kafka does not have, sorted."""


def log_ignored(read: IgnoredNames) -> None:
    """Log the names without effect: a line for each unknown name, and one line for all that only Kafka uses."""
    for name in read.unknown[:MAX_UNKNOWN_LOGGED]:
        log.warning("Ignoring unknown setting", extra={"setting": name})
    if len(read.unknown) > MAX_UNKNOWN_LOGGED:
        log.warning("Ignoring more unknown settings", extra={"count": len(read.unknown) - MAX_UNKNOWN_LOGGED})
    if read.unused:
        log.warning("Ignoring settings of Kafka that Steward does not use", extra={"settings": list(read.unused)})


def ignored_lines(read: IgnoredNames) -> list[str]:
    """Return the same as sentences, for a command."""
    lines = [f"Ignoring the unknown setting {name}." for name in read.unknown[:MAX_UNKNOWN_LOGGED]]
    if len(read.unknown) > MAX_UNKNOWN_LOGGED:
        lines.append(f"Ignoring {len(read.unknown) - MAX_UNKNOWN_LOGGED} more unknown settings.")
    if read.unused:
        lines.append(f"Ignoring settings of Kafka that Steward does not use: {', '.join(read.unused)}.")
    return lines

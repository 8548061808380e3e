"""Wait until something holds, with a bound: the lab's only loop that sleeps.

Real processes send no event for "ready", so their state is polled. The limits are generous on purpose: they exist to end a run that
hangs, never to measure.
"""

from __future__ import annotations

import contextlib
import socket
import time
from collections.abc import Callable

from lab.missing import LabError

POLL_INTERVAL_S = 0.02
"""Short compared with the start of a process (at least tenths of a second), long compared with one poll (under a millisecond)."""

CONNECT_TIMEOUT_S = 0.5
"""A loopback connection is accepted at once or refused at once; a stopped process with a full backlog is what runs into this."""


def wait_until(
    holds: Callable[[], bool],
    *,
    timeout_s: float,
    what: str,
    context: Callable[[], str] = str,
    interval_s: float = POLL_INTERVAL_S,
) -> float:
    """Return the seconds it took until `holds()` was true; raise `LabError` naming `what` after `timeout_s`.

    `context` returns details for the error, such as the end of a log; `interval_s` is for polls that cost more than usual.
    """
    started = time.monotonic()
    while not holds():
        if time.monotonic() - started > timeout_s:
            raise LabError(f"timed out after {timeout_s:g} s: {what}\n{context()}".rstrip())
        time.sleep(interval_s)
    return time.monotonic() - started


def port_accepts(port: int, host: str = "127.0.0.1") -> bool:
    """Whether a process listens on `host:port`."""
    with contextlib.suppress(OSError), socket.create_connection((host, port), timeout=CONNECT_TIMEOUT_S):
        return True
    return False

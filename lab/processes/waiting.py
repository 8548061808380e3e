"""Polling until a condition is true, with a timeout: the only loop of the lab that sleeps.

Real processes send no event for "ready", so their state is polled. The limits are generous on purpose: they exist to end a run that
hangs, never to measure.
"""

from __future__ import annotations

import contextlib
import socket
import time
from collections.abc import Callable

from lab.errors import LabError

SHORTEST_POLL_INTERVAL_S = 0.02
"""Short compared with the start of a process: at least tenths of a second."""

LONGEST_POLL_INTERVAL_S = 0.2
"""Short compared with any state that a test waits to see, long compared with a poll: one of a Kubernetes API costs some milliseconds."""

POLL_SHARE = 0.05
"""A poll comes after this share of the time waited so far: few polls in a long wait, which ends at most so much later."""

CONNECT_TIMEOUT_S = 0.5
"""A loopback connection is accepted at once or refused at once; a stopped process with a full backlog is what runs into this."""


def wait_until(
    condition: Callable[[], bool],
    *,
    timeout_s: float,
    what: str,
    context: Callable[[], str] = str,
    interval_s: float | None = None,
) -> float:
    """Return the seconds until `condition()` was true; raise `LabError` with `what` after `timeout_s`.

    `context` returns details for the error, such as the end of a log; `interval_s` is for polls that cost more than usual.
    """
    started = time.monotonic()
    while not condition():
        waited_s = time.monotonic() - started
        if waited_s > timeout_s:
            raise LabError(f"timed out after {timeout_s:g} s: {what}\n{context()}".rstrip())
        time.sleep(poll_interval_s(waited_s) if interval_s is None else interval_s)
    return time.monotonic() - started


def poll_interval_s(waited_s: float) -> float:
    """Return the time until the next poll of a wait that has taken `waited_s`.

    >>> poll_interval_s(0.1), poll_interval_s(2.0), poll_interval_s(30.0)
    (0.02, 0.1, 0.2)
    """
    return min(max(SHORTEST_POLL_INTERVAL_S, POLL_SHARE * waited_s), LONGEST_POLL_INTERVAL_S)


def port_accepts(port: int, host: str = "127.0.0.1") -> bool:
    """Whether a process listens on `host:port`."""
    with contextlib.suppress(OSError), socket.create_connection((host, port), timeout=CONNECT_TIMEOUT_S):
        return True
    return False

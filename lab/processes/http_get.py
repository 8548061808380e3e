"""One HTTP GET to a process on this machine, for readiness probes and metrics.

Proxies of the environment are ignored: the processes listen on 127.0.0.1.
"""

from __future__ import annotations

import http.client
from dataclasses import dataclass

TIMEOUT_S = 2.0
"""A busy process answers in tenths of a second; callers retry."""


@dataclass(frozen=True, slots=True)
class Answer:
    """Status code and body of an HTTP answer."""

    status: int
    body: bytes


def http_get(port: int, path: str) -> Answer | None:
    """Return the answer of 127.0.0.1:`port`; None without an answer."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=TIMEOUT_S)
    try:
        connection.request("GET", path)
        response = connection.getresponse()
        return Answer(response.status, response.read())
    except (OSError, http.client.HTTPException):
        return None
    finally:
        connection.close()

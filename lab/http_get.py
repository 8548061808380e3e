"""One HTTP GET to a peer on this machine, for questions such as "are you ready?".

Proxies of the environment are not asked: the peers are on 127.0.0.1.
"""

from __future__ import annotations

import http.client
import ssl
from collections.abc import Mapping
from dataclasses import dataclass

TIMEOUT_S = 2.0
"""A busy peer answers in tenths of a second; the loops that ask come again."""


@dataclass(frozen=True, slots=True)
class Answer:
    """Status code and body of an HTTP answer."""

    status: int
    body: bytes


def http_get(
    port: int, path: str, *, context: ssl.SSLContext | None = None, headers: Mapping[str, str] | None = None
) -> Answer | None:
    """Return the answer of 127.0.0.1:`port`, over TLS with a `context`; None when nobody answers."""
    if context is None:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=TIMEOUT_S)
    else:
        connection = http.client.HTTPSConnection("127.0.0.1", port, timeout=TIMEOUT_S, context=context)
    try:
        connection.request("GET", path, headers=dict(headers or {}))
        response = connection.getresponse()
        return Answer(response.status, response.read())
    except (OSError, http.client.HTTPException):
        return None
    finally:
        connection.close()

"""A query of a Prometheus server, as one small interface."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol
from urllib.parse import urlsplit


class PrometheusError(Exception):
    """A query without a usable result; the message has the reason, and never the token."""


@dataclass(frozen=True, slots=True)
class PrometheusServer:
    """Address and credentials of a server; `ca` is PEM, None for the system's authorities. ValueError for ones that cannot be used."""

    url: str
    ca: str | None = field(default=None, repr=False)
    token: str | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        check_server(self.url, self.token)


def check_server(url: str, token: str | None) -> None:
    """Raise ValueError for a URL that is not one of a server, or that must not get a token."""
    parts = urlsplit(url)
    if parts.scheme not in {"http", "https"} or not parts.hostname:
        raise ValueError(f"{url!r:.200} is not a valid URL of a Prometheus server: https://HOST:PORT")
    if parts.username or parts.password:
        raise ValueError("the URL of Prometheus must not contain a password: use a token instead")
    if token is not None and parts.scheme != "https":
        raise ValueError("a token is sent only over https")
    if token is not None and not (token and token.isascii() and token.isprintable()):
        raise ValueError("the token is empty, or has characters that a header of HTTP cannot have")


class Prometheus(Protocol):
    """Prometheus servers."""

    async def query(self, server: PrometheusServer, expression: str) -> float:
        """Return the current value of an expression with exactly one value; PrometheusError otherwise."""
        ...

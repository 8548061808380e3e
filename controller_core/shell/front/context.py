"""What a handler of the controller's own requests is told about the request, and what it is.

Left out: how the caller has proven who it is (kafka_wire.net).
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from kafka_wire.codec import Body
from kafka_wire.net.peer import ANONYMOUS


@dataclass(frozen=True, slots=True)
class RequestContext:
    """Where a request came from."""

    listener: str
    client_id: str | None
    """What the client calls itself; no proof of anything."""
    peer_host: str
    correlation_id: int
    api_version: int
    principal: str = ANONYMOUS
    """Who asks, proven: `User:NAME`, or `User:ANONYMOUS` where the listener asks for no proof."""


class RelayInstead(Exception):  # noqa: N818 - no error: another way for the request
    """The request is to be passed on unchanged to a live broker of the same listener, and its answer back."""


OwnHandler = Callable[[RequestContext, Body], Awaitable[Body]]
"""Answers one request of the controller's own with the response's body.

It is cancelled when the client's connection breaks. RelayInstead passes the request on to a live broker, unchanged;
CloseConnection closes the connection; any other exception is logged as UNKNOWN_SERVER_ERROR and closes it too; RelayInstead leaves the request to a broker.
"""

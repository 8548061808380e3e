"""What a handler of the controller's own requests is told about the request, and what it is.

Left out: how the caller has proven who it is (kafka_wire.net).
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Protocol

from kafka_wire.codec import Body
from kafka_wire.encoded_body import EncodedBody
from kafka_wire.net.peer import ANONYMOUS


class TopicRights(Protocol):
    """What one caller may do with topics, for answers that show it."""

    def describes_every_topic(self) -> bool:
        """Whether the caller may describe each topic, whatever its name."""

    def describes(self, name: str) -> bool:
        """Whether the caller may describe a topic."""

    def creates(self, name: str | None = None) -> bool:
        """Whether the caller may create a topic; without a name: any topic."""

    def on_every_topic(self) -> int | None:
        """Return the authorized operations (KIP-430) on each topic; None where they may differ from topic to topic."""

    def on_topic(self, name: str) -> int:
        """Return the authorized operations on a topic."""

    def on_cluster(self) -> int:
        """Return the authorized operations on the cluster."""


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
    rights: TopicRights | None = None
    """The caller's rights on topics, for Metadata; None: there is no authorizer."""


class RelayInstead(Exception):  # noqa: N818 - no error: another way for the request
    """The request is to be passed on unchanged to a live broker of the same listener, and its answer back."""


OwnHandler = Callable[[RequestContext, Body], Awaitable[Body | EncodedBody]]
"""Answers one request of the controller's own with the response's body, which may be encoded already.

It is cancelled when the client's connection breaks. RelayInstead passes the request on to a live broker, unchanged;
CloseConnection closes the connection; any other exception is logged as UNKNOWN_SERVER_ERROR and closes it too; RelayInstead leaves the request to a broker.
"""

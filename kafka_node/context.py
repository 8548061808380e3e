"""Context of a request, as its handler and the authorizer get it: the listener, the caller and the caller's rights."""

from dataclasses import dataclass, field
from typing import Protocol

from kafka_wire.net.peer import ANONYMOUS, Peer


class TopicRights(Protocol):
    """Rights of one caller on topics, for responses that contain them."""

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
    """Origin of a request."""

    listener: str
    client_id: str | None
    """The name that the client chose; not authenticated."""
    peer_host: str
    correlation_id: int
    api_version: int
    principal: str = ANONYMOUS
    """The authenticated caller: `User:NAME`, or `User:ANONYMOUS` where the listener has no authentication."""
    rights: TopicRights | None = None
    """The caller's rights on topics, for Metadata; None: there is no authorizer."""
    connection: Peer | None = field(default=None, compare=False, repr=False)
    """The connection; for a request in an Envelope a peer with the client's address, which never ends."""
    is_forwarded: bool = False
    """Whether a broker has forwarded the request in an Envelope."""

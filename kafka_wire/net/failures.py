"""Exceptions of connections. An error code in a response is not an exception; kafka_wire.failures has those of the codec."""

__all__ = ["CloseConnection", "ConnectionFailed", "MalformedRequest", "RequestTimedOut", "UnsupportedVersion"]


class ConnectionFailed(Exception):  # noqa: N818 -- names the condition, like Kafka's exceptions
    """The connection could not be opened, or ended before the response arrived.

    `reason` names the cause and the peer. `sent` is True if the request may have reached the peer: it is then unknown whether the
    request was processed, and only an idempotent request may be sent again.
    """

    def __init__(self, reason: str, *, sent: bool) -> None:
        super().__init__(reason)
        self.reason = reason
        self.sent = sent


class RequestTimedOut(ConnectionFailed):
    """A request had no response within its timeout.

    Responses arrive in order, so no later request can have a response either: the connection is closed, as in Kafka's NetworkClient.
    """


class UnsupportedVersion(Exception):  # noqa: N818 -- Kafka's name
    """The peer and this process have no common version of the request; the connection stays open."""


class CloseConnection(Exception):  # noqa: N818 -- a command, not an error
    """Raised by a server's handler: close the connection of this request, for this reason."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class MalformedRequest(CloseConnection):
    """Raised by a server's handler: the request is malformed; close its connection and log that."""

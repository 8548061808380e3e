"""Exceptions of connections. An error code in a response is not an exception; kafka_wire.failures has those of the codec."""

from typing import Self

__all__ = [
    "CloseConnection",
    "ConnectionFailed",
    "MalformedRequest",
    "MalformedResponse",
    "RequestFailed",
    "RequestTimedOut",
    "UnsupportedVersion",
]


class RequestFailed(Exception):  # noqa: N818 -- names the condition, like Kafka's exceptions
    """A request has no response that can be used; `reason` names the cause and the peer."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class ConnectionFailed(RequestFailed):
    """The connection could not be opened, or ended before the response arrived.

    `sent` is True if the request may have reached the peer: it is then unknown whether the request was processed, and only an
    idempotent request may be sent again. The cause (`__cause__`) is the exception of the socket or of TLS, if there is one.
    """

    def __init__(self, reason: str, *, sent: bool) -> None:
        super().__init__(reason)
        self.sent = sent

    def of_request(self, *, sent: bool) -> Self:
        """Return this failure as that of one request."""
        failure = type(self)(self.reason, sent=sent)
        failure.__cause__ = self.__cause__
        return failure


class RequestTimedOut(ConnectionFailed):
    """A request had no response within its timeout.

    Responses arrive in order, so no later request can have a response either: the connection is closed, as in Kafka's NetworkClient.
    """


class MalformedResponse(ConnectionFailed):
    """The response could not be decoded: the connection is closed, and the request is not sent again."""


class UnsupportedVersion(RequestFailed):
    """The peer and this process have no common version of the request; the connection stays open."""


class CloseConnection(Exception):  # noqa: N818 -- a command, not an error
    """Raised by a server's handler: close the connection of this request, for this reason."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class MalformedRequest(CloseConnection):
    """Raised by a server's handler: the request is malformed; close its connection and log that."""

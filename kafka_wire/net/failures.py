"""What can go wrong between this process and one peer, as exceptions.

Left out: what a peer answers (an error code in a body is an answer, not a failure), and what a body may hold
(the codec's own errors).
"""

__all__ = ["CloseConnection", "ConnectionFailed", "MalformedRequest", "RequestTimedOut", "UnsupportedVersion"]


class ConnectionFailed(Exception):  # noqa: N818  the word that callers say, beside Kafka's own names
    """The connection could not be opened, or ended before the answer came.

    `reason` says what happened, to which peer. `sent` is True when the request may have reached the peer: it is then
    unknown whether it was carried out, and only a request that is safe to repeat may be sent again.
    """

    def __init__(self, reason: str, *, sent: bool) -> None:
        super().__init__(reason)
        self.reason = reason
        self.sent = sent


class RequestTimedOut(ConnectionFailed):
    """A request was not answered within its time.

    Answers come in order, so nothing behind it could be answered either: the connection is closed with it, as
    Kafka's NetworkClient does.
    """


class UnsupportedVersion(Exception):  # noqa: N818  Kafka's own name for it
    """The peer and this process have no version of the request in common; the connection stays open."""


class CloseConnection(Exception):  # noqa: N818  an order, rather than an error
    """Raised by a server's handler: close the connection that this request came by, for this reason."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class MalformedRequest(CloseConnection):
    """Raised by a server's handler: these bytes are no request; close the connection and say so in the log."""

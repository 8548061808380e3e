"""Who is at the other end of a connection that a server accepted, as its handler sees it.

Left out: whom the peer claims to be in a request (a client id is no identity).
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

from kafka_wire.encoded_body import Response

ANONYMOUS = "User:ANONYMOUS"
"""Kafka's principal of a peer that has proven nothing."""


@dataclass(eq=False, slots=True)
class Peer:
    """One accepted connection. Equal to itself alone, so it may be the key of what is kept per connection."""

    host: str
    port: int
    close: Callable[[str], None]
    """Closes the connection at once, for a reason that is logged."""
    hold: Callable[[int], None]
    """Counts bytes that a handler holds for this connection, more or (below 0) less, in the server's account."""
    principal: str = ANONYMOUS
    """Who it is, as far as it has proven that: by its certificate or by SASL."""
    _callbacks: list[Callable[[], None]] = field(default_factory=list, repr=False)
    _gone: bool = False

    def on_close(self, callback: Callable[[], None]) -> None:
        """Have `callback` called once when the connection has ended, or now when it has."""
        if self._gone:
            callback()
        else:
            self._callbacks.append(callback)

    def gone(self) -> None:
        """Tell everybody who asked that the connection has ended (called by the server)."""
        self._gone = True
        callbacks, self._callbacks = self._callbacks, []
        for callback in callbacks:
            callback()

    def __str__(self) -> str:
        return f"{self.host}:{self.port}"


Handler = Callable[[Peer, bytes], Awaitable[Response | None]]
"""Answers one request frame with a response frame, both without the size, or with None when the request has no response.

MalformedRequest and CloseConnection close the connection for their reason; any other exception closes it too and is
logged with its traceback. When the connection breaks, its handlers are cancelled: work that must be finished belongs to
a task of its own.
"""

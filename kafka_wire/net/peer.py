"""Peer of a server connection, as its handler sees it."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

from kafka_wire.encoded_body import Response

ANONYMOUS = "User:ANONYMOUS"
"""Kafka's principal of an unauthenticated peer."""


@dataclass(eq=False, slots=True)
class Peer:
    """One accepted connection. Compared by identity, so it may be a key of per-connection data."""

    host: str
    port: int
    close: Callable[[str], None]
    """Closes the connection at once; the reason is logged."""
    hold: Callable[[int], None]
    """Adds bytes that a handler holds for this connection to the server's account; a negative count releases them."""
    principal: str = ANONYMOUS
    """Authenticated principal, from its certificate or SASL."""
    is_forwarded: bool = False
    """Whether this is a client whose request a broker has forwarded in an Envelope (KIP-590)."""
    _callbacks: list[Callable[[], None]] = field(default_factory=list, repr=False)
    _is_closed: bool = False

    def on_close(self, callback: Callable[[], None]) -> None:
        """Call `callback` once when the connection has ended, or now if it has."""
        if self._is_closed:
            callback()
        else:
            self._callbacks.append(callback)

    def mark_closed(self) -> None:
        """Run the close callbacks; the server calls this when the connection has ended."""
        self._is_closed = True
        callbacks, self._callbacks = self._callbacks, []
        for callback in callbacks:
            callback()

    def __str__(self) -> str:
        return f"{self.host}:{self.port}"


Frame = bytes | memoryview
"""A small frame, or a view of a large one. The view stays valid for as long as it, or a slice of it, is referenced."""

Handler = Callable[[Peer, bytes], Awaitable[Response | None]]
"""Returns the response frame of a request frame, both without the size, or None if the request has no response.

MalformedRequest and CloseConnection close the connection for their reason; any other exception also closes it and is
logged with its traceback. When the connection ends, its handlers are cancelled: work that must be finished belongs in
a separate task.
"""

LargeHandler = Callable[[Peer, memoryview], Awaitable[Response | None]]
"""Handler of large frames, which are not copied: a view of a reused buffer. The buffer is reused once nothing refers to it, so a handler that
waits should first drop what it no longer needs."""

FrameHandler = Callable[[Peer, Frame], Awaitable[Response | None]]

StartsAtOnce = Callable[[Frame], bool]
"""Returns whether the handler of a request starts as soon as the request has arrived, without a task of its own: until it waits for the first
time it must not use what belongs to a task, such as asyncio.timeout."""


def starts_in_task(_frame: Frame) -> bool:
    """Start each handler in a task (a StartsAtOnce)."""
    return False

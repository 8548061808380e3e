"""Interface of the handlers for requests that the controller answers itself or, without the store that they need, relays."""

from collections.abc import Awaitable, Callable
from typing import TypeVar

from kafka_node.context import RequestContext
from kafka_wire import Body
from kafka_wire.encoded_body import EncodedBody


class RelayInstead(Exception):  # noqa: N818 - not an error: a different route
    """Raised by a handler to have the request relayed unchanged to a live broker of the same listener."""


RequestHandler = Callable[[RequestContext, Body], Awaitable[Body | EncodedBody]]
"""Returns the response body, which may be encoded already.

It is cancelled when the client's connection breaks. RelayInstead relays the request and CloseConnection closes the connection. Any
other exception is logged as UNKNOWN_SERVER_ERROR and also closes the connection.
"""

Store = TypeVar("Store")


def store_backed_handler(
    store: Store | None, what: str, answer: Callable[[Store, Body], Awaitable[Body]]
) -> RequestHandler:
    """Create a handler that answers from a store; without a store it raises RelayInstead."""

    async def handle(_: RequestContext, body: Body) -> Body:
        if store is None:
            raise RelayInstead(f"{what} are not stored by this process")
        return await answer(store, body)

    return handle

"""Interface of the handlers for requests that the controller answers itself."""

from collections.abc import Awaitable, Callable

from kafka_node.context import RequestContext
from kafka_wire.codec import Body
from kafka_wire.encoded_body import EncodedBody


class RelayInstead(Exception):  # noqa: N818 - not an error: a different route
    """Raised by a handler to have the request relayed unchanged to a live broker of the same listener."""


RequestHandler = Callable[[RequestContext, Body], Awaitable[Body | EncodedBody]]
"""Returns the response body, which may be encoded already.

It is cancelled when the client's connection breaks. RelayInstead relays the request and CloseConnection closes the connection. Any
other exception is logged as UNKNOWN_SERVER_ERROR and also closes the connection.
"""

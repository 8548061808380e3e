"""Handlers of the controller's own requests, and the exception by which they have a request relayed."""

from collections.abc import Awaitable, Callable

from kafka_node.context import RequestContext
from kafka_wire.codec import Body
from kafka_wire.encoded_body import EncodedBody


class RelayInstead(Exception):  # noqa: N818 - no error: another way for the request
    """The request is to be relayed unchanged to a live broker of the same listener, and its answer to the client."""


OwnHandler = Callable[[RequestContext, Body], Awaitable[Body | EncodedBody]]
"""Returns the body of the response to a request that the controller serves; the body may be encoded already.

It is cancelled when the client's connection breaks. RelayInstead relays the request; CloseConnection closes the connection; any other
exception is logged as UNKNOWN_SERVER_ERROR and closes it too.
"""

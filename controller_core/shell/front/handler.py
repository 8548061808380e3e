"""Handlers of the controller's own requests, and their way to pass a request on."""

from collections.abc import Awaitable, Callable

from kafka_node.context import RequestContext
from kafka_wire.codec import Body
from kafka_wire.encoded_body import EncodedBody


class RelayInstead(Exception):  # noqa: N818 - no error: another way for the request
    """The request is to be passed on unchanged to a live broker of the same listener, and its answer back."""


OwnHandler = Callable[[RequestContext, Body], Awaitable[Body | EncodedBody]]
"""Answers one request of the controller's own with the response's body, which may be encoded already.

It is cancelled when the client's connection breaks. RelayInstead passes the request on to a live broker, unchanged;
CloseConnection closes the connection; any other exception is logged as UNKNOWN_SERVER_ERROR and closes it too; RelayInstead leaves the request to a broker.
"""

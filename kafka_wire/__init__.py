"""Kafka's wire protocol: encoding, decoding and connections.

The lowest layer. `codec` encodes and decodes messages, `records` record batches, `frames` the sizes in front of messages; `net` has
the client and the server.

Code outside this package imports what all requests need from here:
`from kafka_wire import ApiKey, Body, ErrorCode, Failure, codec`.
"""

from kafka_wire.api import ApiKey, Body
from kafka_wire.errors import ErrorCode, Failure

__all__ = ["ApiKey", "Body", "ErrorCode", "Failure"]

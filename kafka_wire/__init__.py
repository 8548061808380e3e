"""Kafka's wire protocol: encoding, decoding and connections.

The lowest layer. `codec` encodes and decodes messages, `records` record batches, `frames` the sizes in front of messages; `net` has
the client and the server.
"""

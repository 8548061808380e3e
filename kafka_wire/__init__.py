"""Kafka's wire protocol: bytes to values and back, and the sockets that carry them.

Lowest layer of all: it knows nothing of controllers, brokers or ZooKeeper, and decides nothing. `codec` is the way in
for messages, `records` for record batches, `frames` for sizes on a stream, `net` for connections.
"""

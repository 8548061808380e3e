"""LeaderAndIsr requests as a broker reads them, and its response without errors: for brokers that are sockets.

A real broker names every partition in its response, which the controller has to read. The codec would take a second for a request of
60,000 partitions, so version 7 is read by its layout (LeaderAndIsrRequest.json of Kafka 3.9); others are read by the codec.
"""

import struct

from kafka_wire import ApiKey, codec
from kafka_wire.varints import read_uvarint, write_uvarint

VERSION = 7
_HEAD_BYTES = 4 + 1 + 4 + 8 + 1
"""controller id, whether it is a KRaft controller, controller epoch, broker epoch, type."""
_NUMBERS_BYTES = 4 * 4
"""partition, controller epoch, leader, leader epoch."""
_TAIL_BYTES = 3
"""is new, recovery state, no tagged fields."""
_TAKEN = struct.Struct(">ihB")

Partitions = list[tuple[bytes, list[int]]]
"""Topic ids with partitions."""


def partitions_in(frame: bytes) -> int:
    """Return the number of partitions in a request (without its size)."""
    header = codec.peek_header(frame)
    if header.api_version == VERSION:
        return sum(len(partitions) for _, partitions in _partitions_of(frame))
    return sum(len(topic["partition_states"]) for topic in codec.decode_request(frame)[1]["topic_states"])


def taken(frame: bytes) -> bytes:
    """Return the response (without a size) that reports no error for each partition."""
    header = codec.peek_header(frame)
    if header.api_version != VERSION:
        return codec.encode_response(ApiKey.LEADER_AND_ISR, header.api_version, header.correlation_id, {})
    topics = _partitions_of(frame)
    parts = [codec.response_header(ApiKey.LEADER_AND_ISR, VERSION, header.correlation_id), b"\0\0"]
    parts.append(write_uvarint(len(topics) + 1))
    for topic_id, partitions in topics:
        parts += (
            topic_id,
            write_uvarint(len(partitions) + 1),
            *(_TAKEN.pack(partition, 0, 0) for partition in partitions),
            b"\0",
        )
    return b"".join((*parts, b"\0"))


def _partitions_of(frame: bytes) -> Partitions:
    (client_id_bytes,) = struct.unpack_from(">h", frame, 8)
    count, position = read_uvarint(frame, 10 + max(client_id_bytes, 0) + 1 + _HEAD_BYTES)
    topics: Partitions = []
    for _ in range(count - 1):
        name_bytes, position = read_uvarint(frame, position)
        position += name_bytes - 1
        topic_id = frame[position : position + 16]
        states, position = read_uvarint(frame, position + 16)
        partitions = []
        for _ in range(states - 1):
            partitions.append(int.from_bytes(frame[position : position + 4], "big"))
            position = _skip_ids(frame, position + _NUMBERS_BYTES) + 4
            for _ in ("replicas", "adding", "removing"):
                position = _skip_ids(frame, position)
            position += _TAIL_BYTES
        topics.append((topic_id, partitions))
        position += 1
    return topics


def _skip_ids(frame: bytes, position: int) -> int:
    count, position = read_uvarint(frame, position)
    return position + 4 * (count - 1)

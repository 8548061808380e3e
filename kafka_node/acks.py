"""Acknowledgement policy of requests: every request has a response, except Produce with acks=0.

The body is read up to that field only. Pure.
"""

import struct

from kafka_wire import ApiKey
from kafka_wire.codec import CodecError, RequestHeader
from kafka_wire.varints import read_uvarint

_SHORT = struct.Struct(">h")
_TRANSACTIONAL_ID_FROM = 3  # Produce: the version that put a nullable transactional id before acks (KIP-98)
_FLEXIBLE_FROM = 9  # Produce: the version from which that id has a varint length (KIP-482)


def has_response(header: RequestHeader, frame: bytes) -> bool:
    """Return whether a broker answers this request; raises CodecError when a Produce request is cut off."""
    if header.api_key != ApiKey.PRODUCE:
        return True
    offset = header.body_offset
    try:
        if header.api_version >= _FLEXIBLE_FROM:
            length_and_one, offset = read_uvarint(frame, offset)
            offset += max(0, length_and_one - 1)
        elif header.api_version >= _TRANSACTIONAL_ID_FROM:
            (length,) = _SHORT.unpack_from(frame, offset)
            offset += _SHORT.size + max(0, length)
        (acks,) = _SHORT.unpack_from(frame, offset)
    except (IndexError, struct.error):
        raise CodecError("the request ends before its acks", message="ProduceRequest") from None
    return bool(acks != 0)

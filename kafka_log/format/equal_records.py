"""Runs of records in a batch whose fields have the same lengths, checked column by column.

Many producers send records of one size. In such a run each byte that announces a length has the same distance from that of the record before, so
a slice with a step has the announcements of all records, and comparing it takes no step of the interpreter for each. Leaves out records with
headers, and those that differ in a length: record_walk.py reads them one at a time.
"""

from typing import NamedTuple

from kafka_wire.varints import read_varint, write_varint

MOST_AT_ONCE = 1_024
"""Records that are compared at once: a run that ends early wastes at most so many comparisons."""

SHORT_DELTAS = 64
"""Offset deltas below it take one byte, the others up to `KNOWN_DELTAS` two."""
KNOWN_DELTAS = 8_192
"""More records than usual batches have."""
OFFSET_DELTAS = [write_varint(index) for index in range(KNOWN_DELTAS)]
"""Encoded offset deltas of consecutive records."""
_OFFSET_COLUMNS = (
    (bytes(delta[0] for delta in OFFSET_DELTAS),),
    (bytes(delta[0] for delta in OFFSET_DELTAS), bytes(delta[-1] for delta in OFFSET_DELTAS)),
)
"""Bytes of the offset deltas of one byte, and of two."""

CONTINUED = 0x80
"""Bit of a byte that another one follows."""
_SIGNED = tuple((byte >> 1) ^ -(byte & 1) for byte in range(128))
"""Timestamp deltas of one byte."""


class Run(NamedTuple):
    """Records that follow another one and have its lengths."""

    timestamps_ms: list[int]
    """One for each record."""
    without_key: range
    """Indexes of the records with a null key: all or none."""
    size_bytes: int
    """Size of each record."""


NO_RUN = Run([], range(0), 0)
"""Also where the timestamps differ from those of the first record by more than 8 s, which takes three bytes."""


def run_after(data: bytes, first: int, end: int, index: int, count: int, base_timestamp_ms: int) -> Run:
    """Return the run behind the record with an index, which fills `data` from `first` to `end` and was checked. The batch has `count` records.

    The offsets of the run are consecutive. It is empty where the records have a form that is not examined here.
    """
    stride = end - first
    attributes_at = first + 1
    while data[attributes_at - 1] >= CONTINUED:
        attributes_at += 1
    timestamp_at = attributes_at + 1
    timestamp_bytes = 1 if data[timestamp_at] < CONTINUED else 2
    offset_at = timestamp_at + timestamp_bytes
    expected_offset = OFFSET_DELTAS[index] if index + 1 < KNOWN_DELTAS else b""
    offset_bytes, known_deltas = (1, SHORT_DELTAS) if index + 1 < SHORT_DELTAS else (2, KNOWN_DELTAS)
    if (
        data[offset_at - 1] >= CONTINUED
        or len(expected_offset) != offset_bytes
        or not data.startswith(expected_offset, offset_at)
    ):
        return NO_RUN
    key_at = offset_at + offset_bytes
    key_bytes, key_begin = read_varint(data, key_at)
    value_at = key_begin + max(key_bytes, 0)
    value_bytes, value_begin = read_varint(data, value_at)
    headers_at = end - 1
    most = min(count - index, known_deltas - index, (len(data) - first) // stride, MOST_AT_ONCE + 1) - 1
    if most <= 0 or value_begin + max(value_bytes, 0) != headers_at:
        return NO_RUN
    # Announcements that all records of the run have in common with the first one.
    behind = end + most * stride
    for place in (*range(first, attributes_at), *range(key_at, key_begin), *range(value_at, value_begin), headers_at):
        column = data[place:behind:stride]
        if column.count(column[0]) <= most:
            most = len(column) - len(column.lstrip(column[:1])) - 1
            behind = end + most * stride
    if not most:
        return NO_RUN
    span = most * stride - stride + 1
    for begin, expected in enumerate(_OFFSET_COLUMNS[offset_bytes - 1], offset_at + stride):
        if data[begin : begin + span : stride] != expected[index + 1 : index + 1 + most]:
            return NO_RUN
    begin = offset_at - 1 + stride
    last = data[begin : begin + span : stride]
    if not last.isascii():
        return NO_RUN
    without_key = range(index + 1, index + 1 + most) if key_bytes < 0 else range(0)
    if timestamp_bytes == 1:
        return Run([base_timestamp_ms + _SIGNED[byte] for byte in last], without_key, stride)
    low = data[begin - 1 : begin - 1 + span : stride]
    if min(low) < CONTINUED:
        return NO_RUN
    pairs = (low_byte & 0x7F | high_byte << 7 for low_byte, high_byte in zip(low, last, strict=True))
    return Run([base_timestamp_ms + ((pair >> 1) ^ -(pair & 1)) for pair in pairs], without_key, stride)

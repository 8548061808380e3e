"""Column decoder of metadata records of partitions: a snapshot of a million partitions in about a second.

The lengths of the records are read one by one, everything else for all records at once: the position of a field in every record is a
column, and so is its value. Supported is the usual form of PartitionRecord and PartitionChangeRecord: no key, no headers, one timestamp in a batch,
lists of at most 126 elements. Every other record is returned as it is, for the codec, which is therefore the reference (tests).
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import chain, islice
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from kafka_wire import schema
from kafka_wire.columns.record_encoder import ABSENT, UUID, Lists, RecordColumns
from kafka_wire.compression import Compression
from kafka_wire.failures import CodecError
from kafka_wire.records import (
    METADATA_FRAME_VERSION,
    BatchHeader,
    CorruptBatch,
    Record,
    batch_headers,
    batches_of_records,
    checked_records,
    decode_batches,
    decode_record,
)
from kafka_wire.varints import read_uvarint

Positions = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]

MESSAGES = ("PartitionRecord", "PartitionChangeRecord")

_ELEMENTS = {"int8": ">i1", "int16": ">i2", "int32": ">i4", "uuid": "V16"}
_LENGTH_ENDS = (1 << 6, 1 << 13, 1 << 20, 1 << 27)
"""Where the length of a record takes a byte more."""
_NO_KEY = 1
"""Length of no key, -1, as a varint."""
_LONGEST = 126
"""Elements of a list whose count takes one byte."""
_SPARE = bytes(4_096)
"""After the records: a field is read before its end is checked, and none takes more."""


@dataclass(frozen=True, slots=True, eq=False)
class DecodedRecords:
    """Records of some batches, without control records."""

    columns: tuple[tuple[Positions, RecordColumns], ...]
    """By message and version: the offsets of the records, which increase, and the records."""
    others: tuple[Record, ...]
    """In the order of their offsets."""


class _Part(NamedTuple):
    """Successive records of a batch, from one place in it on."""

    header: BatchHeader
    first: int
    records: bytes
    sizes: list[int]
    """Bytes of each record after its length."""


def decode_columns(data: bytes) -> DecodedRecords:
    """Decode the records of whole batches. Raises CorruptBatch and UnsupportedCompression."""
    others: list[Record] = []
    parts: list[_Part] = []
    for position, header in batch_headers(data):
        if header.is_control:
            continue
        if _is_usual(header):
            parts += _parts(data, position, header, header.record_count)
        else:
            (batch,) = decode_batches(data[position : position + header.size_bytes])
            others += batch.records
    return _decoded(parts, others)


def decode_parts(batch: bytes, most_records: int) -> Iterator[DecodedRecords]:
    """Decode one batch, at most some records at once. Raises CorruptBatch and UnsupportedCompression.

    Kafka writes a snapshot in batches of up to 8 MiB, with 70,000 partitions or more.
    """
    ((position, header),) = batch_headers(batch)
    if _is_usual(header):
        yield from (_decoded([part], []) for part in _parts(batch, position, header, most_records))
        return
    ((_, records),) = batches_of_records(batch)
    while some := tuple(islice(records, most_records)):
        yield DecodedRecords((), some)


def _is_usual(header: BatchHeader) -> bool:
    return header.compression == Compression.NONE and header.last_offset_delta == header.record_count - 1


def _parts(data: bytes, position: int, header: BatchHeader, most_records: int) -> Iterator[_Part]:
    """Yield the records of a batch in parts. Raises CorruptBatch if their lengths do not fit."""
    records = checked_records(data, position, header)
    begin = first = 0
    while first < header.record_count:
        sizes, end = _record_sizes(records, header, begin, min(most_records, header.record_count - first))
        part = _Part(header, first, records[begin:end], sizes)
        begin, first = end, first + len(sizes)
        if first < header.record_count:
            yield part
    if begin != len(records):
        raise _wrong_lengths(header)
    if first:
        yield part


def _decoded(parts: Sequence[_Part], others: list[Record]) -> DecodedRecords:
    if not parts:
        return DecodedRecords((), tuple(others))
    walk = _Walk(parts)
    columns = tuple(walk.columns())
    others += walk.rest()
    return DecodedRecords(columns, tuple(sorted(others, key=lambda record: record.offset)))


def _record_sizes(records: bytes, header: BatchHeader, position: int, count: int) -> tuple[list[int], int]:
    """Return the bytes of each of some records after its length, and the position behind them. Raises CorruptBatch."""
    sizes = []
    signs = 0
    try:
        for _ in range(count):
            zigzag = records[position]
            position += 1
            if zigzag >= 0x80:
                # Nearly all records have 64 to 8,191 bytes: the usual second byte is read without a call.
                following = records[position]
                zigzag += following - 1 << 7
                position += 1
                if following >= 0x80:
                    zigzag, position = read_uvarint(records, position - 2)
            signs |= zigzag
            size = zigzag >> 1
            sizes.append(size)
            position += size
    except (IndexError, CodecError):
        raise _wrong_lengths(header) from None
    if position > len(records) or signs & 1:
        raise _wrong_lengths(header)
    return sizes, position


def _wrong_lengths(header: BatchHeader) -> CorruptBatch:
    return CorruptBatch(
        f"The records of the batch at offset {header.base_offset} do not have the lengths that they announce."
    )


class _Walk:
    """Records that are read together."""

    def __init__(self, parts: Sequence[_Part]) -> None:
        self._headers = [part.header for part in parts]
        self._bases = np.array([part.header.base_offset + part.first for part in parts])
        self._firsts = np.cumsum([0, *(len(part.sizes) for part in parts)])
        self._content = b"".join((*(part.records for part in parts), _SPARE))
        sizes = np.array(list(chain.from_iterable(part.sizes for part in parts)), np.int64)
        self._limit = len(self._content) - len(_SPARE)
        self._bytes = np.frombuffer(self._content, np.uint8)
        self._elements = {kind: self._overlapping(np.dtype(code)) for kind, code in _ELEMENTS.items()}
        length_bytes = 1 + np.searchsorted(_LENGTH_ENDS, sizes, side="right")
        self._ends: Positions = np.cumsum(sizes + length_bytes)
        self._starts = self._ends - sizes
        self._is_read = np.zeros(len(sizes), np.bool_)

    def _overlapping(self, kind: np.dtype[Any]) -> npt.NDArray[Any]:
        """Return a view with an element at each byte."""
        return np.ndarray((len(self._content) - kind.itemsize + 1,), kind, self._content, strides=(1,))

    def columns(self) -> Iterator[tuple[Positions, RecordColumns]]:
        """Yield the offsets and the records of each message and version."""
        kinds, at = self._values()
        for kind, (message, version) in _kinds().items():
            rows = np.flatnonzero(kinds == kind)
            if not len(rows):
                continue
            columns, is_whole = self._read(message, version, at[rows], self._ends[rows] - 1)
            whole = rows[is_whole]
            self._is_read[whole] = True
            if len(whole):
                yield self._offsets(whole), columns

    def rest(self) -> Iterator[Record]:
        """Yield the records that are in no column. Raises CorruptBatch."""
        for row in np.flatnonzero(~self._is_read).tolist():
            header = self._headers[int(np.searchsorted(self._firsts, row, side="right")) - 1]
            yield _decode_record(self._content[int(self._starts[row]) : int(self._ends[row])], header)

    def _offsets(self, rows: Positions) -> Positions:
        part = np.searchsorted(self._firsts, rows, side="right") - 1
        offsets: Positions = self._bases[part] + rows - self._firsts[part]
        return offsets

    def _values(self) -> tuple[Positions, Positions]:
        """Return the key and version of each record, as in `_kinds`, or -1, and the position after them."""
        found, at = self._bytes, self._starts
        usual = (found[at] == 0) & (found[at + 1] == 0)
        _, at = self._varints(at + 2)
        usual &= found[at] == _NO_KEY
        zigzag, at = self._varints(at + 1)
        usual &= (at + (zigzag >> 1) == self._ends - 1) & (found[self._ends - 1] == 0)
        usual &= found[at] == METADATA_FRAME_VERSION
        kinds = found[at + 1].astype(np.int64) << 8 | found[at + 2]
        return np.where(usual, kinds, -1), at + 3

    def _varints(self, at: Positions) -> tuple[Positions, Positions]:
        """Read unsigned varints of up to three bytes; a longer one gives a wrong number."""
        first, second, third = (self._bytes[at + place].astype(np.int64) for place in range(3))
        has_second = first >= 0x80
        has_third = has_second & (second >= 0x80)
        value = (first & 0x7F) + np.where(has_second, (second & 0x7F) << 7, 0) + np.where(has_third, third << 14, 0)
        return value, at + 1 + has_second + has_third

    def _read(self, message: str, version: int, at: Positions, ends: Positions) -> tuple[RecordColumns, Flags]:
        """Read records of one message and version; returns those that could be read, and which these are."""
        fields = [field for field in schema.definition(message, version).fields if version in field.versions]
        found: dict[str, Any] = {}
        for field in fields:
            if field.tag is None:
                found[field.key], at = self._field(field, at)
        tags, at = self._bytes[at].astype(np.int64), at + 1
        for tag, field in sorted((field.tag, field) for field in fields if field.tag is not None):
            here = np.flatnonzero((tags > 0) & (self._bytes[at] == tag))
            if len(here):
                column, tagged_end = self._field(field, at[here] + 2)
                size = self._bytes[at[here] + 1]
                # A wrong or long size keeps the tag, so that the record is not whole.
                tags[here] -= (tagged_end - at[here] - 2 == size) & (size < 0x80)
                at[here] = tagged_end
                found[field.key] = _spread(field, column, here, len(at))
        is_whole = (tags == 0) & (at == ends)
        if not is_whole.all():
            found = {name: column[is_whole] for name, column in found.items()}
        lists = {name: column for name, column in found.items() if isinstance(column, Lists)}
        numbers = {name: column for name, column in found.items() if name not in lists}
        return RecordColumns(message, version, numbers.pop("topic_id"), numbers, lists), is_whole

    def _field(self, field: schema.Field, at: Positions) -> tuple[Any, Positions]:
        """Read a field at a position of each record; returns the column, and the positions after it."""
        elements = self._elements[field.kind]
        if not field.is_array:
            return _native(elements[at]), at + elements.itemsize
        counts = self._bytes[at].astype(np.int64)
        is_usual = (counts > 0) & (counts <= _LONGEST + 1)
        lengths = np.where(is_usual, counts - 1, 0)
        # After a null or a long list the position is not in the record, so that this is not whole.
        at = at + 1 + np.where(is_usual, 0, self._limit)
        longest = int(lengths.max(initial=0))
        values = _no_elements(field, len(at), longest)
        same = bool((lengths == longest).all())
        for slot in range(longest):
            rows = slice(None) if same else np.flatnonzero(lengths > slot)
            values[rows, slot] = elements[at[rows] + slot * elements.itemsize]
        return Lists(values, lengths), np.minimum(at + lengths * elements.itemsize, self._limit)


def _decode_record(content: bytes, header: BatchHeader) -> Record:
    try:
        record, end = decode_record(content, 0, header)
    except (IndexError, UnicodeDecodeError, CodecError) as error:
        raise CorruptBatch(f"A record in the batch at offset {header.base_offset} is malformed: {error}") from None
    if end != len(content):
        raise CorruptBatch(f"The record at offset {record.offset} does not have the length that it announces.")
    return record


def _native(column: npt.NDArray[Any]) -> npt.NDArray[Any]:
    return column if column.dtype == UUID else column.astype(column.dtype.newbyteorder("="))


def _spread(field: schema.Field, column: Any, rows: Positions, count: int) -> Any:
    """Return a column of all records from that of some; the others have the default."""
    if len(rows) == count:
        return column
    if not isinstance(column, Lists):
        whole = np.full(count, field.default, column.dtype)
        whole[rows] = column
        return whole
    lengths = np.full(count, ABSENT, np.int64)
    lengths[rows] = column.lengths
    values = _no_elements(field, count, column.values.shape[1])
    values[rows] = column.values
    return Lists(values, lengths)


def _no_elements(field: schema.Field, count: int, longest: int) -> npt.NDArray[Any]:
    """Return the padding of lists of a field."""
    return np.full((count, longest), -1, np.int32) if field.kind == "int32" else np.zeros((count, longest), UUID)


@cache
def _kinds() -> dict[int, tuple[str, int]]:
    """Return the messages and versions that are read, by API key and version as one number."""
    found = {}
    for message in MESSAGES:
        for version in schema.known_versions(message).all():
            key = schema.definition(message, version).api_key
            assert key is not None, "metadata records have API keys"
            found[key << 8 | version] = (message, version)
    return found

"""Column encoder of metadata records of partitions: tens of millions of records a second.

A broker failure changes the partitions that it led, 100,000 for example, each by a PartitionChangeRecord. Here such records are numpy
columns, and their batch is written column by column, as `states` writes requests: records whose lists have the same lengths and
that have the same tagged fields have the same layout, which is a rectangle of bytes. The offset of a record in its batch is a varint, so a layout
also ends where that grows by a byte, at 64 and 8,192. Fields, their order and their tags come from the schema. The reference is the codec
(tests).
"""

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from kafka_wire import schema
from kafka_wire.columns.states import list_lengths, rows_by_layout
from kafka_wire.failures import CodecError
from kafka_wire.records import METADATA_FRAME_VERSION, encode_batch_of
from kafka_wire.varints import write_uvarint, write_varint

IntArray = npt.NDArray[np.int32]
ByteArray = npt.NDArray[np.uint8]
Lengths = npt.NDArray[np.int64]
Rows = slice | Lengths | npt.NDArray[np.bool_]

UUID = np.dtype("V16")
"""Element of columns of ids: 16 bytes."""
ABSENT = -1
"""Length of a list that a record does not have (null)."""
MAX_BATCH_RECORDS = 1 << 20
"""Records whose offset in the batch takes at most three bytes; a batch of the metadata log has at most 10,000."""
LAYOUTS_KEPT = 64
"""A few hundred bytes each; a cluster has one for each combination of list lengths and fields."""

_DELTA_ENDS = (64, 8_192, MAX_BATCH_RECORDS)
"""Where the offset in the batch takes a byte more."""
_FORMATS = {"int8": ">i1", "int16": ">i2", "int32": ">i4"}
_ELEMENTS = {"int32": np.dtype(">i4"), "uuid": UUID}


@dataclass(frozen=True, slots=True, eq=False)
class Lists:
    """A column of lists. `values` has shape (n, longest), of int32 or UUID; `lengths` has shape (n,), ABSENT for none."""

    values: npt.NDArray[Any]
    lengths: Lengths

    @classmethod
    def padded(cls, ids: IntArray, present: npt.NDArray[np.bool_] | None = None) -> "Lists":
        """Return lists of broker ids that are padded with -1; all are present by default."""
        lengths = np.broadcast_to(np.asarray(list_lengths(ids, len(ids)), np.int64), (len(ids),))
        return cls(ids, lengths if present is None else np.where(present, lengths, ABSENT))

    def __getitem__(self, rows: Rows) -> "Lists":
        """Return the lists of some rows."""
        return Lists(self.values[rows], self.lengths[rows])


@dataclass(frozen=True, slots=True, eq=False)
class RecordColumns:
    """PartitionRecords or PartitionChangeRecords of one version, by the names of the schema's fields.

    A number or a tagged list that is missing here has its default in all records, another list is empty.
    """

    message: str
    version: int
    topic_ids: npt.NDArray[np.void]
    """Shape (n,), of UUID."""
    numbers: Mapping[str, npt.NDArray[Any]]
    """Shape (n,); `partition_id` is always there."""
    lists: Mapping[str, Lists] = dataclasses.field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.topic_ids)

    def __getitem__(self, rows: Rows) -> "RecordColumns":
        """Return some rows."""
        numbers = {name: column[rows] for name, column in self.numbers.items()}
        lists = {name: column[rows] for name, column in self.lists.items()}
        return RecordColumns(self.message, self.version, self.topic_ids[rows], numbers, lists)


def encode_columns(
    columns: RecordColumns, *, base_offset: int, timestamp_ms: int, partition_leader_epoch: int = -1
) -> bytes:
    """Encode records as one batch of the metadata log. Raises CodecError as `encode_records`."""
    return encode_batch_of(
        encode_records(columns),
        len(columns),
        base_offset=base_offset,
        timestamp_ms=timestamp_ms,
        partition_leader_epoch=partition_leader_epoch,
    )


def encode_records(columns: RecordColumns, first_place: int = 0) -> bytes | memoryview:
    """Encode records of a batch, which has others before the first place; all have the batch's timestamp.

    Raises CodecError for a field that the version lacks, and for a missing list that must not be null.
    """
    assert 0 < len(columns) <= MAX_BATCH_RECORDS - first_place, "a batch has records, and not too many"
    lacking = {*columns.numbers, *columns.lists} - {field.key for field in _fields(columns.message, columns.version)}
    if lacking:
        raise CodecError(f"has no field {min(lacking)}", message=columns.message, version=columns.version)
    shapes = [_shape(columns, field) for field in _shaped_fields(columns.message, columns.version)]
    if all(type(shape) is int for shape in shapes):
        return b"".join(_uniform(columns, tuple(map(int, shapes)), first_place))
    return _mixed(columns, shapes, first_place).data


def _uniform(columns: RecordColumns, shape: tuple[int, ...], first_place: int) -> Iterator[memoryview]:
    """Encode records of one shape: one rectangle for each length of the offset."""
    begin, all_end = first_place, first_place + len(columns)
    for delta_bytes, delta_end in enumerate(_DELTA_ENDS, start=1):
        end = min(all_end, delta_end)
        if begin < end:
            layout = _layout(columns.message, columns.version, shape, delta_bytes)
            yield layout.write(columns, slice(begin - first_place, end - first_place), _deltas(begin, end)).data
        begin = max(begin, end)


def _mixed(columns: RecordColumns, shapes: Sequence[int | Lengths], first_place: int) -> ByteArray:
    """Encode records of several shapes: each layout by itself, then copied to the positions of its records."""
    count = len(columns)
    end_place = first_place + count
    deltas = _deltas(first_place, end_place)
    delta_bytes = 1 + np.searchsorted(_DELTA_ENDS, np.arange(first_place, end_place), side="right")
    places = [
        (rows, _layout(columns.message, columns.version, found[1:], found[0]))
        for rows, found in rows_by_layout(count, [delta_bytes, *shapes])
    ]
    sizes = np.zeros(count, np.int64)
    for rows, layout in places:
        sizes[rows] = layout.size
    offsets = np.concatenate((np.zeros(1, np.int64), np.cumsum(sizes)))
    text = np.empty(int(offsets[-1]), np.uint8)
    for rows, layout in places:
        written = layout.write(columns, rows, [column[rows] for column in deltas])
        text[offsets[rows, None] + np.arange(layout.size)] = written.reshape(len(rows), layout.size)
    return text


def _deltas(begin: int, end: int) -> list[ByteArray]:
    """Return the bytes of the offsets in the batch: zigzag varints of three bytes, of which a layout uses the first ones."""
    zigzag = np.arange(begin, end, dtype=np.int64) << 1
    return [
        (zigzag >> 7 * place & 0x7F | ((zigzag >> 7 * (place + 1) > 0) << 7)).astype(np.uint8) for place in range(3)
    ]


def _shape(columns: RecordColumns, field: schema.Field) -> int | Lengths:
    """Return what a field adds to the shape: 0 if it is missing, 1 for a number, 1 + its length for a list. Raises CodecError."""
    if not field.is_array:
        if field.key not in columns.numbers:
            return 0
        present = columns.numbers[field.key] != field.default
        return _one_or_all(present.astype(np.int64))
    if field.key not in columns.lists:
        return 0 if field.tag is not None else 1
    lengths = columns.lists[field.key].lengths
    if field.tag is None and (lengths == ABSENT).any():
        raise CodecError("must not be null", message=columns.message, version=columns.version, field=field.key)
    return _one_or_all(lengths + 1)


def _one_or_all(shapes: Lengths) -> int | Lengths:
    first = int(shapes[0])
    return first if (shapes == first).all() else shapes


class _Layout:
    """Bytes of a record of one shape: a row with what is the same in all, and the places of what is not."""

    def __init__(self, message: str, version: int, shape: Mapping[str, int], delta_bytes: int) -> None:
        self._value = bytearray()
        self._columns: list[tuple[str, int | None, np.dtype[Any], int]] = []
        """Field, slot in its list, type and offset."""
        key = schema.definition(message, version).api_key
        assert key is not None, "metadata records have API keys"
        self._value += write_uvarint(METADATA_FRAME_VERSION) + write_uvarint(key) + write_uvarint(version)
        for field in _fields(message, version):
            if field.tag is None:
                self._add(field, shape.get(field.key, 1) - 1)
        tagged = sorted(
            (field.tag, field) for field in _fields(message, version) if field.tag is not None and shape[field.key]
        )
        self._value += write_uvarint(len(tagged))
        for tag, field in tagged:
            self._add_tagged(tag, field, shape[field.key] - 1)
        self._frame(delta_bytes)

    def _add(self, field: schema.Field, length: int) -> None:
        if field.is_array:
            self._value += write_uvarint(length + 1)
            for slot in range(length):
                self._place(field.key, slot, _ELEMENTS[field.kind])
        else:
            kind = UUID if field.kind == "uuid" else np.dtype(_FORMATS[field.kind])
            default = b"" if field.kind == "uuid" else int(field.default).to_bytes(kind.itemsize, "big", signed=True)
            self._place(field.key, None, kind, default)

    def _place(self, key: str, slot: int | None, kind: np.dtype[Any], default: bytes = b"") -> None:
        self._columns.append((key, slot, kind, len(self._value)))
        self._value += default or bytes(kind.itemsize)

    def _add_tagged(self, tag: int, field: schema.Field, length: int) -> None:
        if field.is_array:
            size = len(write_uvarint(length + 1)) + length * _ELEMENTS[field.kind].itemsize
        else:
            size = np.dtype(_FORMATS[field.kind]).itemsize
        self._value += write_uvarint(tag) + write_uvarint(size)
        self._add(field, length)

    def _frame(self, delta_bytes: int) -> None:
        """Put the record around its value: length, attributes, two deltas, no key, value, no headers."""
        value_length = write_varint(len(self._value))
        body_bytes = 2 + delta_bytes + 1 + len(value_length) + len(self._value) + 1
        head = write_varint(body_bytes) + b"\0\0"
        self._deltas = [len(head) + place for place in range(delta_bytes)]
        before = head + bytes(delta_bytes) + b"\1" + value_length
        self._row = np.frombuffer(before + self._value + b"\0", np.uint8)
        self._columns = [(key, slot, kind, len(before) + offset) for key, slot, kind, offset in self._columns]
        self.size = len(self._row)
        formats = [np.dtype(np.uint8)] * delta_bytes + [kind for _, _, kind, _ in self._columns]
        offsets = [*self._deltas, *(offset for _, _, _, offset in self._columns)]
        names = [f"delta {place}" for place in range(delta_bytes)] + [
            f"{key} {slot}" for key, slot, _, _ in self._columns
        ]
        self._record = np.dtype({"names": names, "formats": formats, "offsets": offsets, "itemsize": self.size})

    def write(self, columns: RecordColumns, rows: slice | Lengths, deltas: Sequence[ByteArray]) -> ByteArray:
        """Encode some records; returns their bytes in shape (bytes,)."""
        count = len(deltas[0])
        text = np.empty((count, self.size), np.uint8)
        text[:] = self._row
        table = text.reshape(-1).view(self._record)
        for place in range(len(self._deltas)):
            table[f"delta {place}"] = deltas[place]
        for key, slot, _, _ in self._columns:
            if slot is not None:
                table[f"{key} {slot}"] = columns.lists[key].values[rows, slot]
            elif key == "topic_id":
                table[f"{key} {slot}"] = columns.topic_ids[rows]
            elif key in columns.numbers:
                table[f"{key} {slot}"] = columns.numbers[key][rows]
        return text.reshape(-1)


@lru_cache(maxsize=LAYOUTS_KEPT)
def _layout(message: str, version: int, shape: tuple[int, ...], delta_bytes: int) -> _Layout:
    shaped = (field.key for field in _shaped_fields(message, version))
    return _Layout(message, version, dict(zip(shaped, shape, strict=True)), delta_bytes)


@cache
def _fields(message: str, version: int) -> tuple[schema.Field, ...]:
    """List the fields of a version."""
    return tuple(field for field in schema.definition(message, version).fields if version in field.versions)


@cache
def _shaped_fields(message: str, version: int) -> tuple[schema.Field, ...]:
    """List the fields that decide the layout of a record: lists and tagged fields."""
    return tuple(field for field in _fields(message, version) if field.is_array or field.tag is not None)

"""Plain twin of kafka_wire.columns.record_encoder: each record by the codec."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from uuid import UUID

import numpy as np

from kafka_wire import codec, schema
from kafka_wire.columns.record_encoder import ABSENT, Lists, RecordColumns
from kafka_wire.records import Record, encode_batch
from kafka_wire.varints import write_uvarint

Body = dict[str, Any]


def encode(
    message: str, version: int, bodies: Sequence[Body], base_offset: int, timestamp_ms: int, epoch: int
) -> bytes:
    """Encode records as one batch."""
    found = [
        Record(base_offset + place, timestamp_ms, None, value)
        for place, value in enumerate(values(message, version, bodies))
    ]
    return encode_batch(found, partition_leader_epoch=epoch)


def values(message: str, version: int, bodies: Sequence[Body]) -> list[bytes]:
    """Encode the value of each record."""
    key = schema.definition(message, version).api_key or 0
    head = b"".join(map(write_uvarint, (1, key, version)))
    return [head + codec.encode(message, version, body) for body in bodies]


def to_columns(message: str, version: int, bodies: Sequence[Body]) -> RecordColumns:
    """Return bodies, which have every field of the version, as columns."""
    fields = [field for field in schema.definition(message, version).fields if version in field.versions]
    numbers = {
        field.key: np.array([body[field.key] for body in bodies], np.int32)
        for field in fields
        if not field.is_array and field.kind != "uuid"
    }
    lists = {field.key: _lists([body[field.key] for body in bodies], field.kind) for field in fields if field.is_array}
    topic_ids = np.array([body["topic_id"].bytes for body in bodies], "V16")
    return RecordColumns(message, version, topic_ids, numbers, lists)


def _lists(values: Sequence[Sequence[Any] | None], kind: str) -> Lists:
    longest = max((len(value or ()) for value in values), default=0)
    lengths = np.array([ABSENT if value is None else len(value) for value in values], np.int64)
    if kind == "uuid":
        padded = [[uuid.bytes for uuid in value or ()] + [bytes(16)] * (longest - len(value or ())) for value in values]
        return Lists(np.array(padded, "V16").reshape(len(values), longest), lengths)
    ids = [[*(value or ()), *[-1] * (longest - len(value or ()))] for value in values]
    return Lists(np.array(ids, np.int32).reshape(len(values), longest), lengths)


def to_bodies(columns: RecordColumns) -> list[Body]:
    """Return columns as bodies with every field of the message."""
    definition = schema.definition(columns.message, columns.version)
    found = []
    for row in range(len(columns)):
        body: Body = {}
        for field in definition.fields:
            default = [] if field.is_array and field.default == () else field.default
            if field.key == "topic_id":
                body[field.key] = UUID(bytes=columns.topic_ids[row].tobytes())
            elif field.key in columns.lists:
                body[field.key] = _list(columns.lists[field.key], row, field.kind)
            elif field.key in columns.numbers:
                body[field.key] = int(columns.numbers[field.key][row])
            else:
                body[field.key] = default
        found.append(body)
    return found


def _list(lists: Lists, row: int, kind: str) -> list[Any] | None:
    length = int(lists.lengths[row])
    if length == ABSENT:
        return None
    values = lists.values[row, :length]
    return [UUID(bytes=value.tobytes()) for value in values] if kind == "uuid" else values.tolist()

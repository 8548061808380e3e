"""Control batches of the quorum's log and snapshots, and a snapshot's batches.

The key of a control record has a version and a type (kafka_wire.records.ControlType); its value is a message of Kafka. A snapshot is a batch
with a header, batches of records, and a batch with a footer; its offsets begin at 0. Source: Kafka's RecordsSnapshotWriter, ControlRecordUtils.
"""

import struct
import uuid
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from kafka_wire import codec
from kafka_wire.records import ControlType, CorruptBatch, Record, control_type, decode_batches, encode_batch

_CONTROL_KEY = struct.Struct(">hh")
_KEY_VERSION = 0

MAX_RECORDS_IN_BATCH = 1024
"""Records of a snapshot's batch: as many as Kafka's image writer puts into one."""

MAX_BATCH_BYTES = 8 * 1024 * 1024
"""Kafka reads no larger batch (KafkaRaftClient.MAX_BATCH_SIZE_BYTES)."""

RECORD_OVERHEAD_BYTES = 32
"""More than the fields of a record without a key take in addition to its value."""

MESSAGES = {
    ControlType.LEADER_CHANGE: "LeaderChangeMessage",
    ControlType.SNAPSHOT_HEADER: "SnapshotHeaderRecord",
    ControlType.SNAPSHOT_FOOTER: "SnapshotFooterRecord",
    ControlType.KRAFT_VERSION: "KRaftVersionRecord",
    ControlType.KRAFT_VOTERS: "VotersRecord",
}


@dataclass(frozen=True, slots=True)
class Voter:
    """A voter of the quorum, as the voters record has it (KIP-853).

    It has the fields of the record and no others. `Voter` of controller_core/quorum is the value that the quorum decides with, which can
    also be a configured voter; `wire_batches.py` of the shell converts it to this type.
    """

    node_id: int
    directory_id: uuid.UUID
    endpoints: tuple[tuple[str, str, int], ...]
    """Listener name, host and port."""
    min_kraft_version: int = 0
    max_kraft_version: int = 1


def control_record(kind: ControlType, offset: int, timestamp_ms: int, body: dict[str, Any], version: int = 0) -> Record:
    """Return a control record. The version is that of the message, which has it as its first field as well."""
    value = codec.encode(MESSAGES[kind], version, {"version": version, **body})
    return Record(offset, timestamp_ms, _CONTROL_KEY.pack(_KEY_VERSION, kind), value)


def control_batch(records: Sequence[Record], epoch: int) -> bytes:
    """Encode control records as one batch."""
    return encode_batch(list(records), partition_leader_epoch=epoch, is_control=True)


def voters_body(voters: Iterable[Voter]) -> dict[str, Any]:
    """Return the body of a voters record."""
    return {
        "voters": [
            {
                "voter_id": voter.node_id,
                "voter_directory_id": voter.directory_id,
                "endpoints": [{"name": name, "host": host, "port": port} for name, host, port in voter.endpoints],
                "kraft_version_feature": {
                    "min_supported_version": voter.min_kraft_version,
                    "max_supported_version": voter.max_kraft_version,
                },
            }
            for voter in voters
        ]
    }


def snapshot_batches(
    values: Iterable[bytes],
    *,
    epoch: int,
    timestamp_ms: int,
    last_contained_timestamp_ms: int,
    kraft_version: int = 0,
    voters: Sequence[Voter] | None = None,
    max_records: int = MAX_RECORDS_IN_BATCH,
) -> Iterator[bytes]:
    """Yield the batches of a snapshot whose records have these values.

    `last_contained_timestamp_ms` is the timestamp of the last log record in it. From kraft.version 1 on the header's batch also has the
    version and the voters.
    """
    header = [
        control_record(
            ControlType.SNAPSHOT_HEADER, 0, timestamp_ms, {"last_contained_log_timestamp": last_contained_timestamp_ms}
        )
    ]
    if kraft_version > 0:
        header.append(control_record(ControlType.KRAFT_VERSION, 1, timestamp_ms, {"kraft_version": kraft_version}))
        if voters is not None:
            header.append(control_record(ControlType.KRAFT_VOTERS, 2, timestamp_ms, voters_body(voters)))
    yield control_batch(header, epoch)
    offset = len(header)
    for some in in_batches(values, max_records):
        records = [Record(offset + index, timestamp_ms, None, value) for index, value in enumerate(some)]
        yield encode_batch(records, partition_leader_epoch=epoch)
        offset += len(records)
    yield control_batch([control_record(ControlType.SNAPSHOT_FOOTER, offset, timestamp_ms, {})], epoch)


def in_batches(values: Iterable[bytes], max_records: int, max_bytes: int = MAX_BATCH_BYTES) -> Iterator[list[bytes]]:
    """Split the values of records into batches, in their order. A value above the limit of bytes is a batch."""
    some: list[bytes] = []
    size = 0
    for value in values:
        needed = len(value) + RECORD_OVERHEAD_BYTES
        if some and (len(some) == max_records or size + needed > max_bytes):
            yield some
            some, size = [], 0
        some.append(value)
        size += needed
    if some:
        yield some


def control_type_of(data: bytes) -> ControlType | None:
    """Return the type of the first control record in a batch; None for other batches, and for an unknown type.

    Raises CorruptBatch.
    """
    first = next(decode_batches(data), None)
    return control_type(first.records[0]) if first and first.header.is_control and first.records else None


def last_contained_timestamp_ms(beginning: bytes) -> int:
    """Return the timestamp of the last log record that a snapshot contains, from the snapshot's first batch.

    `beginning` has at least that batch. Raises CorruptBatch for anything else.
    """
    first = next(decode_batches(beginning), None)
    if first is None or control_type_of(beginning) != ControlType.SNAPSHOT_HEADER:
        raise CorruptBatch("A snapshot does not begin with its header.")
    header = codec.decode(MESSAGES[ControlType.SNAPSHOT_HEADER], 0, first.records[0].value or b"")
    return int(header["last_contained_log_timestamp"])

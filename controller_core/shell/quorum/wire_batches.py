"""Batches of the quorum's log, between the node's values and Kafka's bytes.

Control records are decoded; records of other batches stay opaque. Source: Kafka's ControlRecordUtils and MemoryRecordsBuilder.
"""

import struct
import uuid
from collections.abc import Iterable, Iterator

from controller_core.quorum.batches import (
    Batch,
    ControlRecord,
    KRaftVersionRecord,
    LeaderChangeRecord,
    OtherControlRecord,
    Position,
    VotersRecord,
)
from controller_core.quorum.voter_history import VoterHistory
from controller_core.quorum.voters import NO_DIRECTORY, Endpoint, ReplicaKey, VersionRange, Voter, VoterSet
from kafka_log.format import control_records
from kafka_log.format.batches import BadBatchError, appendable_bytes, read_batches, with_offsets
from kafka_wire import Body, codec, failures
from kafka_wire.records import (
    ControlType,
    CorruptBatch,
    Record,
    batch_headers,
    control_type,
    decode_batches,
    encode_batch,
)

_VERSION = struct.Struct(">h")
"""The first field of each control record's value is the version of its message."""

MAX_EPOCH = 2**31 - 1

SNAPSHOT_BATCH_RECORDS = 200
"""Records in a batch of a snapshot, between which others run: some 5 ms. Kafka has up to 1,024."""


def directory_or_none(directory_id: uuid.UUID) -> uuid.UUID | None:
    """Return a directory id from the wire; None where Kafka has "unknown"."""
    return None if directory_id == NO_DIRECTORY else directory_id


def directory_or_zero(directory_id: uuid.UUID | None) -> uuid.UUID:
    """Return a directory id as the wire has it."""
    return NO_DIRECTORY if directory_id is None else directory_id


def decode_log(data: bytes, *, is_verified: bool) -> tuple[Batch, ...]:
    """Return the whole batches at the beginning of some bytes; an incomplete one at the end is ignored, as Fetch allows it.

    `is_verified`: checksums were verified before. Raises CorruptBatch.
    """
    data = data[: appendable_bytes(data, MAX_EPOCH)]
    if not is_verified:
        try:
            for _ in read_batches(data):
                pass
        except BadBatchError as error:
            raise CorruptBatch(f"The batch at position {error.position} is invalid: {error.reason}.") from None
    return tuple(
        Batch(
            header.base_offset,
            header.last_offset,
            header.partition_leader_epoch,
            payload,
            _control(payload) if header.is_control else (),
        )
        for position, header in batch_headers(data)
        for payload in (data[position : position + header.size_bytes],)
    )


def encode_log(batch: Batch, now_ms: int) -> bytes:
    """Return the bytes of a batch, as they are appended to the log."""
    if batch.payload:
        return with_offsets(batch.payload, batch.base_offset, batch.epoch)
    records = [_encode(record, offset, now_ms) for offset, record in enumerate(batch.control, batch.base_offset)]
    return control_records.control_batch(records, batch.epoch)


def data_payload(values: list[bytes], now_ms: int) -> bytes:
    """Return the payload of an Append: one batch with a record for each value. The node assigns offset and epoch."""
    return encode_batch([Record(offset, now_ms, None, value) for offset, value in enumerate(values)])


def snapshot_voters(beginning: bytes) -> tuple[VoterSet | None, int]:
    """Return the voters and the level of kraft.version in the first batch of a snapshot; None and 0 where it has none.

    Raises CorruptBatch.
    """
    first = next(decode_batches(beginning), None)
    voters: VoterSet | None = None
    level = 0
    for record in map(_decode, first.records) if first is not None else ():
        if isinstance(record, VotersRecord):
            voters = record.voters
        elif isinstance(record, KRaftVersionRecord):
            level = record.level
    return voters, level


def snapshot_data(
    values: Iterable[bytes], end: Position, last_timestamp_ms: int, history: VoterHistory, now_ms: int
) -> Iterator[bytes]:
    """Yield the batches of a snapshot of the records before an offset, with the voters and kraft.version that count there."""
    voters = history.voters_at(end.offset - 1)
    return control_records.snapshot_batches(
        values,
        epoch=end.epoch,
        timestamp_ms=now_ms,
        last_contained_timestamp_ms=last_timestamp_ms,
        kraft_version=history.kraft_version_at(end.offset - 1),
        voters=None if voters is None else [_stored_voter(voter) for voter in voters.voters],
        max_records=SNAPSHOT_BATCH_RECORDS,
    )


def _control(payload: bytes) -> tuple[ControlRecord, ...]:
    batch = next(decode_batches(payload))
    return tuple(map(_decode, batch.records))


def _decode(record: Record) -> ControlRecord:
    kind = control_type(record)
    if kind is None or kind not in control_records.MESSAGES:
        return OtherControlRecord()
    value = record.value or b""
    try:
        (version,) = _VERSION.unpack_from(value)
        body = codec.decode(control_records.MESSAGES[kind], version, value)
    except (struct.error, failures.WireError) as error:
        raise CorruptBatch(f"The control record at offset {record.offset} is malformed: {error}") from None
    match kind:
        case ControlType.LEADER_CHANGE:
            return LeaderChangeRecord(
                body["leader_id"],
                tuple(voter["voter_id"] for voter in body["voters"]),
                tuple(voter["voter_id"] for voter in body["granting_voters"]),
            )
        case ControlType.KRAFT_VERSION:
            return KRaftVersionRecord(body["kraft_version"])
        case ControlType.KRAFT_VOTERS:
            return VotersRecord(VoterSet.of(_voters(body)))
        case _:
            return OtherControlRecord()


def _voters(body: Body) -> Iterator[Voter]:
    for voter in body["voters"]:
        feature = voter["kraft_version_feature"]
        yield Voter(
            ReplicaKey(voter["voter_id"], directory_or_none(voter["voter_directory_id"])),
            tuple(Endpoint(endpoint["name"], endpoint["host"], endpoint["port"]) for endpoint in voter["endpoints"]),
            VersionRange(feature["min_supported_version"], feature["max_supported_version"]),
        )


def _encode(record: ControlRecord, offset: int, now_ms: int) -> Record:
    match record:
        case LeaderChangeRecord():
            kind, body = ControlType.LEADER_CHANGE, _leader_change(record)
        case KRaftVersionRecord(level=level):
            kind, body = ControlType.KRAFT_VERSION, {"kraft_version": level}
        case VotersRecord(voters=voters):
            kind, body = ControlType.KRAFT_VOTERS, control_records.voters_body(map(_stored_voter, voters.voters))
        case OtherControlRecord():
            raise AssertionError("Only records of the quorum are made here.")
    return control_records.control_record(kind, offset, now_ms, body)


def _leader_change(record: LeaderChangeRecord) -> Body:
    return {
        "leader_id": record.leader_id,
        "voters": [{"voter_id": voter} for voter in record.voters],
        "granting_voters": [{"voter_id": voter} for voter in record.granting_voters],
    }


def _stored_voter(voter: Voter) -> control_records.Voter:
    endpoints = tuple((endpoint.listener, endpoint.host, endpoint.port) for endpoint in voter.endpoints)
    levels = voter.kraft_versions
    directory_id = directory_or_zero(voter.key.directory_id)
    return control_records.Voter(voter.key.id, directory_id, endpoints, levels.minimum, levels.maximum)

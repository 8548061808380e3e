"""Kafka's Java code reads encoded record batches, and writes the same bytes from the same records."""

import base64
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafka_wire import codec
from kafka_wire import records as wire
from kafka_wire.compression import Compression
from kafka_wire.records import Record, RecordBatch
from tests.effort import examples
from tests.kafka_wire.batches import PRODUCERS, records
from tests.kafka_wire.judge import RecordJudge

pytestmark = pytest.mark.java


@pytest.fixture(scope="module")
def judge() -> Iterator[RecordJudge]:
    """Return one JVM for all tests."""
    with RecordJudge() as running:
        yield running


@examples(60)
@given(records=records(), producer=PRODUCERS | st.just({}), epoch=st.integers(-1, 5))
def test_java_writes_the_same_bytes(
    judge: RecordJudge, records: tuple[Record, ...], producer: dict[str, Any], epoch: int
) -> None:
    """Kafka reads the same records, and its builder writes the same bytes."""
    encoded = wire.encode_batch(records, partition_leader_epoch=epoch, **producer)
    verdict = judge.ask(encoded)

    assert [as_json(batch) for batch in wire.decode_batches(encoded)] == verdict.seen
    assert encoded == verdict.written


@examples(60)
@given(records=records(), compression=st.sampled_from(list(Compression)[1:]))
def test_compressed_batches_are_compatible_with_java_in_both_directions(
    judge: RecordJudge, records: tuple[Record, ...], compression: Compression
) -> None:
    """Two implementations of a codec need not write the same bytes."""
    verdict = judge.ask(wire.encode_batch(records, compression=compression))

    assert [json_record(record) for record in records] == verdict.seen[0]["records"]
    assert records == next(wire.decode_batches(verdict.written)).records


def test_java_reads_control_batches(judge: RecordJudge) -> None:
    """A new leader of a quorum writes a LeaderChange first (KIP-595)."""
    value = codec.encode("LeaderChangeMessage", 0, {"leader_id": 3, "voters": [{"voter_id": 3}]})
    record = Record(12, 5, b"\0\0\0\2", value)
    verdict = judge.ask(wire.encode_batch((record,), is_control=True, partition_leader_epoch=4))

    assert verdict.seen[0]["is_control"]
    assert verdict.seen[0]["records"] == [json_record(record)]


def as_json(batch: RecordBatch) -> dict[str, Any]:
    """Return a batch as RecordJudge.java lists it."""
    header = batch.header
    return {
        "base_offset": header.base_offset,
        "last_offset": header.last_offset,
        "partition_leader_epoch": header.partition_leader_epoch,
        "max_timestamp_ms": header.max_timestamp_ms,
        "producer_id": header.producer_id,
        "producer_epoch": header.producer_epoch,
        "base_sequence": header.base_sequence,
        "is_transactional": header.is_transactional,
        "is_control": header.is_control,
        "compression": header.compression,
        "records": [json_record(record) for record in batch.records],
    }


def json_record(record: Record) -> dict[str, Any]:
    """Return a record as RecordJudge.java lists it."""
    headers = [[key, text(value)] for key, value in record.headers]
    return {**record._asdict(), "key": text(record.key), "value": text(record.value), "headers": headers}


def text(value: bytes | None) -> str | None:
    """Return bytes as in the JSON."""
    return None if value is None else base64.b64encode(value).decode()

"""A node's state of the metadata log. Source: MetadataBatchLoader of Kafka, KIP-868."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from kafka_log.format.control_records import snapshot_batches
from kafka_metadata import records
from kafka_metadata.failures import MetadataError
from kafka_metadata.image import MetadataImage
from kafka_metadata.metadata_log import MetadataLog, OpenTransaction, apply_batch, apply_records
from kafka_metadata.record_codec import encode_record
from kafka_metadata.records import MetadataRecord
from kafka_metadata.replay import replay
from kafka_metadata.snapshot import snapshot_values
from kafka_wire.records import Record, RecordBatch, decode_batches, encode_batch
from tests.kafka_metadata.test_replay import BROKER, CONFIG, TOPIC, image
from tests.kafka_metadata.test_snapshot import VERSION
from tests.twins.plain_snapshot import load_snapshot

BEGIN, END, ABORT = records.BeginTransactionRecord(), records.EndTransactionRecord(), records.AbortTransactionRecord()


def batch(base_offset: int, found: Sequence[MetadataRecord], epoch: int = 1) -> RecordBatch:
    """Return a batch of the log, encoded and decoded."""
    values = [encode_record(record, 30) for record in found]
    encoded = [Record(base_offset + place, 1_000, None, value) for place, value in enumerate(values)]
    (decoded,) = decode_batches(encode_batch(encoded, partition_leader_epoch=epoch))
    return decoded


def applied(*batches: Sequence[MetadataRecord]) -> MetadataLog:
    """Return the state after batches, from offset 0 on."""
    log = MetadataLog()
    for found in batches:
        log = apply_records(log, log.end_offset, found)
    return log


def test_records_of_a_batch_are_applied_and_the_end_is_known() -> None:
    """End, epoch and timestamp are those of a snapshot of this state."""
    log = apply_batch(MetadataLog(), batch(0, [VERSION, TOPIC], epoch=3))

    assert log == MetadataLog(image(VERSION, TOPIC), 2, 3, 1_000)


def test_a_control_batch_only_raises_the_end() -> None:
    """Its records are the quorum's."""
    control = next(decode_batches(next(snapshot_batches((), epoch=4, timestamp_ms=5, last_contained_timestamp_ms=6))))

    assert apply_batch(MetadataLog(), control) == MetadataLog(MetadataImage(), 1, 4)


def test_a_transaction_counts_from_its_end_on() -> None:
    """KIP-868; the active controller decides by the newest image."""
    log = applied([VERSION, BEGIN, TOPIC], [BROKER])

    assert log == MetadataLog(image(VERSION), 4, transaction=OpenTransaction(1, image(VERSION, TOPIC, BROKER)))
    assert log.newest_image == image(VERSION, TOPIC, BROKER)
    assert apply_records(log, 4, [END, CONFIG]) == MetadataLog(image(VERSION, TOPIC, BROKER, CONFIG), 6)


@pytest.mark.parametrize(
    "batches", [[[BEGIN, TOPIC, ABORT, CONFIG]], [[BEGIN], [TOPIC], [ABORT], [CONFIG]]], ids=["one", "several"]
)
def test_an_aborted_transaction_leaves_nothing(batches: list[list[MetadataRecord]]) -> None:
    """KIP-868. In one batch and over several."""
    assert applied([VERSION], *batches) == MetadataLog(image(VERSION, CONFIG), 5)


def test_an_aborted_transaction_is_followed_by_another_in_the_same_batch() -> None:
    """ActivationRecordsGenerator writes it so after a fail-over."""
    log = applied([BEGIN, VERSION], [ABORT, BEGIN, VERSION, CONFIG, END])

    assert log == MetadataLog(image(VERSION, CONFIG), 7)


@pytest.mark.parametrize(
    ("found", "refusal"),
    [
        (
            [BEGIN, BEGIN],
            "The BeginTransactionRecord at offset 1 cannot be applied: the transaction that began at offset 0 has not ended.",
        ),
        ([END], "The EndTransactionRecord at offset 0 cannot be applied: no transaction has begun."),
        ([BEGIN, END, ABORT], "The AbortTransactionRecord at offset 2 cannot be applied: no transaction has begun."),
    ],
    ids=["two begins", "end", "abort"],
)
def test_markers_out_of_order_are_refused(found: list[MetadataRecord], refusal: str) -> None:
    """RuntimeException in Java."""
    with pytest.raises(MetadataError) as refused:
        applied(found)

    assert str(refused.value) == refusal


def test_a_snapshot_is_read_as_it_was_written() -> None:
    """By the batches of control records around it, too."""
    before = image(VERSION, BROKER, TOPIC, CONFIG)
    batches = snapshot_batches(
        snapshot_values(before), epoch=2, timestamp_ms=5, last_contained_timestamp_ms=4, max_records=2
    )
    found = decode_batches(b"".join(batches))

    assert load_snapshot(found, 20, 2, 4) == MetadataLog(before, 20, 2, 4)


def test_a_refused_record_names_its_offset_in_the_log() -> None:
    """Not its place in the batch."""
    with pytest.raises(MetadataError, match="The FenceBrokerRecord at offset 21 cannot be applied"):
        apply_batch(MetadataLog(end_offset=20), batch(20, [VERSION, records.FenceBrokerRecord(5, 1)]))


def test_replay_of_nothing_is_the_same_image() -> None:
    """NoOpRecords come twice a second."""
    before = image(VERSION, TOPIC)

    assert replay(before, [records.NoOpRecord()]) == before

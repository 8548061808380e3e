"""Batches of a decision's records. Source: QuorumController.appendRecords of Kafka."""

from __future__ import annotations

import uuid
from dataclasses import replace

import pytest

from controller_core.metadata.payloads import MAX_BYTES, MAX_RECORDS, Payload, Write, payloads
from kafka_metadata import records
from kafka_metadata.record_codec import decode_record
from kafka_wire import ErrorCode, Failure
from kafka_wire.records import decode_batches

NO_OP = records.NoOpRecord()
BROKER = records.RegisterBrokerRecord(1, uuid.UUID(int=2), 3, ())


def config(size_bytes: int) -> records.ConfigRecord:
    """Return a config whose value has so many bytes."""
    return records.ConfigRecord(records.ResourceType.TOPIC, "topic", "name", "x" * size_bytes)


def batches_of(write: Write) -> list[Payload] | Failure:
    """Return the batches of a write at the newest metadata version."""
    return payloads([write.records], 30, 0, is_atomic=write.is_atomic)


def test_an_atomic_write_is_one_batch() -> None:
    """The log has it whole or not at all."""
    batches = batches_of(Write((NO_OP,) * MAX_RECORDS))

    assert isinstance(batches, list)
    assert [batch.record_count for batch in batches] == [10_000]


def test_nothing_to_write_is_no_batch() -> None:
    """A batch needs a record."""
    assert batches_of(Write(())) == []
    assert batches_of(Write((), is_atomic=False)) == []


def test_an_atomic_write_of_more_records_is_refused() -> None:
    """CreateTopics of 1,000 topics with 10 partitions."""
    assert batches_of(Write((NO_OP,) * 11_000)) == Failure(
        ErrorCode.POLICY_VIOLATION,
        "The change has 11000 records, but at most 10000 can be written at once. Change less in one request.",
    )


def test_an_atomic_write_of_more_bytes_is_refused() -> None:
    """8 MiB with the batch's header and the fields around each value."""
    refused = batches_of(Write((config(30_000),) * 300))

    assert isinstance(refused, Failure)
    assert refused.code is ErrorCode.POLICY_VIOLATION
    assert refused.message.endswith(" bytes, but at most 8388547 can be written at once. Change less in one request.")


def test_another_write_is_split_in_its_order_with_the_registration_last() -> None:
    """ClusterControlManager.registerBroker: the end of an unclean shutdown may have many records."""
    batches = batches_of(Write((*[NO_OP] * 20_000, BROKER), is_atomic=False))

    assert isinstance(batches, list)
    assert [batch.record_count for batch in batches] == [10_000, 10_000, 1]
    (last,) = decode_batches(batches[-1].data)
    assert decode_record(last.records[0].value, 0) == BROKER


def test_a_registration_that_is_not_last_is_a_defect() -> None:
    """A failure after it would leave the rest undone."""
    with pytest.raises(AssertionError, match="registration is last"):
        batches_of(Write((BROKER, *[NO_OP] * 10_000), is_atomic=False))


def test_no_batch_has_more_than_8_mib() -> None:
    """KafkaRaftClient.MAX_BATCH_SIZE_BYTES; the largest values that fit are in one batch."""
    batches = batches_of(Write((config(30_000),) * 600, is_atomic=False))

    assert isinstance(batches, list)
    sizes = [len(batch.data) for batch in batches]
    assert sum(batch.record_count for batch in batches) == 600
    assert max(sizes) <= 8 * 1024 * 1024
    assert max(sizes) > MAX_BYTES - 40_000


@pytest.mark.slow
def test_a_record_that_fits_no_batch_is_refused() -> None:
    """An ACL, a token or a config has at most 32 KiB a field; a list of replicas is limited by nothing."""
    huge = records.PartitionRecord(0, uuid.UUID(int=1), tuple(range(2_100_000)), (), -1)

    for is_atomic in (True, False):
        refused = batches_of(Write((replace(NO_OP), huge), is_atomic))
        assert isinstance(refused, Failure)
        assert refused.code is ErrorCode.POLICY_VIOLATION

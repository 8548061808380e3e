"""Kafka's own code reads our log and our snapshot, and its image has the same records as ours, both ways."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from kafka_log.format.control_records import snapshot_batches
from kafka_metadata import records
from kafka_metadata.image import MetadataImage
from kafka_metadata.metadata_log import MetadataLog, apply_batch
from kafka_metadata.metadata_versions import LATEST_PRODUCTION, TRANSACTIONS_SINCE, record_version
from kafka_metadata.record_codec import encode_record
from kafka_metadata.records import RECORD_CLASSES, MetadataRecord
from kafka_metadata.replay import replay
from kafka_metadata.snapshot import snapshot_records, snapshot_values
from kafka_wire.records import Record, decode_batches, encode_batch
from tests.effort import examples
from tests.kafka_log.batches import fast_folder
from tests.kafka_metadata.judge import MetadataJudge, in_one_order
from tests.kafka_metadata.record_values import EVERY_TYPE, metadata_version_of, others, record_logs

pytestmark = pytest.mark.java

JUDGED = [
    "RegisterBrokerRecord", "PartitionRecord", "PartitionChangeRecord", "RegisterControllerRecord", "UserScramCredentialRecord",
    "DelegationTokenRecord", "EndTransactionRecord", "ClearElrRecord", "ZkMigrationStateRecord",
]  # fmt: skip
"""Records whose versions the judge returns, in its order."""


@pytest.fixture(scope="module")
def judge() -> Iterator[MetadataJudge]:
    """One JVM for all tests."""
    with MetadataJudge() as running:
        yield running


@pytest.fixture(scope="module")
def folder() -> Iterator[Path]:
    """A folder in memory; each example overwrites its files."""
    with fast_folder() as empty:
        yield empty


def write_log(path: Path, log: Sequence[MetadataRecord]) -> None:
    """Write a log with a record a batch: Kafka's deltas of several records differ from the order of these in some cases."""
    version = metadata_version_of(log)
    values = [encode_record(record, version) for record in log]
    path.write_bytes(
        b"".join(
            encode_batch([Record(offset, 1_000, None, value)], partition_leader_epoch=1)
            for offset, value in enumerate(values)
        )
    )


def steward_image(path: Path) -> MetadataImage:
    """Return our image of a log."""
    log = MetadataLog()
    for batch in decode_batches(path.read_bytes()):
        log = apply_batch(log, batch)
    return log.image


def test_the_example_has_every_type() -> None:
    """MetadataRecordType."""
    assert {type(record) for record in EVERY_TYPE} == set(RECORD_CLASSES)


def test_versions_of_records_are_kafkas_at_every_metadata_version(judge: MetadataJudge) -> None:
    """Class MetadataVersion."""
    kafka = {level: found for level, found in judge.versions().items() if level <= LATEST_PRODUCTION}
    steward = {
        level: [-1 if version is None else version for version in (record_version(name, level) for name in JUDGED)]
        for level in range(7, 31)
    }

    assert steward == kafka


@examples(30)
@given(log=record_logs())
@example(log=EVERY_TYPE)
def test_kafka_has_the_same_image_of_a_log_and_of_its_snapshot(
    judge: MetadataJudge, folder: Path, log: list[MetadataRecord]
) -> None:
    """Random logs of all types at all metadata versions: MetadataBatchLoader, MetadataDelta, MetadataImage and ImageWriter."""
    write_log(folder / "log", log)
    image = steward_image(folder / "log")
    batches = snapshot_batches(snapshot_values(image), epoch=1, timestamp_ms=1, last_contained_timestamp_ms=1)
    (folder / "snapshot").write_bytes(b"".join(batches))

    steward = list(snapshot_records(image))
    kafka = judge.read_log(folder / "log")
    assert in_one_order(kafka) == in_one_order(steward)
    assert in_one_order(judge.read_snapshot(folder / "snapshot")) == in_one_order(steward)
    again = replay(MetadataImage(), kafka)
    assert in_one_order(list(snapshot_records(again))) == in_one_order(steward)


@examples(30)
@given(log=record_logs(most=10), data=st.data())
def test_kafka_has_the_same_image_after_transactions(
    judge: MetadataJudge, folder: Path, log: list[MetadataRecord], data: st.DataObject
) -> None:
    """KIP-868. One that ends, one that is aborted, and one that is open."""
    version = metadata_version_of(log)
    if version < TRANSACTIONS_SINCE:
        return
    inside = st.lists(st.one_of(others(version)), max_size=3)
    ended, aborted, unfinished = (data.draw(inside) for _ in range(3))
    begin = records.BeginTransactionRecord("name")
    written = [
        *log,
        *(begin, *ended, records.EndTransactionRecord()),
        *(begin, *aborted, records.AbortTransactionRecord("reason")),
        *(begin, *unfinished),
    ]
    write_log(folder / "log", written)

    steward = list(snapshot_records(steward_image(folder / "log")))
    assert in_one_order(judge.read_log(folder / "log")) == in_one_order(steward)
    assert steward == list(snapshot_records(replay(MetadataImage(), [*log, *ended])))

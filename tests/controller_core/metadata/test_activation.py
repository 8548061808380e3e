"""First records of an active term. Source: ActivationRecordsGenerator of Kafka 4.3.1."""

from __future__ import annotations

import pytest

from controller_core.metadata.activation import activation_write
from controller_core.metadata.payloads import Write
from kafka_metadata import records
from kafka_metadata.failures import MetadataError
from kafka_metadata.metadata_log import MetadataLog, apply_records
from kafka_metadata.records import MetadataRecord

LEVELS = {
    "metadata.version": 30,
    "eligible.leader.replicas.version": 1,
    "group.version": 1,
    "share.version": 1,
    "streams.version": 1,
    "transaction.version": 2,
}
"""Features of stock Kafka 4.3 (test_format_judged.py has them from kafka-storage)."""

BOOTSTRAP = [records.FeatureLevelRecord(name, level) for name, level in LEVELS.items()]
BEGIN, END = records.BeginTransactionRecord("Bootstrap records"), records.EndTransactionRecord()
ABORT = records.AbortTransactionRecord("Controller failover")
MIN_ISR = records.ConfigRecord(4, "", "min.insync.replicas", "2")


def log(*found: MetadataRecord) -> MetadataLog:
    """Return the state after records."""
    return apply_records(MetadataLog(), 0, found)


def test_an_empty_log_gets_the_bootstrap_records_in_a_transaction() -> None:
    """With the config that eligible leader replicas need."""
    write, version = activation_write(log(), BOOTSTRAP, 2)

    assert write == Write((BEGIN, *BOOTSTRAP, MIN_ISR, END), is_atomic=False)
    assert version == 30


def test_a_cluster_without_eligible_leader_replicas_keeps_each_brokers_min_insync_replicas() -> None:
    """The config may differ between brokers then."""
    without = [record for record in BOOTSTRAP if not record.name.startswith("eligible")]

    assert activation_write(log(), without, 2)[0] == Write((BEGIN, *without, END), is_atomic=False)


def test_a_metadata_version_without_transactions_gets_them_as_one_batch() -> None:
    """MetadataVersion.isMetadataTransactionSupported."""
    bootstrap = [records.FeatureLevelRecord("metadata.version", 12)]

    assert activation_write(log(), bootstrap, 2) == (Write(tuple(bootstrap)), 12)


@pytest.mark.parametrize("written", [(), (BOOTSTRAP[0],)], ids=["before", "after"])
def test_bootstrap_records_that_a_fail_over_cut_short_are_written_again(written: tuple[MetadataRecord, ...]) -> None:
    """Before and after the metadata version was written."""
    write, _ = activation_write(log(BEGIN, *written), BOOTSTRAP, 2)

    assert write == Write((ABORT, BEGIN, *BOOTSTRAP, MIN_ISR, END), is_atomic=False)


def test_a_log_in_use_needs_no_records() -> None:
    """Method recordsForNonEmptyLog."""
    assert activation_write(log(*BOOTSTRAP), [], 2) == (Write(()), 30)


def test_an_open_transaction_is_aborted() -> None:
    """Method recordsForNonEmptyLog."""
    assert activation_write(log(*BOOTSTRAP, records.BeginTransactionRecord("more")), [], 2) == (Write((ABORT,)), 30)


def test_bootstrap_records_without_a_metadata_version_are_refused() -> None:
    """A damaged bootstrap.checkpoint."""
    with pytest.raises(MetadataError) as refused:
        activation_write(log(), BOOTSTRAP[1:], 2)

    assert str(refused.value) == (
        "The bootstrap records have no metadata.version. Format the controllers' directories again."
    )

"""Records that a new active controller writes first. Source: ActivationRecordsGenerator of Kafka.

An empty log gets the records of bootstrap.checkpoint, in a transaction where the metadata version has transactions. A transaction that the
controller before left open is aborted. Kafka takes a metadata version of the open transaction for one of the log, and then writes no
bootstrap records; here the metadata version must be committed.
"""

from collections.abc import Sequence

from controller_core.metadata.payloads import Write
from controller_core.model.settings import MIN_ISR
from kafka_metadata import failures, metadata_versions
from kafka_metadata.metadata_log import MetadataLog
from kafka_metadata.records import (
    AbortTransactionRecord,
    BeginTransactionRecord,
    ConfigRecord,
    EndTransactionRecord,
    FeatureLevelRecord,
    MetadataRecord,
    ResourceType,
)

TRANSACTION_NAME = "Bootstrap records"
ABORT_REASON = "Controller failover"


def activation_write(
    log: MetadataLog, bootstrap: Sequence[MetadataRecord], min_insync_replicas: int
) -> tuple[Write, int]:
    """Return the first write of an active term, which may be empty, and the metadata version to encode it with.

    `min_insync_replicas` is the static default of the brokers: with eligible leader replicas it becomes a config of the cluster. Raises
    MetadataError for bootstrap records without a metadata version.
    """
    abort = () if log.transaction is None else (AbortTransactionRecord(ABORT_REASON),)
    if log.image.metadata_version is not None:
        return Write(abort), log.image.metadata_version
    levels = {record.name: record.feature_level for record in bootstrap if isinstance(record, FeatureLevelRecord)}
    if metadata_versions.METADATA_VERSION not in levels:
        raise failures.MetadataError(
            "The bootstrap records have no metadata.version. Format the controllers' directories again."
        )
    content = (
        *bootstrap,
        *_cluster_min_insync_replicas(levels.get(metadata_versions.ELR_VERSION, 0), min_insync_replicas),
    )
    metadata_version = levels[metadata_versions.METADATA_VERSION]
    if metadata_version < metadata_versions.TRANSACTIONS_SINCE:
        return Write(content), metadata_version
    records = (*abort, BeginTransactionRecord(TRANSACTION_NAME), *content, EndTransactionRecord())
    return Write(records, is_atomic=False), metadata_version


def _cluster_min_insync_replicas(elr_level: int, min_insync_replicas: int) -> tuple[ConfigRecord, ...]:
    """Return the config that eligible leader replicas need: brokers must not differ in it (KIP-966)."""
    if not elr_level:
        return ()
    return (ConfigRecord(ResourceType.BROKER, "", MIN_ISR, str(min_insync_replicas)),)

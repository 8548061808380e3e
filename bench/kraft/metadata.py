"""Metadata of a cluster of any size as a snapshot, which controllers of either kind load: brokers, topics and partitions with three replicas.

The brokers are registered and unfenced. No process is behind them, so benchmarks give them long sessions, or send their heartbeats.
"""

from collections.abc import Iterator, Sequence
from itertools import chain
from pathlib import Path
from uuid import UUID

from kafka_log.files.snapshots import write_snapshot
from kafka_log.format.control_records import snapshot_batches
from kafka_log.format.names import SnapshotId
from kafka_metadata.metadata_versions import ELR_VERSION, LATEST_PRODUCTION, METADATA_VERSION
from kafka_metadata.record_codec import encode_record
from kafka_metadata.records import (
    SECURITY_PROTOCOL_IDS,
    EndPoint,
    FeatureLevelRecord,
    MetadataRecord,
    PartitionRecord,
    RegisterBrokerRecord,
    SupportedFeature,
    TopicRecord,
)

BROKERS = tuple(range(1, 10))
PARTITIONS_OF_A_TOPIC = 100
REPLICAS = 3
SNAPSHOT = SnapshotId(2_000_000, 1)
"""Behind all offsets that the brokers' epochs may have been."""
FIRST_BROKER_EPOCH = 100


def write_metadata(folder: Path, partitions: int, brokers: Sequence[int] = BROKERS) -> Path:
    """Write the snapshot of a cluster with some hundreds of partitions or more; return its path."""
    values = (encode_record(record, LATEST_PRODUCTION) for record in metadata_records(partitions, brokers))
    batches = snapshot_batches(values, epoch=SNAPSHOT.epoch, timestamp_ms=1, last_contained_timestamp_ms=1)
    return write_snapshot(folder, SNAPSHOT, batches)


def metadata_records(partitions: int, brokers: Sequence[int] = BROKERS) -> Iterator[MetadataRecord]:
    """Yield the records of the snapshot in Kafka's order."""
    yield FeatureLevelRecord(METADATA_VERSION, LATEST_PRODUCTION)
    yield from map(_broker, brokers)
    yield from chain.from_iterable(_topic(number, brokers) for number in range(partitions // PARTITIONS_OF_A_TOPIC))


def topic_name(number: int) -> str:
    """Return the name of a topic."""
    return f"topic-{number}"


def broker_epoch(broker: int) -> int:
    """Return the epoch of a broker."""
    return FIRST_BROKER_EPOCH + broker


def directory_of(broker: int) -> UUID:
    """Return the id of a broker's only log directory."""
    return UUID(int=broker << 64 | 1 << 32)


def _broker(broker: int) -> RegisterBrokerRecord:
    levels = {METADATA_VERSION: (7, LATEST_PRODUCTION), ELR_VERSION: (0, 1)}
    return RegisterBrokerRecord(
        broker,
        UUID(int=broker << 64 | 7),
        broker_epoch(broker),
        (EndPoint("CLIENT", "127.0.0.1", 9000 + broker, SECURITY_PROTOCOL_IDS["PLAINTEXT"]),),
        tuple(SupportedFeature(name, least, highest) for name, (least, highest) in levels.items()),
        fenced=False,
        log_dirs=(directory_of(broker),),
        cordoned_log_dirs=(),
    )


def _topic(number: int, brokers: Sequence[int]) -> Iterator[MetadataRecord]:
    topic_id = UUID(int=(number + 1) << 64 | 7)
    yield TopicRecord(topic_name(number), topic_id)
    for partition in range(PARTITIONS_OF_A_TOPIC):
        replicas = tuple(brokers[(number + partition + step) % len(brokers)] for step in range(REPLICAS))
        directories = tuple(map(directory_of, replicas))
        yield PartitionRecord(partition, topic_id, replicas, replicas, replicas[0], 3, 5, directories=directories)

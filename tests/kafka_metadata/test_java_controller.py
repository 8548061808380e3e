"""The metadata log and snapshot of a real controller of Kafka 4.3 make the same image here as in Kafka."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from controller_core.metadata.activation import activation_write
from kafka_log.files.snapshots import SnapshotReader, list_snapshots
from kafka_log.format.control_records import last_contained_timestamp_ms, snapshot_batches
from kafka_log.format.names import CLUSTER_METADATA_FOLDER, SnapshotId, snapshot_name
from kafka_metadata import records
from kafka_metadata.metadata_log import MetadataLog, apply_batch
from kafka_metadata.record_codec import decode_record
from kafka_metadata.records import MetadataRecord
from kafka_metadata.replay import replay
from kafka_metadata.snapshot import snapshot_records, snapshot_values
from kafka_wire import ApiKey, ErrorCode
from kafka_wire.net.node import Node
from kafka_wire.records import RecordBatch, decode_batches
from lab.peers.kraft import KraftNode, kraft_cluster
from lab.processes.waiting import wait_until
from tests.controller_core.metadata.test_activation import LEVELS
from tests.kafka_metadata.judge import MetadataJudge, in_one_order
from tests.twins.plain_snapshot import load_snapshot

pytestmark = pytest.mark.kafka

SETTINGS = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "allow.everyone.if.no.acl.found": "true",
    "super.users": "User:ANONYMOUS",
    "delegation.token.secret.key": "secret",
    "controller.quorum.append.linger.ms": "1",
    "metadata.max.idle.interval.ms": "10",
    "metadata.log.max.record.bytes.between.snapshots": "4000",
}
"""With a NoOpRecord every 10 ms, so that a snapshot comes soon after the last request."""
TOPIC = {"num_partitions": 3, "replication_factor": 1, "assignments": []}
REQUESTS: tuple[tuple[ApiKey, Mapping[str, Any]], ...] = (
    (
        ApiKey.CREATE_TOPICS,
        {
            "topics": [
                {"name": "kept", **TOPIC, "configs": [{"name": "retention.ms", "value": "1000"}]},
                {"name": "deleted", **TOPIC, "configs": [{"name": "retention.ms", "value": "1000"}]},
            ],
            "timeout_ms": 10_000,
        },
    ),
    (
        ApiKey.INCREMENTAL_ALTER_CONFIGS,
        {
            "resources": [
                {
                    "resource_type": resource_type,
                    "resource_name": name,
                    "configs": [{"name": config, "config_operation": 0, "value": value}],
                }
                for resource_type, name, config, value in [
                    (4, "", "log.cleaner.threads", "2"),
                    (16, "metrics", "interval.ms", "60000"),
                    (32, "group", "consumer.session.timeout.ms", "50000"),
                ]
            ]
        },
    ),
    (
        ApiKey.ALTER_CLIENT_QUOTAS,
        {
            "entries": [
                {
                    "entity": [{"entity_type": "user", "entity_name": None}],
                    "ops": [{"key": "producer_byte_rate", "value": 1000.0, "remove": False}],
                }
            ],
            "validate_only": False,
        },
    ),
    (
        ApiKey.ALTER_USER_SCRAM_CREDENTIALS,
        {
            "deletions": [],
            "upsertions": [
                {"name": "ann", "mechanism": 1, "iterations": 4096, "salt": b"salt", "salted_password": b"password"}
            ],
        },
    ),
    (
        ApiKey.CREATE_ACLS,
        {
            "creations": [
                {
                    "resource_type": 2,
                    "resource_name": "kept",
                    "resource_pattern_type": 3,
                    "principal": "User:ann",
                    "host": "*",
                    "operation": 3,
                    "permission_type": 3,
                }
            ]
        },
    ),
    (ApiKey.INIT_PRODUCER_ID, {"transactional_id": None, "transaction_timeout_ms": 0}),
    (ApiKey.DELETE_TOPICS, {"topics": [{"name": "deleted"}], "topic_names": ["deleted"], "timeout_ms": 10_000}),
)
"""One of each kind that leads to metadata records of a node without security."""


@pytest.fixture(scope="module")
def killed() -> Iterator[KraftNode]:
    """A node that was broker and controller, after these requests, a snapshot, and a kill -9."""
    with kraft_cluster((1,), settings=SETTINGS) as cluster:
        node = cluster[1]
        assert node.port is not None
        for key, body in REQUESTS:
            send = partial(succeeds, node.port, key, body)
            wait_until(lambda send=send: asyncio.run(send()), timeout_s=30, what=f"{key.name} succeeds")
        log = node.data_folder / CLUSTER_METADATA_FOLDER
        wait_until(
            lambda: any(snapshot.offset > 0 and has_all(log, snapshot) for snapshot in list_snapshots(log)),
            timeout_s=60,
            what="the controller has written a snapshot",
        )
        node.kill()
        yield node


@pytest.fixture(scope="module")
def folder(killed: KraftNode) -> Path:
    """The node's folder of the metadata log."""
    return killed.data_folder / CLUSTER_METADATA_FOLDER


def has_all(folder: Path, snapshot: SnapshotId) -> bool:
    """Return whether a snapshot has the last of the requests' records."""
    names = {topic.name for topic in image_of(folder, snapshot).image.topics.values()}
    return "kept" in names and "deleted" not in names


async def succeeds(port: int, key: ApiKey, body: Mapping[str, Any]) -> bool:
    """Send a request; return False while the coordinator of transactions loads."""
    node = Node("127.0.0.1", port)
    codes = codes_of(await node.call(key, dict(body), attempts=3)) - {ErrorCode.NONE}
    await node.close()
    assert codes <= {ErrorCode.COORDINATOR_LOAD_IN_PROGRESS}, (key, codes)
    return not codes


def codes_of(answer: Any) -> set[int]:
    """Return all error codes in an answer."""
    if isinstance(answer, list):
        return {code for element in answer for code in codes_of(element)}
    if not isinstance(answer, dict):
        return set()
    own = {answer["error_code"]} if "error_code" in answer else set()
    return own.union(*(codes_of(value) for value in answer.values()))


def image_of(folder: Path, snapshot: SnapshotId) -> MetadataLog:
    """Return the state of a snapshot."""
    with SnapshotReader(folder, snapshot) as reader:
        content = reader.read(0, reader.size_bytes)
    timestamp = last_contained_timestamp_ms(content)
    return load_snapshot(decode_batches(content), snapshot.offset, snapshot.epoch, timestamp)


def state_of(folder: Path) -> MetadataLog:
    """Return the state of the log's segments."""
    log = MetadataLog()
    for path in sorted(folder.glob("*.log")):
        for batch in decode_batches(path.read_bytes()):
            assert batch.header.base_offset == log.end_offset
            log = apply_batch(log, batch)
    return log


@pytest.fixture(scope="module")
def judge() -> Iterator[MetadataJudge]:
    """One JVM."""
    with MetadataJudge() as running:
        yield running


def test_the_log_of_a_controller_makes_kafkas_image(folder: Path, judge: MetadataJudge, tmp_path: Path) -> None:
    """Nothing in it is refused, and each kind of entry is there."""
    log = state_of(folder)
    (tmp_path / "log").write_bytes(b"".join(path.read_bytes() for path in sorted(folder.glob("*.log"))))
    steward = list(snapshot_records(log.image))

    assert in_one_order(judge.read_log(tmp_path / "log")) == in_one_order(steward)
    assert log.transaction is None
    assert {type(record) for record in steward} == {
        records.AccessControlEntryRecord,
        records.ClientQuotaRecord,
        records.ConfigRecord,
        records.FeatureLevelRecord,
        records.PartitionRecord,
        records.ProducerIdsRecord,
        records.RegisterBrokerRecord,
        records.RegisterControllerRecord,
        records.TopicRecord,
        records.UserScramCredentialRecord,
    }


def test_the_first_records_are_those_that_an_activation_writes_here(folder: Path) -> None:
    """Method recordsForEmptyLog: six features, and min.insync.replicas."""
    batches = [batch for path in sorted(folder.glob("*.log")) for batch in decode_batches(path.read_bytes())]
    first = next(batch for batch in batches if not batch.header.is_control)
    found = records_of(first)
    bootstrap = [record for record in found if isinstance(record, records.FeatureLevelRecord)]

    write, _ = activation_write(MetadataLog(), bootstrap, 1)
    assert tuple(found[: len(write.records)]) == write.records
    assert {record.name: record.feature_level for record in bootstrap} == LEVELS


def test_the_snapshot_of_a_controller_makes_kafkas_image(folder: Path, judge: MetadataJudge) -> None:
    """Its records are in the same order of kinds as ours."""
    snapshot = list_snapshots(folder)[-1]
    found = image_of(folder, snapshot)
    with SnapshotReader(folder, snapshot) as reader:
        batches = [batch for batch in decode_batches(reader.read(0, reader.size_bytes)) if not batch.header.is_control]
    written = [record for batch in batches for record in records_of(batch)]
    steward = list(snapshot_records(found.image))

    assert in_one_order(judge.read_snapshot(path_of(folder, snapshot))) == in_one_order(steward)
    assert in_one_order(written) == in_one_order(steward)
    assert kinds_in_order(written) == kinds_in_order(steward)
    assert found.last_timestamp_ms > 1_600_000_000_000


def test_kafka_starts_with_a_snapshot_written_here(killed: KraftNode, folder: Path) -> None:
    """Instead of its own: its next snapshot has the same, also a config that the log does not have. Brokers and leaders are new."""
    latest = list_snapshots(folder)[-1]
    before = image_of(folder, latest)
    image = replay(before.image, [records.ConfigRecord(16, "written-here", "interval.ms", "1000")])
    batches = snapshot_batches(
        snapshot_values(image),
        epoch=latest.epoch,
        timestamp_ms=before.last_timestamp_ms,
        last_contained_timestamp_ms=before.last_timestamp_ms,
    )
    path_of(folder, latest).write_bytes(b"".join(batches))

    killed.start()
    wait_until(lambda: list_snapshots(folder)[-1] > latest, timeout_s=60, what="Kafka has written its next snapshot")
    killed.kill()
    after = image_of(folder, list_snapshots(folder)[-1]).image
    assert after == replace(image, brokers=after.brokers, controllers=after.controllers, topics=after.topics)
    assert {topic.name for topic in after.topics.values()} == {topic.name for topic in image.topics.values()}


def records_of(batch: RecordBatch) -> list[MetadataRecord]:
    """Return the records of a batch."""
    return [decode_record(record.value, record.offset) for record in batch.records]


def path_of(folder: Path, snapshot: SnapshotId) -> Path:
    """Return the file of a snapshot."""
    return folder / snapshot_name(snapshot)


def kinds_in_order(found: list[MetadataRecord]) -> list[type[MetadataRecord]]:
    """Return the types in the order in which they first occur."""
    return list(dict.fromkeys(type(record) for record in found))

"""The same requests to a light broker and to Kafka 4.3, which must answer with the same fields.

Each conversation has one partition of an own topic. Texts of errors differ, and are left out.
"""

import socket
import struct
import time
import uuid
from collections.abc import Iterator
from typing import Any

import pytest

from kafka_wire import ApiKey, Body, ErrorCode, codec
from kafka_wire.compression import Compression
from kafka_wire.records import Record, encode_batch
from lab.frames import receive_frame, send_frame
from lab.peers.kraft import KraftCluster
from lab.peers.light_broker import LightBroker, light_broker

pytestmark = pytest.mark.kafka

TOPIC = f"answers-{uuid.uuid4().hex[:8]}"
NOWHERE = "nowhere"
NOW_MS = int(time.time() * 1000) - 60_000
HOUR_MS = 3_600_000
TIMEOUT_S = 30.0
LEFT_OUT = {"throttle_time_ms", "error_message", "batch_index_error_message"}

Request = tuple[str, ApiKey, int, Body]


@pytest.fixture(scope="module")
def broker() -> Iterator[LightBroker]:
    """A standalone light broker."""
    with light_broker() as started:
        yield started


def batch(*values: str, timestamp_ms: int = NOW_MS, **fields: Any) -> bytes:
    """Return a batch of records a millisecond apart."""
    records = [Record(number, timestamp_ms + number, b"key", value.encode()) for number, value in enumerate(values)]
    return encode_batch(records, **fields)


def of_producer(sequence: int, epoch: int = 0, **fields: Any) -> bytes:
    """Return a batch of one record of an idempotent producer."""
    return batch("x", producer_id=77, producer_epoch=epoch, base_sequence=sequence, **fields)


def produce(title: str, records: bytes, *, topic: str = TOPIC, acks: int = 1, version: int = 9) -> Request:
    """Return a Produce request."""
    data = [{"name": topic, "partition_data": [{"index": 0, "records": records}]}]
    return title, ApiKey.PRODUCE, version, {"acks": acks, "timeout_ms": 5_000, "topic_data": data}


def fetch(
    title: str, offset: int, *, topic: str = TOPIC, version: int = 12, part: Body | None = None, **fields: Any
) -> Request:
    """Return a Fetch request that waits for nothing."""
    parts = [{"partition": 0, "fetch_offset": offset, "partition_max_bytes": 1_000_000, **(part or {})}]
    body = {"max_wait_ms": 0, "min_bytes": 1, "max_bytes": 1_000_000, **fields}
    return title, ApiKey.FETCH, version, {**body, "topics": [{"topic": topic, "partitions": parts}]}


def offsets(
    title: str, timestamp_ms: int, *, topic: str = TOPIC, version: int = 11, epoch: int = -1, **fields: Any
) -> Request:
    """Return a ListOffsets request."""
    parts = [{"partition_index": 0, "timestamp": timestamp_ms, "current_leader_epoch": epoch}]
    body = {"replica_id": -1, "isolation_level": 0, **fields}
    return title, ApiKey.LIST_OFFSETS, version, {**body, "topics": [{"name": topic, "partitions": parts}]}


def epoch_end(title: str, epoch: int, *, topic: str = TOPIC, current: int = -1) -> Request:
    """Return an OffsetForLeaderEpoch request."""
    parts = [{"partition": 0, "leader_epoch": epoch, "current_leader_epoch": current}]
    return (
        title,
        ApiKey.OFFSET_FOR_LEADER_EPOCH,
        4,
        {"replica_id": -1, "topics": [{"topic": topic, "partitions": parts}]},
    )


def deletion(title: str, offset: int, *, topic: str = TOPIC) -> Request:
    """Return a DeleteRecords request."""
    topics = [{"name": topic, "partitions": [{"partition_index": 0, "offset": offset}]}]
    return title, ApiKey.DELETE_RECORDS, 2, {"timeout_ms": 5_000, "topics": topics}


def producers(title: str, topic: str) -> Request:
    """Return a DescribeProducers request."""
    return title, ApiKey.DESCRIBE_PRODUCERS, 0, {"topics": [{"name": topic, "partition_indexes": [0]}]}


def reassignment(title: str, *, topic: str = TOPIC, partition: int = 0, replicas: list[int] | None) -> Request:
    """Return an AlterPartitionReassignments request."""
    parts = [{"partition_index": partition, "replicas": replicas}]
    body = {"timeout_ms": 5_000, "topics": [{"name": topic, "partitions": parts}]}
    return title, ApiKey.ALTER_PARTITION_REASSIGNMENTS, 1, body


def feature_update(title: str, level: int, *, version: int) -> Request:
    """Return an UpdateFeatures request for a feature that Kafka does not have."""
    updates = [{"feature": NOWHERE, "max_version_level": level}]
    return title, ApiKey.UPDATE_FEATURES, version, {"timeout_ms": 5_000, "feature_updates": updates}


TWO = batch("a", "b")
REQUESTS: list[Request] = [
    *(produce(f"a batch, version {version}", TWO, version=version) for version in (3, 9, 12)),
    produce("acks=all", TWO, acks=-1),
    produce("other acks", TWO, acks=2),
    produce("an unknown topic", TWO, topic=NOWHERE),
    produce("two batches", TWO + TWO),
    produce("a wrong checksum", TWO[:-1] + b"?"),
    produce("bytes that are no batch", b"x" * 10),
    produce("a truncated batch", TWO[:-3]),
    produce("a base offset that is not 0", struct.pack(">q", 5) + TWO[8:]),
    produce("a timestamp in the future", batch("a", timestamp_ms=NOW_MS + 2 * HOUR_MS)),
    produce("a batch that is too large", batch("x" * 1_100_000)),
    produce("zstd by an old client", batch("a", compression=Compression.ZSTD), version=6),
    produce("a control batch", batch("a", is_control=True, producer_id=9, producer_epoch=0, base_sequence=0)),
    produce("an idempotent batch", of_producer(0)),
    produce("the same batch again", of_producer(0)),
    produce("a gap in the sequence", of_producer(5)),
    produce("a new epoch", of_producer(0, epoch=3)),
    produce("an old epoch", of_producer(1, epoch=2)),
    produce("transactional records without an id", of_producer(1, epoch=3, is_transactional=True)),
    *(fetch(f"from the start, version {version}", 0, version=version) for version in (4, 7, 12)),
    fetch("committed records", 0, isolation_level=1),
    fetch("the end", 10),
    fetch("above the end", 99),
    fetch("less than a batch", 0, part={"partition_max_bytes": 10}),
    fetch("an unknown topic", 0, topic=NOWHERE),
    fetch("an unknown partition", 0, part={"partition": 7}),
    fetch("an unknown leader epoch", 0, part={"current_leader_epoch": 99}),
    fetch("a diverging log", 50, part={"last_fetched_epoch": 0, "current_leader_epoch": 0}),
    fetch("an unknown session", 0, session_id=4, session_epoch=3),
    fetch("an unknown replica", 0, replica_id=5),
    fetch("an unknown replica with an epoch", 0, replica_id=5, part={"current_leader_epoch": 0}),
    *(
        offsets(
            f"timestamp {timestamp - NOW_MS if timestamp > 0 else timestamp}, version {version}",
            timestamp,
            version=version,
        )
        for timestamp in (-1, -2, -3, -4, -5, -6, -7, NOW_MS, NOW_MS + 1, NOW_MS + HOUR_MS)
        for version in (4, 11)
    ),
    offsets("the end of committed records", -1, isolation_level=1),
    offsets("the end, by a tool", -1, replica_id=-2),
    offsets("an unknown topic", -1, topic=NOWHERE),
    offsets("an unknown leader epoch", -1, epoch=99),
    *(epoch_end(f"epoch {epoch}", epoch) for epoch in (-1, 0, 5)),
    epoch_end("an unknown topic", 0, topic=NOWHERE),
    epoch_end("an unknown leader epoch", 0, current=9),
    producers("the producers", TOPIC),
    producers("an unknown topic", NOWHERE),
    producers("an invalid topic", "a/b"),
    deletion("up to an offset", 1),
    deletion("above the end", 99),
    deletion("an invalid offset", -5),
    deletion("an unknown topic", 0, topic=NOWHERE),
    fetch("deleted records", 0),
    offsets("the start after a deletion", -2),
    deletion("up to the high watermark", -1),
    reassignment("the same replica", replicas=[1]),
    reassignment("an unknown broker", replicas=[77]),
    reassignment("the same broker twice", replicas=[1, 1]),
    reassignment("no replica", replicas=[]),
    reassignment("a cancellation without a reassignment", replicas=None),
    reassignment("an unknown topic", topic=NOWHERE, replicas=[1]),
    reassignment("an unknown partition", partition=7, replicas=[1]),
    (
        "reassignments of a topic",
        ApiKey.LIST_PARTITION_REASSIGNMENTS,
        0,
        {"timeout_ms": 5_000, "topics": [{"name": TOPIC, "partition_indexes": [0]}]},
    ),
    *(
        feature_update(f"level {level} of an unknown feature, version {version}", level, version=version)
        for level in (-1, 0, 1)
        for version in (1, 2)
    ),
    (
        "an unknown user",
        ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS,
        0,
        {"users": [{"name": NOWHERE}, {"name": TOPIC}, {"name": TOPIC}]},
    ),
    *(
        (
            f"the quotas of a user, version {version}",
            ApiKey.DESCRIBE_CLIENT_QUOTAS,
            version,
            {"components": [{"entity_type": "user", "match_type": 0, "match": NOWHERE}], "strict": False},
        )
        for version in (0, 1)
    ),
]


def answers(port: int) -> dict[str, Any]:
    """Return the responses by API and title. A topic is created first."""
    from confluent_kafka.admin import AdminClient, NewTopic

    admin = AdminClient({"bootstrap.servers": f"127.0.0.1:{port}"})
    for future in admin.create_topics(
        [NewTopic(TOPIC, 1, replica_assignment=[[1]])], operation_timeout=TIMEOUT_S
    ).values():
        future.result(TIMEOUT_S)
    found = {}
    with socket.create_connection(("127.0.0.1", port), timeout=TIMEOUT_S) as connection:
        while asked(connection, *offsets("", -1)[1:])["topics"][0]["partitions"][0]["error_code"]:
            pass  # the broker does not lead the partition yet
        for title, key, version, body in REQUESTS:
            found[f"{key.name}: {title}"] = compared(asked(connection, key, version, body))
    return found


def asked(connection: socket.socket, key: ApiKey, version: int, body: Body) -> Body:
    """Return the response to a request."""
    send_frame(connection, codec.encode_request(key, version, 1, "test", body))
    frame = receive_frame(connection)
    assert frame is not None, f"the connection was closed by {key.name} {body}"
    return codec.decode_response(key, version, frame)[1]


def compared(value: Any, name: str = "") -> Any:
    """Return a response without texts, with names of errors; users by name, since Kafka's order is that of a Java hash map."""
    if isinstance(value, dict):
        return {key: compared(element, key) for key, element in value.items() if key not in LEFT_OUT}
    if isinstance(value, list):
        rows = [compared(element) for element in value]
        are_users = all(isinstance(row, dict) and "user" in row for row in rows)
        return sorted(rows, key=lambda row: row["user"]) if are_users else rows
    return ErrorCode.of(value).name if name.endswith("error_code") else value


def first_and_final(port: int) -> tuple[Any, Any]:
    """Return the description of a topic in the response that creates it, and in the one that has its partitions."""
    name = f"created-{uuid.uuid4().hex[:8]}"
    body = {"topics": [{"name": name}], "allow_auto_topic_creation": True}
    with socket.create_connection(("127.0.0.1", port), timeout=TIMEOUT_S) as connection:
        (first,) = (topic,) = asked(connection, ApiKey.METADATA, 12, body)["topics"]
        deadline = time.monotonic() + TIMEOUT_S
        while topic["error_code"] or any(partition["error_code"] for partition in topic["partitions"]):
            assert time.monotonic() < deadline, topic
            (topic,) = asked(connection, ApiKey.METADATA, 12, body)["topics"]
    return error_and_partition(first), error_and_partition(topic)


def error_and_partition(topic: Body) -> tuple[str, list[int]]:
    """Return the error of a topic, and the epochs of its partitions: their numbers and leaders depend on the cluster."""
    return ErrorCode.of(topic["error_code"]).name, sorted(
        {partition["leader_epoch"] for partition in topic["partitions"]}
    )


def test_a_topic_that_metadata_creates_is_described_at_once_here_and_later_by_kafka(
    broker: LightBroker, kraft_cluster: KraftCluster
) -> None:
    """Clients repeat a request that has UNKNOWN_TOPIC_OR_PARTITION (AutoTopicCreationManager); the final descriptions are the same."""
    port = kraft_cluster[1].port
    assert port is not None

    assert first_and_final(port) == (("UNKNOWN_TOPIC_OR_PARTITION", []), ("NONE", [0]))
    assert first_and_final(broker.port) == (("NONE", [0]), ("NONE", [0]))


@pytest.mark.shows("B2", "B3", "B8")
def test_a_light_broker_answers_as_kafka(broker: LightBroker, kraft_cluster: KraftCluster) -> None:
    """Every field of every response, records included. The topic has one replica, on broker 1."""
    port = kraft_cluster[1].port
    assert port is not None
    ours, kafkas = answers(broker.port), answers(port)

    assert {title: ours[title] for title in ours if ours[title] != kafkas[title]} == {}

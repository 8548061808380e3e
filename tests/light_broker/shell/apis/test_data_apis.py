"""Conversations with the APIs of data, and their error codes. Source: Kafka's KafkaApis.

Each golden file is the conversation that its test has with broker 1.
"""

import asyncio
import struct
from dataclasses import replace
from pathlib import Path

from kafka_log.files.partition_settings import PartitionSettings
from kafka_log.format.leader_append import AppendSettings
from kafka_log.format.producers import Origin
from kafka_node.authorization.acl import CLUSTER_NAME, Operation, ResourceType
from kafka_wire import ApiKey, Body
from kafka_wire.compression import Compression
from kafka_wire.records import Record, encode_batch
from kafka_wire.topic_partition import TopicPartition
from tests.golden_scripts import assert_golden
from tests.kafka_node.authorization.samples import ALICE, guard_of
from tests.light_broker.fixed_control import partition_view, topic_view
from tests.light_broker.hosting import NOW_MS, ORDERS, REPLICATED, follower_fetches, hosting, records, take_role
from tests.light_broker.shell.apis.calls import call
from tests.light_broker.shell.apis.conversation import Conversation

GOLDEN = Path(__file__).parent / "golden"
ELSEWHERE = topic_view("elsewhere", partition_view(leader=2, replicas=(2,), leader_epoch=9), number=2)
OFFSETS = replace(topic_view("__consumer_offsets", number=3), is_internal=True)
TOPIC, CLUSTER, TRANSACTION = ResourceType.TOPIC, ResourceType.CLUSTER, ResourceType.TRANSACTIONAL_ID
READ_COMMITTED = 1


def produce(topic: str, data: bytes | None, *, acks: int = 1, timeout_ms: int = 1_000, **fields: object) -> Body:
    """Return a Produce request for partition 0 of a topic by name."""
    parts = [{"index": 0, "records": data}]
    return {
        "acks": acks,
        "timeout_ms": timeout_ms,
        "topic_data": [{"name": topic, "partition_data": parts}],
        **fields,
    }


def produce_by_id(number: int, data: bytes | None, *, acks: int = 1) -> Body:
    """Return a Produce request for partition 0 of a topic by id."""
    parts = [{"index": 0, "records": data}]
    return {
        "acks": acks,
        "timeout_ms": 1_000,
        "topic_data": [{"topic_id": topic_view("x", number=number).id, "partition_data": parts}],
    }


def fetch(*offsets: int, topic: str = "orders", partition: Body | None = None, **fields: object) -> Body:
    """Return a Fetch request by name for the first partitions of a topic, from some offsets."""
    parts = [
        {"partition": number, "fetch_offset": offset, "partition_max_bytes": 1_000_000, **(partition or {})}
        for number, offset in enumerate(offsets)
    ]
    return {
        "max_wait_ms": 0,
        "min_bytes": 1,
        "max_bytes": 1_000_000,
        "topics": [{"topic": topic, "partitions": parts}] if parts else [],
        **fields,
    }


async def test_produce(tmp_path: Path) -> None:
    """Source: KafkaApis.handleProduceRequest, ReplicaManager.appendRecords."""
    batch, key = records("a", "b"), ApiKey.PRODUCE
    guard = guard_of(
        *((Operation.WRITE, TOPIC, name) for name in ("orders", "elsewhere", "nowhere", "__consumer_offsets")),
        (Operation.WRITE, TRANSACTION, "mine"),
    )
    alice = {"principal": ALICE}
    async with hosting(tmp_path, topic_view("orders"), ELSEWHERE, OFFSETS, guard=guard) as broker:
        await broker.replicas.stop(TopicPartition("elsewhere", 0), delete=False)
        talk = Conversation(broker)
        for version in (3, 9, 12):
            await talk.ask("a batch", key, produce("orders", batch), version=version, **alice)
        await talk.ask("a batch for a topic by id", key, produce_by_id(1, batch), **alice)
        await talk.ask("an unknown topic id", key, produce_by_id(99, batch), **alice)
        await talk.ask("acks=0", key, produce("orders", batch, acks=0), version=9, **alice)
        await talk.ask("acks=0 and an error", key, produce("nowhere", batch, acks=0), version=9, **alice)
        await talk.ask("other acks", key, produce("orders", batch, acks=2), version=9, **alice)
        await talk.ask("an unknown topic", key, produce("nowhere", batch), version=9, **alice)
        await talk.ask("a topic without the right to write it", key, produce("secret", batch), version=9, **alice)
        await talk.ask("an internal topic", key, produce("__consumer_offsets", batch), version=9, **alice)
        await talk.ask("another leader", key, produce("elsewhere", batch), version=9, **alice)
        await talk.ask("another leader, by KIP-951", key, produce("elsewhere", batch), version=12, **alice)
        await talk.ask("no records", key, produce("orders", None), version=9, **alice)
        await talk.ask("two batches", key, produce("orders", batch + batch), version=9, **alice)
        await talk.ask("a wrong checksum", key, produce("orders", batch[:-1] + b"?"), version=9, **alice)
        await talk.ask("bytes that are no batch", key, produce("orders", b"x" * 10), version=9, **alice)
        late = records("a", timestamp_ms=NOW_MS + 3_700_000)
        await talk.ask("a timestamp in the future", key, produce("orders", late), version=9, **alice)
        zstd = records(compression=Compression.ZSTD)
        await talk.ask("zstd by an old client", key, produce("orders", zstd), version=6, **alice)
        sequence = records("a", producer_id=4, producer_epoch=0, base_sequence=0)
        await talk.ask("an idempotent batch", key, produce("orders", sequence), version=9, **alice)
        await talk.ask("the same batch again", key, produce("orders", sequence), version=9, **alice)
        gap = records("a", producer_id=4, producer_epoch=0, base_sequence=5)
        await talk.ask("a gap in the sequence", key, produce("orders", gap), version=9, **alice)
        part = records("a", producer_id=4, producer_epoch=0, base_sequence=1, is_transactional=True)
        await talk.ask("transactional records without an id", key, produce("orders", part), version=9, **alice)
        await talk.ask(
            "transactional records", key, produce("orders", part, transactional_id="mine"), version=9, **alice
        )

    assert_golden(GOLDEN / "produce.txt", talk.text)


async def test_produce_with_replicas(tmp_path: Path) -> None:
    """Source: DelayedProduce, Partition.appendRecordsToLeader."""
    batch, key = records("a"), ApiKey.PRODUCE
    settings = PartitionSettings(append=AppendSettings(log_append_time=True))
    async with hosting(tmp_path, topic_view("orders", REPLICATED), settings=settings) as broker:
        talk = Conversation(broker)
        await talk.ask("acks=all without a follower", key, produce("orders", batch, acks=-1, timeout_ms=0), version=9)
        waiting = asyncio.ensure_future(
            talk.ask("acks=all, and the follower fetches", key, produce("orders", batch, acks=-1), version=9)
        )
        await asyncio.sleep(0)  # it appends before its first wait
        await follower_fetches(broker, 2)
        await waiting
        await take_role(broker, ORDERS, replace(REPLICATED, leader=2, leader_epoch=6, partition_epoch=1))
        await talk.ask("a former leader", key, produce("orders", batch, acks=-1), version=12)

    assert_golden(GOLDEN / "produce_with_replicas.txt", talk.text)


async def test_fetch(tmp_path: Path) -> None:
    """Source: KafkaApis.handleFetchRequest, ReplicaManager.readFromLog."""
    key = ApiKey.FETCH
    guard = guard_of(
        *((Operation.READ, TOPIC, name) for name in ("orders", "elsewhere", "nowhere")),
    )
    alice = {"principal": ALICE}
    async with hosting(tmp_path, topic_view("orders", REPLICATED), ELSEWHERE, guard=guard) as broker:
        await broker.replicas.writes.append({ORDERS: records("a", "b")}, acks=1, timeout_ms=0)
        await broker.replicas.writes.append({ORDERS: records("c")}, acks=1, timeout_ms=0)
        await follower_fetches(broker, 2)
        talk = Conversation(broker)
        for version in (4, 7, 12):
            await talk.ask("records below the high watermark", key, fetch(0), version=version, **alice)
        by_id = fetch(0)
        by_id["topics"] = [{"topic_id": topic_view("x").id, "partitions": by_id["topics"][0]["partitions"]}]
        await talk.ask("a topic by id", key, by_id, **alice)
        unknown = fetch(0)
        unknown["topics"] = [
            {"topic_id": topic_view("x", number=99).id, "partitions": unknown["topics"][0]["partitions"]}
        ]
        await talk.ask("an unknown topic id", key, unknown, **alice)
        await talk.ask("the high watermark", key, fetch(2), version=12, **alice)
        await talk.ask("above the log's end", key, fetch(9), version=12, **alice)
        await talk.ask("an unknown topic", key, fetch(0, topic="nowhere"), version=12, **alice)
        await talk.ask("a topic without the right to read it", key, fetch(0, topic="secret"), version=12, **alice)
        await talk.ask("a follower, by an old client", key, fetch(0, topic="elsewhere"), version=10, **alice)
        await talk.ask(
            "a follower, by a client that may read there", key, fetch(0, topic="elsewhere"), version=11, **alice
        )
        old_epoch = {"current_leader_epoch": 4}
        await talk.ask("an old leader epoch", key, fetch(0, partition=old_epoch), version=12, **alice)
        new_epoch = {"current_leader_epoch": 6}
        await talk.ask("an unknown leader epoch", key, fetch(0, partition=new_epoch), version=12, **alice)
        diverging = {"last_fetched_epoch": 5, "current_leader_epoch": 5}
        await talk.ask("a diverging log", key, fetch(7, partition=diverging), version=12, **alice)
        await talk.ask("a follower's fetch by a client", key, fetch(0, replica_id=2), version=12, **alice)
        await talk.ask("committed records", key, fetch(0, isolation_level=READ_COMMITTED), version=12, **alice)

    assert_golden(GOLDEN / "fetch.txt", talk.text)


async def test_fetch_sessions(tmp_path: Path) -> None:
    """KIP-227. Source: FetchManager. The id of a session is random, and shown as 7."""
    key = ApiKey.FETCH
    async with hosting(tmp_path, topic_view("orders", partition_view(), partition_view())) as broker:
        await broker.replicas.writes.append({ORDERS: records("a")}, acks=1, timeout_ms=0)
        talk = Conversation(broker)
        first = await talk.ask("a full request", key, fetch(0, 0, session_epoch=0), version=12)
        assert first is not None
        session = {"session_id": first["session_id"]}
        await talk.ask("an incremental request", key, fetch(1, **session, session_epoch=1), version=12)
        await talk.ask("no news", key, fetch(**session, session_epoch=2), version=12)
        await broker.replicas.writes.append({TopicPartition("orders", 1): records("b")}, acks=1, timeout_ms=0)
        await talk.ask("records of the other partition", key, fetch(**session, session_epoch=3), version=12)
        forgotten = [{"topic": "orders", "partitions": [1]}]
        await talk.ask(
            "a partition less", key, fetch(**session, session_epoch=4, forgotten_topics_data=forgotten), version=12
        )
        await talk.ask("a wrong epoch", key, fetch(**session, session_epoch=9), version=12)
        await talk.ask("an unknown session", key, fetch(session_id=1, session_epoch=9), version=12)
        await talk.ask("the end of the session", key, fetch(1, **session, session_epoch=-1), version=12)

    text = talk.text.replace(str(first["session_id"]), "7")
    assert_golden(GOLDEN / "fetch_sessions.txt", text)


async def test_aborted_transactions(tmp_path: Path) -> None:
    """KIP-98: a consumer of committed records gets the aborted transactions, and reads up to the last stable offset."""
    data = records("aborted", producer_id=4, producer_epoch=0, base_sequence=0, is_transactional=True)
    opened = records("open", producer_id=5, producer_epoch=0, base_sequence=0, is_transactional=True)
    abort = encode_batch(
        [Record(0, NOW_MS, struct.pack(">hh", 0, 0), struct.pack(">hi", 0, 0))],
        producer_id=4,
        producer_epoch=0,
        is_transactional=True,
        is_control=True,
    )
    async with hosting(tmp_path) as broker:
        await broker.replicas.writes.append({ORDERS: data}, acks=1, timeout_ms=0)
        await broker.replicas.writes.append({ORDERS: abort}, acks=1, timeout_ms=0, origin=Origin.COORDINATOR)
        await broker.replicas.writes.append({ORDERS: opened}, acks=1, timeout_ms=0)
        talk = Conversation(broker)
        committed = fetch(0, isolation_level=READ_COMMITTED)
        await talk.ask("a consumer of committed records", ApiKey.FETCH, committed, version=12)
        await talk.ask("a consumer of all records", ApiKey.FETCH, fetch(0), version=12)
        offsets = {"topics": [{"name": "orders", "partitions": [{"partition_index": 0, "timestamp": -1}]}]}
        await talk.ask(
            "the end of committed records", ApiKey.LIST_OFFSETS, {**offsets, "replica_id": -1, "isolation_level": 1}
        )
        await talk.ask("the end of all records", ApiKey.LIST_OFFSETS, {**offsets, "replica_id": -1})
        producers = {"topics": [{"name": "orders", "partition_indexes": [0]}]}
        await talk.ask("the producers", ApiKey.DESCRIBE_PRODUCERS, producers)

    assert_golden(GOLDEN / "transactions.txt", talk.text)


async def test_list_offsets(tmp_path: Path) -> None:
    """Source: ReplicaManager.fetchOffset, UnifiedLog.fetchOffsetByTimestamp."""
    key = ApiKey.LIST_OFFSETS

    def offsets(*timestamps_ms: int, topic: str = "orders", replica_id: int = -1, epoch: int = -1) -> Body:
        parts = [
            {"partition_index": 0, "timestamp": timestamp, "current_leader_epoch": epoch} for timestamp in timestamps_ms
        ]
        return {"replica_id": replica_id, "topics": [{"name": topic, "partitions": parts}]}

    guard = guard_of(*((Operation.DESCRIBE, TOPIC, name) for name in ("orders", "elsewhere", "nowhere")))
    alice = {"principal": ALICE}
    async with hosting(tmp_path, topic_view("orders", REPLICATED), ELSEWHERE, guard=guard) as broker:
        talk = Conversation(broker)
        for batch in (
            records("a", "b"),
            records("c", timestamp_ms=NOW_MS - 50),
            records("d", timestamp_ms=NOW_MS + 50),
        ):
            await broker.replicas.writes.append({ORDERS: batch}, acks=1, timeout_ms=0)
        await follower_fetches(broker, 3)
        for version in (1, 4, 11):
            await talk.ask("the end", key, offsets(-1), version=version, **alice)
        await talk.ask("the start", key, offsets(-2), **alice)
        await talk.ask("the largest timestamp, above the high watermark", key, offsets(-3), **alice)
        await talk.ask("the largest timestamp, by a replica", key, offsets(-3, replica_id=-2), **alice)
        await talk.ask("the start of the local log", key, offsets(-4), **alice)
        await talk.ask("the end of tiered storage", key, offsets(-5), **alice)
        await talk.ask("the first record that is not in tiered storage", key, offsets(-6), **alice)
        await talk.ask("a timestamp", key, offsets(NOW_MS + 1), **alice)
        await talk.ask("a timestamp above the high watermark", key, offsets(NOW_MS + 40), **alice)
        await talk.ask("a timestamp after the last record", key, offsets(NOW_MS + 60), **alice)
        await talk.ask("the largest timestamp, by an old client", key, offsets(-3), version=6, **alice)
        await talk.ask("an unknown special timestamp", key, offsets(-7), **alice)
        await talk.ask("a partition twice", key, offsets(-1, -2), **alice)
        await talk.ask("an old leader epoch", key, offsets(-1, epoch=4), **alice)
        await talk.ask("another leader", key, offsets(-1, topic="elsewhere"), **alice)
        await talk.ask("an unknown topic", key, offsets(-1, topic="nowhere"), **alice)
        await talk.ask("a topic without the right to describe it", key, offsets(-1, topic="secret"), **alice)
        await take_role(broker, ORDERS, replace(REPLICATED, leader=2, leader_epoch=6, partition_epoch=1))
        await take_role(broker, ORDERS, replace(REPLICATED, leader_epoch=7, partition_epoch=2))
        await talk.ask("a leader that does not know the high watermark yet", key, offsets(-1), **alice)
        await talk.ask("the same, by an old client", key, offsets(-1), version=4, **alice)

    assert_golden(GOLDEN / "list_offsets.txt", talk.text)


async def test_offset_for_leader_epoch(tmp_path: Path) -> None:
    """Source: Partition.lastOffsetForLeaderEpoch."""

    def epochs(epoch: int, *, topic: str = "orders", current: int = -1) -> Body:
        parts = [{"partition": 0, "leader_epoch": epoch, "current_leader_epoch": current}]
        return {"replica_id": -1, "topics": [{"topic": topic, "partitions": parts}]}

    key = ApiKey.OFFSET_FOR_LEADER_EPOCH
    guard = guard_of(*((Operation.DESCRIBE, TOPIC, name) for name in ("orders", "elsewhere", "nowhere")))
    alice = {"principal": ALICE}
    async with hosting(tmp_path, topic_view("orders", REPLICATED), ELSEWHERE, guard=guard) as broker:
        talk = Conversation(broker)
        await broker.replicas.writes.append({ORDERS: records("a", "b")}, acks=1, timeout_ms=0)
        await take_role(broker, ORDERS, replace(REPLICATED, leader_epoch=8, partition_epoch=1))
        await broker.replicas.writes.append({ORDERS: records("c")}, acks=1, timeout_ms=0)
        for version in (2, 4):
            await talk.ask("a former epoch", key, epochs(5), version=version, **alice)
        await talk.ask("an epoch without records", key, epochs(6), **alice)
        await talk.ask("the current epoch", key, epochs(8), **alice)
        await talk.ask("a later epoch", key, epochs(9), **alice)
        await talk.ask("an old leader epoch", key, epochs(5, current=7), **alice)
        await talk.ask("an unknown leader epoch", key, epochs(5, current=9), **alice)
        await talk.ask("another leader", key, epochs(5, topic="elsewhere"), **alice)
        await talk.ask("an unknown topic", key, epochs(5, topic="nowhere"), **alice)
        await talk.ask("a topic without the right to describe it", key, epochs(5, topic="secret"), **alice)

    assert_golden(GOLDEN / "offset_for_leader_epoch.txt", talk.text)


async def test_delete_records(tmp_path: Path) -> None:
    """Source: KafkaApis.handleDeleteRecordsRequest, ReplicaManager.deleteRecords."""

    def deletion(offset: int, *, topic: str = "orders") -> Body:
        parts = [{"partition_index": 0, "offset": offset}]
        return {"timeout_ms": 0, "topics": [{"name": topic, "partitions": parts}]}

    key = ApiKey.DELETE_RECORDS
    names = ("orders", "elsewhere", "nowhere", "__consumer_offsets")
    guard = guard_of(*((Operation.DELETE, TOPIC, name) for name in names), (Operation.READ, TOPIC, "orders"))
    alice = {"principal": ALICE}
    async with hosting(tmp_path, topic_view("orders"), ELSEWHERE, OFFSETS, guard=guard) as broker:
        talk = Conversation(broker)
        await broker.replicas.writes.append({ORDERS: records("a", "b", "c")}, acks=1, timeout_ms=0)
        await talk.ask("up to an offset", key, deletion(1), **alice)
        await talk.ask("up to an offset that is deleted", key, deletion(0), version=0, **alice)
        await talk.ask("up to the high watermark", key, deletion(-1), **alice)
        await talk.ask("above the high watermark", key, deletion(9), **alice)
        await talk.ask("another leader", key, deletion(0, topic="elsewhere"), **alice)
        await talk.ask("an internal topic", key, deletion(0, topic="__consumer_offsets"), **alice)
        await talk.ask("an unknown topic", key, deletion(0, topic="nowhere"), **alice)
        await talk.ask("a topic without the right to delete it", key, deletion(0, topic="secret"), **alice)
        await talk.ask("a fetch of deleted records", ApiKey.FETCH, fetch(0), version=12, **alice)

    assert_golden(GOLDEN / "delete_records.txt", talk.text)


async def test_init_producer_id(tmp_path: Path) -> None:
    """Source: KafkaApis.handleInitProducerIdRequest."""
    key = ApiKey.INIT_PRODUCER_ID
    guard = guard_of(
        *((Operation.WRITE, TRANSACTION, name) for name in ("mine", "")),
        (Operation.IDEMPOTENT_WRITE, CLUSTER, CLUSTER_NAME),
    )
    alice, bob = {"principal": ALICE}, {"principal": "User:bob"}
    async with hosting(tmp_path, guard=guard) as broker:
        talk = Conversation(broker)
        await talk.ask("an idempotent producer", key, {"transactional_id": None}, version=0, **alice)
        await talk.ask("another one", key, {"transactional_id": None}, **alice)
        await talk.ask(
            "an idempotent producer that starts again",
            key,
            {"transactional_id": None, "producer_id": 0, "producer_epoch": 0},
            **alice,
        )
        await talk.ask("a producer id without an epoch", key, {"transactional_id": None, "producer_id": 0}, **alice)
        await talk.ask("a transactional producer", key, {"transactional_id": "mine"}, **alice)
        await talk.ask("an empty transactional id", key, {"transactional_id": ""}, **alice)
        await talk.ask("a transactional id of another", key, {"transactional_id": "other"}, **alice)
        await talk.ask("a caller without rights", key, {"transactional_id": None}, **bob)

    assert_golden(GOLDEN / "init_producer_id.txt", talk.text)


async def test_describe_producers(tmp_path: Path) -> None:
    """Source: KafkaApis.handleDescribeProducersRequest."""

    def producers(topic: str) -> Body:
        return {"topics": [{"name": topic, "partition_indexes": [0]}]}

    key = ApiKey.DESCRIBE_PRODUCERS
    guard = guard_of(*((Operation.READ, TOPIC, name) for name in ("orders", "elsewhere", "nowhere")))
    alice = {"principal": ALICE}
    async with hosting(tmp_path, topic_view("orders"), ELSEWHERE, guard=guard) as broker:
        talk = Conversation(broker)
        batch = records("a", producer_id=4, producer_epoch=1, base_sequence=0)
        await broker.replicas.writes.append({ORDERS: batch}, acks=1, timeout_ms=0)
        await talk.ask("a partition", key, producers("orders"), **alice)
        await talk.ask("a follower", key, producers("elsewhere"), **alice)
        await talk.ask("an unknown topic", key, producers("nowhere"), **alice)
        await talk.ask("an invalid name", key, producers("a/b"), **alice)
        await talk.ask("a topic without the right to read it", key, producers("secret"), **alice)

    assert_golden(GOLDEN / "describe_producers.txt", talk.text)


async def test_every_version_of_an_api_is_answered(tmp_path: Path) -> None:
    """Each field of a response is one that its version has."""
    batch = records("a")
    requests: dict[ApiKey, Body] = {
        ApiKey.LIST_OFFSETS: {
            "replica_id": -1,
            "topics": [{"name": "orders", "partitions": [{"partition_index": 0, "timestamp": -2}]}],
        },
        ApiKey.OFFSET_FOR_LEADER_EPOCH: {
            "topics": [{"topic": "orders", "partitions": [{"partition": 0, "leader_epoch": 0}]}]
        },
        ApiKey.DELETE_RECORDS: {
            "timeout_ms": 0,
            "topics": [{"name": "orders", "partitions": [{"partition_index": 0, "offset": 0}]}],
        },
        ApiKey.INIT_PRODUCER_ID: {"transactional_id": None, "transaction_timeout_ms": 0},
    }
    async with hosting(tmp_path) as broker:
        for version in range(3, 14):
            by_id = version >= 13
            assert await call(
                broker, ApiKey.PRODUCE, produce_by_id(1, batch) if by_id else produce("orders", batch), version=version
            )
        for version in range(4, 19):
            body = fetch(0)
            if version >= 13:
                body["topics"] = [{"topic_id": topic_view("x").id, "partitions": body["topics"][0]["partitions"]}]
            assert await call(broker, ApiKey.FETCH, body, version=version)
        for key, (lowest, highest) in {
            ApiKey.LIST_OFFSETS: (1, 11),
            ApiKey.OFFSET_FOR_LEADER_EPOCH: (2, 4),
            ApiKey.DELETE_RECORDS: (0, 2),
            ApiKey.INIT_PRODUCER_ID: (0, 6),
        }.items():
            for version in range(lowest, highest + 1):
                assert await call(broker, key, requests[key], version=version)

"""Storage of samples: what is read from the topic or the files is what was written, and failures have a reason.

Sources: docs/analytics.md (a compact topic, keyed, with a schema id, retention set; Parquet elsewhere), the columns of
`model.sample_rows`, Kafka's BuiltInPartitioner.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kafka.partitioner.default import murmur2 as murmur2_of_kafka_python

from balance_analytics.model.sample_messages import decode, encode
from balance_analytics.model.samples import Samples
from balance_analytics.sampling import topic_writer
from balance_analytics.sampling.parquet_writer import ParquetWriter
from balance_analytics.sampling.partitioner import murmur2, partition_of
from balance_analytics.sampling.samples_topic import SamplesTopic
from balance_analytics.sampling.sink import WriteFailed
from balance_analytics.sampling.topic_writer import TopicWriter
from kafka_wire import ApiKey, Body, ErrorCode
from kafka_wire.net.client import NodeSettings
from kafka_wire.net.cluster import ClusterClient
from kafka_wire.records import decode_batches
from tests.balance_analytics.sampling.makers import row, samples
from tests.balance_analytics.sampling.simulated_brokers import PartitionState, SimulatedCluster, running

ROUND_MS = 1_769_904_000_000  # 2026-02-01T00:00:00Z
TOPIC = SamplesTopic(name="samples", partitions=3, retention_ms=86_400_000)
TIMEOUT_S = 30.0


@contextlib.asynccontextmanager
async def writing(
    broker_ids: tuple[int, ...] = (1, 2, 3), **more: Any
) -> AsyncIterator[tuple[SimulatedCluster, TopicWriter]]:
    """A simulated cluster, and a writer to its samples topic."""
    async with running(SimulatedCluster({}, **more), broker_ids) as cluster:
        client = ClusterClient(cluster.bootstrap(), NodeSettings(client_id="tests"))
        try:
            yield cluster, TopicWriter(client, TOPIC)
        finally:
            await client.close()


def deadline(within_s: float = TIMEOUT_S) -> float:
    """The loop time in `within_s` seconds."""
    return asyncio.get_running_loop().time() + within_s


def some_samples(topics: int = 40) -> Samples:
    """A sample of some topics with two partitions each."""
    return samples({f"topic-{at}": [row(0), row(1, end_offset=None)] for at in range(topics)}, round_ms=ROUND_MS)


def read_back(cluster: SimulatedCluster) -> list[tuple[int, bytes, bytes, tuple[tuple[str, bytes | None], ...], int]]:
    """Partition, key, value, headers and timestamp of each message that was written."""
    return [
        (partition, record.key or b"", record.value or b"", record.headers, record.timestamp_ms)
        for topic, partition, data in cluster.produced
        if topic == TOPIC.name
        for batch in decode_batches(data)
        for record in batch.records
    ]


def files(folder: Path) -> list[Path]:
    """All files below a folder."""
    return [path for path in folder.rglob("*") if path.is_file()]


@pytest.mark.slow
async def test_the_topic_contains_every_message_of_a_sample() -> None:
    """In the partition of its key, with the schema's id and the round as timestamp, compressed with gzip."""
    sample = some_samples()
    async with writing() as (cluster, writer):
        await writer.open(deadline=deadline())
        written = await writer.write(sample, deadline=deadline())
        found = read_back(cluster)

    assert {(key, value) for _, key, value, _, _ in found} == {
        (message.key, message.value) for message in encode(sample)
    }
    assert (written.pieces, written.size_bytes) == (len(sample.topics), sum(len(data) for *_, data in cluster.produced))
    assert {(headers, at_ms) for *_, headers, at_ms in found} == {((("schema", b"1"),), ROUND_MS)}
    assert all(partition == partition_of(key, TOPIC.partitions) for partition, key, *_ in found)
    assert {batch.header.compression for *_, data in cluster.produced for batch in decode_batches(data)} == {1}
    assert decode(found[0][1], found[0][2]).start_offset.tolist() == [10, 10]


@pytest.mark.slow
@pytest.mark.parametrize(("brokers", "factor", "in_sync"), [((1,), 1, "1"), ((1, 2), 2, "1"), ((1, 2, 3, 4), 3, "2")])
async def test_the_topic_is_created_with_its_settings(brokers: tuple[int, ...], factor: int, in_sync: str) -> None:
    """Partitions and retention as configured, replication factor 3 or the number of brokers, never compacted."""
    async with writing(brokers) as (cluster, writer):
        await writer.open(deadline=deadline())

    assert [len(sample.replicas) for sample in cluster.topics["samples"]] == [factor] * 3
    expected = {"cleanup.policy": "delete", "retention.ms": "86400000", "min.insync.replicas": in_sync}
    assert expected.items() <= cluster.configs["samples"].items()


async def test_an_existing_topic_is_used_unchanged() -> None:
    """It may have been created with another number of partitions."""
    async with writing() as (cluster, writer):
        cluster.topics["samples"] = [PartitionState(2, [2])]
        await writer.open(deadline=deadline())
        await writer.write(some_samples(), deadline=deadline())

    assert ApiKey.CREATE_TOPICS not in {key for _, key, _ in cluster.requests}
    assert {partition for _, partition, _ in cluster.produced} == {0}


async def test_a_compacted_topic_is_rejected() -> None:
    """It would keep only the last sample of each topic."""
    async with writing() as (cluster, writer):
        cluster.topics["samples"] = [PartitionState(2, [2])]
        cluster.configs["samples"] = {"cleanup.policy": "compact"}
        with pytest.raises(WriteFailed, match=r"cleanup\.policy=compact: compaction would keep only the last sample"):
            await writer.open(deadline=deadline())


async def test_a_failure_to_create_the_topic_has_the_error_and_a_remedy() -> None:
    """The error message of the broker, and what to do."""
    refused = {"name": "samples", "error_code": ErrorCode.TOPIC_AUTHORIZATION_FAILED, "error_message": "no such right"}
    async with writing() as (cluster, writer):
        cluster.instead[1] = lambda key, _, __: {"topics": [refused]} if key is ApiKey.CREATE_TOPICS else None
        with pytest.raises(WriteFailed, match=r"TOPIC_AUTHORIZATION_FAILED: no such right\): create it, grant"):
            await writer.open(deadline=deadline())


async def test_a_batch_is_sent_again_to_the_new_leader(monkeypatch: pytest.MonkeyPatch) -> None:
    """After NOT_LEADER_OR_FOLLOWER."""
    monkeypatch.setattr(topic_writer, "RETRY_DELAY_S", 0.01)
    async with writing() as (cluster, writer):
        await writer.open(deadline=deadline())
        for sample in cluster.topics["samples"]:
            sample.leader = 3
        written = await writer.write(some_samples(), deadline=deadline())

    assert (written.pieces, len(read_back(cluster))) == (40, 40)


@pytest.mark.slow
async def test_a_non_retriable_error_fails_without_retry() -> None:
    """With the broker's error."""
    async with writing() as (cluster, writer):
        await writer.open(deadline=deadline())

        def refuse(key: ApiKey, _version: int, body: Body) -> Body | None:
            if key is not ApiKey.PRODUCE:
                return None
            (topic,) = body["topic_data"]
            parts = [{"index": 0, "error_code": ErrorCode.MESSAGE_TOO_LARGE, "base_offset": -1}]
            return {"responses": [{"name": topic["name"], "partition_responses": parts}]}

        cluster.instead[1] = refuse
        with pytest.raises(WriteFailed, match="rejected samples for samples: MESSAGE_TOO_LARGE"):
            await writer.write(some_samples(), deadline=deadline())


async def test_a_write_fails_at_its_deadline(monkeypatch: pytest.MonkeyPatch) -> None:
    """Unreachable brokers do not delay the next sample."""
    monkeypatch.setattr(topic_writer, "RETRY_DELAY_S", 0.01)
    async with writing() as (cluster, writer):
        await writer.open(deadline=deadline())
        for broker_id in (1, 2, 3):
            await cluster.stop(broker_id)
        with pytest.raises(WriteFailed, match=r"no broker returned|cannot be reached"):
            await writer.write(some_samples(), deadline=deadline(1.0))


@settings(deadline=None)
@given(st.lists(st.integers(1, 400), max_size=30), st.integers(1, 4))
def test_batches_contain_every_message_and_are_bounded(sizes: list[int], partitions: int) -> None:
    """Each batch is for one partition."""
    sample = samples({f"t{at}": [row(number) for number in range(size)] for at, size in enumerate(sizes)})
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(topic_writer, "BATCH_BYTES", 60_000)
        batches = list(topic_writer._batches(sample, partitions))

    assert sorted(message for _, batch in batches for message in batch) == sorted(encode(sample))
    for partition, batch in batches:
        assert {partition_of(message.key, partitions) for message in batch} == {partition}
        assert len(batch) == 1 or sum(len(message.key) + len(message.value) for message in batch) <= 60_000


@given(st.binary(max_size=40))
def test_the_hash_of_a_key_is_that_of_kafkas_producers(key: bytes) -> None:
    """kafka-python is the reference; the sign does not matter."""
    assert murmur2(key) == murmur2_of_kafka_python(key) % 2**32


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"name": "no spaces"}, "not a valid topic name"),
        ({"name": ""}, "not a valid topic name"),
        ({"name": "café"}, "not a valid topic name"),
        ({"partitions": 0}, "0 partitions"),
        ({"partitions": 5_000}, "1 to 1000"),
        ({"retention_ms": 0}, "must be positive"),
    ],
)
def test_invalid_settings_of_the_topic_are_rejected(values: dict[str, Any], message: str) -> None:
    """When options are parsed, not at the first write."""
    with pytest.raises(ValueError, match=message):
        SamplesTopic(**values)


async def test_a_file_contains_every_row_of_a_sample(tmp_path: Path) -> None:
    """One row per partition, null for unknown values, in the folder of the day."""
    found_rows = [row(0, size_bytes=[1, None, 3]), row(1, end_offset=None, replicas=[2], isr=[]), row(2, replicas=[])]
    sample = samples(
        {"orders": found_rows, "payments": [row(5, leader=-1, committed_offset_sum=None)]}, round_ms=ROUND_MS
    )
    writer = ParquetWriter(tmp_path / "samples")
    await writer.open(deadline=deadline())
    written = await writer.write(sample, deadline=deadline())

    (path,) = files(tmp_path / "samples" / "date=2026-02-01")
    found = pq.read_table(path, partitioning=None).to_pylist()
    assert (written.pieces, written.size_bytes) == (1, path.stat().st_size)
    assert [row["topic"] for row in found] == ["orders"] * 3 + ["payments"]
    assert {(row["cluster_id"], row["round_ms"], row["sampled_at_ms"]) for row in found} == {
        ("cluster", ROUND_MS, ROUND_MS + 5)
    }
    for one, expected in zip(found, [*found_rows, row(5, leader=-1, committed_offset_sum=None)], strict=True):
        assert {name: one[name] for name in expected} == expected


async def test_a_repeated_round_replaces_the_earlier_file(tmp_path: Path) -> None:
    """So no round is counted twice."""
    writer = ParquetWriter(tmp_path)
    for count in (3, 2):
        await writer.write(some_samples(count), deadline=deadline())

    (path,) = files(tmp_path)
    assert pq.read_table(path, partitioning=None).num_rows == 4


async def test_a_failed_write_leaves_no_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """If the disk is full, readers do not find a partial file."""

    def full(_table: object, where: Path, **_: object) -> None:
        Path(where).write_bytes(b"half")
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(pq, "write_table", full)
    with pytest.raises(WriteFailed, match="No space left on device"):
        await ParquetWriter(tmp_path).write(some_samples(), deadline=deadline())

    assert files(tmp_path) == []


async def test_a_folder_that_cannot_be_created_fails_when_it_is_opened(tmp_path: Path) -> None:
    """With the reason."""
    (tmp_path / "file").write_text("")
    with pytest.raises(WriteFailed, match="cannot be created"):
        await ParquetWriter(tmp_path / "file" / "samples").open(deadline=deadline())


async def test_an_empty_sample_has_no_file(tmp_path: Path) -> None:
    """And no row."""
    written = await ParquetWriter(tmp_path).write(samples({}), deadline=deadline())

    assert (written.pieces, files(tmp_path)) == (0, [])

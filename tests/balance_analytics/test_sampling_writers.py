"""Where looks are kept: what is read back from topic or file is what was seen, and what cannot be kept is said.

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
from kafka.partitioner.default import murmur2 as theirs

from balance_analytics.model.sample_messages import decode, encode
from balance_analytics.model.samples import Samples
from balance_analytics.sampling import topic_writer
from balance_analytics.sampling.cluster_link import ClusterLink
from balance_analytics.sampling.parquet_writer import ParquetWriter
from balance_analytics.sampling.partitioner import murmur2, partition_of
from balance_analytics.sampling.samples_topic import SamplesTopic
from balance_analytics.sampling.sink import WriteFailed
from balance_analytics.sampling.topic_writer import TopicWriter
from kafka_wire.api import ApiKey
from kafka_wire.codec import Body
from kafka_wire.errors import ErrorCode
from kafka_wire.net.client import NodeSettings
from kafka_wire.records import decode_batches
from tests.balance_analytics.sampling_brokers import PartitionState, StandInCluster, running
from tests.balance_analytics.sampling_makers import row, samples

ROUND_MS = 1_769_904_000_000  # 2026-02-01T00:00:00Z
TOPIC = SamplesTopic(name="samples", partitions=3, retention_ms=86_400_000)
PATIENCE_S = 30.0


@contextlib.asynccontextmanager
async def writing(
    broker_ids: tuple[int, ...] = (1, 2, 3), **more: Any
) -> AsyncIterator[tuple[StandInCluster, TopicWriter]]:
    """A cluster, and a writer into it."""
    async with running(StandInCluster({}, **more), broker_ids) as cluster:
        link = ClusterLink(cluster.bootstrap(), NodeSettings(client_id="tests"))
        try:
            yield cluster, TopicWriter(link, TOPIC)
        finally:
            await link.close()


def deadline(within_s: float = PATIENCE_S) -> float:
    """Loop time."""
    return asyncio.get_running_loop().time() + within_s


def a_look(topics: int = 40) -> Samples:
    """Some topics."""
    return samples({f"topic-{at}": [row(0), row(1, end_offset=None)] for at in range(topics)}, round_ms=ROUND_MS)


def read_back(cluster: StandInCluster) -> list[tuple[int, bytes, bytes, tuple[tuple[str, bytes | None], ...], int]]:
    """Partition, key, value, headers and time of each message that was written."""
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


async def test_what_is_in_the_topic_is_what_was_seen() -> None:
    """Every message of the look, keyed, in its key's partition, with the schema's id and the round's time, gzipped."""
    look = a_look()
    async with writing() as (cluster, writer):
        await writer.open(deadline=deadline())
        written = await writer.write(look, deadline=deadline())
        found = read_back(cluster)

    assert {(one.key, one.value) for one in encode(look)} == {(key, value) for _, key, value, _, _ in found}
    assert (len(look.topics), sum(len(data) for _, _, data in cluster.produced)) == (written.pieces, written.size_bytes)
    assert {(headers, at_ms) for *_, headers, at_ms in found} == {((("schema", b"1"),), ROUND_MS)}
    assert all(partition == partition_of(key, TOPIC.partitions) for partition, key, *_ in found)
    assert {batch.header.compression for *_, data in cluster.produced for batch in decode_batches(data)} == {1}
    assert decode(found[0][1], found[0][2]).start_offset.tolist() == [10, 10]


@pytest.mark.parametrize(("brokers", "factor", "in_sync"), [((1,), 1, "1"), ((1, 2), 2, "1"), ((1, 2, 3, 4), 3, "2")])
async def test_the_topic_is_created_as_it_should_be(brokers: tuple[int, ...], factor: int, in_sync: str) -> None:
    """Stated partitions and retention, RF 3 or as many as there are brokers, never compacted."""
    async with writing(brokers) as (cluster, writer):
        await writer.open(deadline=deadline())

    assert [len(one.replicas) for one in cluster.topics["samples"]] == [factor] * 3
    expected = {"cleanup.policy": "delete", "retention.ms": "86400000", "min.insync.replicas": in_sync}
    assert expected.items() <= cluster.configs["samples"].items()


async def test_a_topic_that_is_there_is_taken_as_it_is() -> None:
    """Somebody else may have made it, with other partitions."""
    async with writing() as (cluster, writer):
        cluster.topics["samples"] = [PartitionState(2, [2])]
        await writer.open(deadline=deadline())
        await writer.write(a_look(), deadline=deadline())

    assert ApiKey.CREATE_TOPICS not in {key for _, key, _ in cluster.asked}
    assert {partition for _, partition, _ in cluster.produced} == {0}


async def test_a_compacted_topic_is_refused() -> None:
    """It would keep the last look of each topic alone."""
    async with writing() as (cluster, writer):
        cluster.topics["samples"] = [PartitionState(2, [2])]
        cluster.configs["samples"] = {"cleanup.policy": "compact"}
        with pytest.raises(WriteFailed, match=r"cleanup\.policy=compact: compaction would leave the last look"):
            await writer.open(deadline=deadline())


async def test_a_topic_that_cannot_be_created_is_said_in_words() -> None:
    """What the cluster said, and what can be done."""
    refused = {"name": "samples", "error_code": ErrorCode.TOPIC_AUTHORIZATION_FAILED, "error_message": "no such right"}
    async with writing() as (cluster, writer):
        cluster.instead[1] = lambda key, _, __: {"topics": [refused]} if key is ApiKey.CREATE_TOPICS else None
        with pytest.raises(WriteFailed, match=r"TOPIC_AUTHORIZATION_FAILED: no such right\): create it, allow"):
            await writer.open(deadline=deadline())


async def test_a_leader_that_moved_is_found_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """The batch goes to the new one."""
    monkeypatch.setattr(topic_writer, "RETRY_DELAY_S", 0.01)
    async with writing() as (cluster, writer):
        await writer.open(deadline=deadline())
        for one in cluster.topics["samples"]:
            one.leader = 3
        written = await writer.write(a_look(), deadline=deadline())

    assert 40 == written.pieces == len(read_back(cluster))


async def test_what_is_not_retriable_fails_at_once() -> None:
    """With the broker's word for it."""
    async with writing() as (cluster, writer):
        await writer.open(deadline=deadline())

        def refuse(key: ApiKey, _version: int, body: Body) -> Body | None:
            if key is not ApiKey.PRODUCE:
                return None
            (topic,) = body["topic_data"]
            parts = [{"index": 0, "error_code": ErrorCode.MESSAGE_TOO_LARGE, "base_offset": -1}]
            return {"responses": [{"name": topic["name"], "partition_responses": parts}]}

        cluster.instead[1] = refuse
        with pytest.raises(WriteFailed, match="took no samples for samples: MESSAGE_TOO_LARGE"):
            await writer.write(a_look(), deadline=deadline())


async def test_a_write_ends_with_its_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Brokers that are away do not hold the next look up."""
    monkeypatch.setattr(topic_writer, "RETRY_DELAY_S", 0.01)
    async with writing() as (cluster, writer):
        await writer.open(deadline=deadline())
        for broker_id in (1, 2, 3):
            await cluster.stop(broker_id)
        with pytest.raises(WriteFailed, match=r"no broker tells|cannot be reached"):
            await writer.write(a_look(), deadline=deadline(1.0))


@settings(deadline=None)
@given(st.lists(st.integers(1, 400), max_size=30), st.integers(1, 4))
def test_batches_hold_everything_and_are_bounded(sizes: list[int], partitions: int) -> None:
    """Each of one partition; every message in one of them, in order."""
    look = samples({f"t{at}": [row(one) for one in range(size)] for at, size in enumerate(sizes)})
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(topic_writer, "BATCH_BYTES", 60_000)
        batches = list(topic_writer._batches(look, partitions))

    assert sorted(encode(look)) == sorted(one for _, batch in batches for one in batch)
    for partition, batch in batches:
        assert {partition_of(one.key, partitions) for one in batch} == {partition}
        assert len(batch) == 1 or sum(len(one.key) + len(one.value) for one in batch) <= 60_000


@given(st.binary(max_size=40))
def test_a_key_belongs_where_kafkas_producers_put_it(key: bytes) -> None:
    """The Admin client's library has the same hash, signed or not."""
    assert murmur2(key) == theirs(key) % 2**32


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"name": "no spaces"}, "no name for a topic"),
        ({"name": ""}, "no name for a topic"),
        ({"name": "café"}, "no name for a topic"),
        ({"partitions": 0}, "0 partitions"),
        ({"partitions": 5_000}, "1 to 1000"),
        ({"retention_ms": 0}, "would keep nothing"),
    ],
)
def test_settings_that_cannot_be_are_refused(values: dict[str, Any], words: str) -> None:
    """At the start, not at the first write."""
    with pytest.raises(ValueError, match=words):
        SamplesTopic(**values)


async def test_what_is_in_the_file_is_what_was_seen(tmp_path: Path) -> None:
    """One row a partition, null for what is not known, in the day's folder."""
    found_rows = [row(0, size_bytes=[1, None, 3]), row(1, end_offset=None, replicas=[2], isr=[]), row(2, replicas=[])]
    look = samples(
        {"orders": found_rows, "payments": [row(5, leader=-1, committed_offset_sum=None)]}, round_ms=ROUND_MS
    )
    writer = ParquetWriter(tmp_path / "samples")
    await writer.open(deadline=deadline())
    written = await writer.write(look, deadline=deadline())

    (path,) = files(tmp_path / "samples" / "date=2026-02-01")
    found = pq.read_table(path, partitioning=None).to_pylist()
    assert (1, path.stat().st_size) == (written.pieces, written.size_bytes)
    assert [one["topic"] for one in found] == ["orders"] * 3 + ["payments"]
    assert {(one["cluster_id"], one["round_ms"], one["sampled_at_ms"]) for one in found} == {
        ("cluster", ROUND_MS, ROUND_MS + 5)
    }
    for one, expected in zip(found, [*found_rows, row(5, leader=-1, committed_offset_sum=None)], strict=True):
        assert {name: one[name] for name in expected} == expected


async def test_a_look_taken_again_replaces_the_one_before(tmp_path: Path) -> None:
    """No round is counted twice."""
    writer = ParquetWriter(tmp_path)
    for count in (3, 2):
        await writer.write(a_look(count), deadline=deadline())

    (path,) = files(tmp_path)
    assert pq.read_table(path, partitioning=None).num_rows == 4


async def test_a_look_that_cannot_be_written_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A full disk: no half file that a reader would stumble over."""

    def full(_table: object, where: Path, **_: object) -> None:
        Path(where).write_bytes(b"half")
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(pq, "write_table", full)
    with pytest.raises(WriteFailed, match="No space left on device"):
        await ParquetWriter(tmp_path).write(a_look(), deadline=deadline())

    assert files(tmp_path) == []


async def test_a_folder_that_cannot_be_made_is_said(tmp_path: Path) -> None:
    """At the start."""
    (tmp_path / "file").write_text("")
    with pytest.raises(WriteFailed, match="cannot be made"):
        await ParquetWriter(tmp_path / "file" / "samples").open(deadline=deadline())


async def test_an_empty_look_is_no_file(tmp_path: Path) -> None:
    """Nothing to keep."""
    written = await ParquetWriter(tmp_path).write(samples({}), deadline=deadline())

    assert (written.pieces, files(tmp_path)) == (0, [])

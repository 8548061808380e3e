"""Counts of message keys: the keys of a topic's last messages are counted, within limits, and stored only as hashes.

Sources: docs/analytics.md (a sampled key histogram of chosen topics), Misra and Gries (1982). The sketch's own bound is
tested with it (study.key_skew); here counts are compared with exact ones.
"""

import asyncio
import contextlib
import json
from collections import Counter
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from balance_analytics.sampling import key_counts
from balance_analytics.sampling.key_counts import KeysError, SampledKeys, key_name, sample_keys, write_sketches
from kafka_wire import ApiKey, Body, ErrorCode
from kafka_wire.compression import Compression
from kafka_wire.net.client import NodeSettings
from kafka_wire.net.cluster import ClusterClient
from kafka_wire.records import Record, encode_batch
from tests.balance_analytics.sampling.simulated_brokers import PartitionState, SimulatedCluster, running

BATCH = 10
"""Messages of a batch."""


class Logs:
    """Contents of partitions, as keys by offset."""

    def __init__(self, partitions: list[list[bytes | None]]) -> None:
        self.partitions = partitions
        self.compression = Compression.GZIP
        self.fetched: list[int] = []

    def answer(self, key: ApiKey, _version: int, body: Body) -> Body | None:
        """Return the response to a Fetch: the batch that contains the offset, as a broker does. None for other requests."""
        if key is not ApiKey.FETCH:
            return None
        (requested,) = body["topics"][0]["partitions"]
        found = self.partitions[requested["partition"]]
        begin = requested["fetch_offset"] // BATCH * BATCH
        records = [Record(begin + at, 0, key, b"value") for at, key in enumerate(found[begin : begin + BATCH])]
        self.fetched.append(begin)
        data = encode_batch(records, compression=self.compression)
        part = {"partition_index": requested["partition"], "high_watermark": len(found), "records": data}
        return {"responses": [{"topic": body["topics"][0]["topic"], "partitions": [part]}]}


@contextlib.asynccontextmanager
async def holding(
    logs: Logs, leaders: tuple[int, ...] = (1, 2)
) -> AsyncIterator[tuple[SimulatedCluster, ClusterClient]]:
    """A simulated cluster whose topic `orders` has these logs."""
    states = [PartitionState(leaders[at], [1, 2], 0, len(log)) for at, log in enumerate(logs.partitions)]
    async with running(SimulatedCluster({"orders": states}), (1, 2)) as cluster:
        cluster.instead = {1: logs.answer, 2: logs.answer}
        client = ClusterClient(cluster.bootstrap(), NodeSettings(client_id="tests"))
        try:
            yield cluster, client
        finally:
            await client.close()


async def sampled(client: ClusterClient, messages: int, *topics: str) -> SampledKeys:
    """Count keys, with a timeout far longer than it takes."""
    deadline = asyncio.get_running_loop().time() + 30
    return await sample_keys(client, topics or ("orders",), messages, deadline=deadline)


async def test_the_messages_read_of_each_partition_are_in_proportion_to_its_size() -> None:
    """The first partition has three quarters of the topic, so three quarters of the messages are read there."""
    logs = Logs([[b"a", b"b"] * 150, [b"c"] * 100])
    async with holding(logs) as (_, client):
        found = await sampled(client, 100)

    expected = Counter(map(key_name, ((logs.partitions[0][-75:]) + logs.partitions[1][-25:])))
    assert found.sketches["orders"].counts == expected
    assert (found.sketches["orders"].messages, found.sketches["orders"].error, found.not_counted) == (100, 0, ())


async def test_a_topic_with_fewer_messages_is_counted_completely() -> None:
    """Messages without a key are not counted."""
    logs = Logs([[b"a", None, b"a"], []])
    async with holding(logs) as (_, client):
        found = await sampled(client, 1_000)

    assert found.sketches["orders"].counts == {key_name(b"a"): 2}


async def test_the_number_of_requests_per_partition_is_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    """With very large messages fewer are counted."""
    monkeypatch.setattr(key_counts, "FETCHES_PER_PARTITION", 3)
    logs = Logs([[b"a"] * 1_000, []])
    async with holding(logs) as (_, client):
        found = await sampled(client, 1_000)

    assert logs.fetched == [0, 10, 20]
    assert found.sketches["orders"].messages == 30


async def test_batches_in_an_unsupported_codec_are_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    """Their keys are not counted."""
    monkeypatch.setattr("kafka_wire.compression._library", lambda: None)
    logs = Logs([[b"a"] * 20, [b"b"] * 20])
    usual = logs.answer

    def zstd(key: ApiKey, version: int, body: Body) -> Body | None:
        answer = usual(key, version, body)
        if answer is not None:
            part = answer["responses"][0]["partitions"][0]
            part["records"] = _marked(part["records"], Compression.ZSTD)
        return answer

    async with holding(logs) as (cluster, client):
        cluster.instead[2] = zstd
        found = await sampled(client, 40)

    assert found.sketches["orders"].counts == {key_name(b"a"): 20}
    assert found.not_counted == (
        "orders: The records are compressed with zstd, which needs the Python package cramjam.",
    )


def _marked(batch: bytes, compression: Compression) -> bytes:
    """A batch with another codec in its header, and a valid checksum."""
    import google_crc32c

    body = bytearray(batch[21:])
    body[1] = compression
    checksum: int = google_crc32c.value(bytes(body))
    return batch[:17] + checksum.to_bytes(4, "big") + bytes(body)


async def test_partitions_that_cannot_be_read_are_reported() -> None:
    """After an error of the broker, or without a reachable leader."""
    logs = Logs([[b"a"] * 10, [b"b"] * 10])

    def refuse(key: ApiKey, _version: int, _body: Body) -> Body | None:
        part = {"partition_index": 0, "error_code": ErrorCode.TOPIC_AUTHORIZATION_FAILED, "high_watermark": -1}
        return (
            {"responses": [{"topic": "orders", "partitions": [{**part, "records": b""}]}]}
            if key is ApiKey.FETCH
            else None
        )

    async with holding(logs, (1, 9)) as (cluster, client):
        cluster.instead[1] = refuse
        found = await sampled(client, 20, "orders", "payments")

    expected = {
        "topic payments does not exist",
        "1 partitions have no leader, or one that is offline",
        "orders-0: TOPIC_AUTHORIZATION_FAILED",
    }
    assert expected <= set(found.not_counted)
    assert found.sketches["orders"].messages == 0


@pytest.mark.parametrize(("messages", "topics"), [(0, 1), (10**7, 1), (10, 65)])
async def test_too_many_topics_or_messages_are_rejected(messages: int, topics: int) -> None:
    """The error has the limits."""
    async with holding(Logs([[], []])) as (_, client):
        with pytest.raises(KeysError, match="the limit is 64 topics of 1000000"):
            await sampled(client, messages, *(f"t{at}" for at in range(topics)))


async def test_the_file_has_the_format_of_the_studys_key_sketches(tmp_path: Path) -> None:
    """Messages, error and counts by topic; keys are hashes."""
    async with holding(Logs([[b"a"] * 7, []])) as (_, client):
        write_sketches(tmp_path / "keys.json", (await sampled(client, 100)).sketches)
    written = json.loads((tmp_path / "keys.json").read_text(encoding="utf-8"))

    assert written == {"orders": {"messages": 7, "error": 0, "counts": {key_name(b"a"): 7}}}
    assert b"a".decode() not in written["orders"]["counts"]

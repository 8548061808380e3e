"""Sampled keys: what is counted is what the topic's last messages have, bounded, and told by hashes alone.

Sources: docs/analytics.md (a sampled key histogram of chosen topics), Misra and Gries (1982). The sketch's own bound is
tested with it (study.key_skew); here it is held to an exact count of what was fetched.
"""

import asyncio
import contextlib
import json
from collections import Counter
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from balance_analytics.sampling import keys
from balance_analytics.sampling.cluster_link import ClusterLink
from balance_analytics.sampling.keys import KeysError, SampledKeys, key_name, sample_keys, write_sketches
from kafka_wire.api import ApiKey
from kafka_wire.codec import Body
from kafka_wire.compression import Compression
from kafka_wire.errors import ErrorCode
from kafka_wire.net.client import NodeSettings
from kafka_wire.records import Record, encode_batch
from tests.balance_analytics.sampling_brokers import PartitionState, StandInCluster, running

BATCH = 10
"""Messages of a batch."""


class Logs:
    """What partitions hold, as keys by offset."""

    def __init__(self, partitions: list[list[bytes | None]]) -> None:
        self.partitions = partitions
        self.compression = Compression.GZIP
        self.fetched: list[int] = []

    def answer(self, key: ApiKey, _version: int, body: Body) -> Body | None:
        """Answer a Fetch with the batch that the offset is in, as a broker does; None: that is not asked."""
        if key is not ApiKey.FETCH:
            return None
        (asked,) = body["topics"][0]["partitions"]
        found = self.partitions[asked["partition"]]
        begin = asked["fetch_offset"] // BATCH * BATCH
        records = [Record(begin + at, 0, one, b"value") for at, one in enumerate(found[begin : begin + BATCH])]
        self.fetched.append(begin)
        data = encode_batch(records, compression=self.compression)
        part = {"partition_index": asked["partition"], "high_watermark": len(found), "records": data}
        return {"responses": [{"topic": body["topics"][0]["topic"], "partitions": [part]}]}


@contextlib.asynccontextmanager
async def holding(logs: Logs, leaders: tuple[int, ...] = (1, 2)) -> AsyncIterator[tuple[StandInCluster, ClusterLink]]:
    """A cluster whose topic `orders` has these logs."""
    states = [PartitionState(leaders[at], [1, 2], 0, len(log)) for at, log in enumerate(logs.partitions)]
    async with running(StandInCluster({"orders": states}), (1, 2)) as cluster:
        cluster.instead = {1: logs.answer, 2: logs.answer}
        link = ClusterLink(cluster.bootstrap(), NodeSettings(client_id="tests"))
        try:
            yield cluster, link
        finally:
            await link.close()


async def sampled(link: ClusterLink, messages: int, *topics: str) -> SampledKeys:
    """Sample, in far more time than it takes."""
    deadline = asyncio.get_running_loop().time() + 30
    return await sample_keys(link, topics or ("orders",), messages, deadline=deadline)


async def test_the_last_messages_of_each_partition_are_counted_by_its_part() -> None:
    """Three quarters of the topic are in the first partition: so are three quarters of what is fetched."""
    logs = Logs([[b"a", b"b"] * 150, [b"c"] * 100])
    async with holding(logs) as (_, link):
        found = await sampled(link, 100)

    expected = Counter(map(key_name, ((logs.partitions[0][-75:]) + logs.partitions[1][-25:])))  # type: ignore[arg-type]
    assert found.sketches["orders"].counts == expected
    assert (found.sketches["orders"].messages, found.sketches["orders"].error, found.left_out) == (100, 0, ())


async def test_a_topic_with_fewer_messages_is_counted_whole() -> None:
    """And messages without a key are nobody's."""
    logs = Logs([[b"a", None, b"a"], []])
    async with holding(logs) as (_, link):
        found = await sampled(link, 1_000)

    assert found.sketches["orders"].counts == {key_name(b"a"): 2}


async def test_what_is_fetched_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """Messages so large that a partition would take for ever are counted as far as they came."""
    monkeypatch.setattr(keys, "FETCHES_PER_PARTITION", 3)
    logs = Logs([[b"a"] * 1_000, []])
    async with holding(logs) as (_, link):
        found = await sampled(link, 1_000)

    assert logs.fetched == [0, 10, 20]
    assert found.sketches["orders"].messages == 30


async def test_batches_in_a_codec_that_is_not_opened_are_named() -> None:
    """What is missing is said, never guessed."""
    logs = Logs([[b"a"] * 20, [b"b"] * 20])
    plain = logs.answer

    def zstd(key: ApiKey, version: int, body: Body) -> Body | None:
        answer = plain(key, version, body)
        if answer is not None:
            part = answer["responses"][0]["partitions"][0]
            part["records"] = _marked(part["records"], Compression.ZSTD)
        return answer

    async with holding(logs) as (cluster, link):
        cluster.instead[2] = zstd
        found = await sampled(link, 40)

    assert found.sketches["orders"].counts == {key_name(b"a"): 20}
    assert found.left_out == ("orders: The records are compressed with zstd; only gzip and none are supported.",)


def _marked(batch: bytes, compression: Compression) -> bytes:
    """A batch that says another codec, with the checksum that goes with it."""
    import google_crc32c

    body = bytearray(batch[21:])
    body[1] = compression
    checksum: int = google_crc32c.value(bytes(body))
    return batch[:17] + checksum.to_bytes(4, "big") + bytes(body)


async def test_partitions_that_cannot_be_fetched_are_named() -> None:
    """An error of the broker's, and a leader that is away."""
    logs = Logs([[b"a"] * 10, [b"b"] * 10])

    def refuse(key: ApiKey, _version: int, _body: Body) -> Body | None:
        part = {"partition_index": 0, "error_code": ErrorCode.TOPIC_AUTHORIZATION_FAILED, "high_watermark": -1}
        return (
            {"responses": [{"topic": "orders", "partitions": [{**part, "records": b""}]}]}
            if key is ApiKey.FETCH
            else None
        )

    async with holding(logs, (1, 9)) as (cluster, link):
        cluster.instead[1] = refuse
        found = await sampled(link, 20, "orders", "payments")

    expected = {
        "topic payments is not there",
        "1 partitions have no leader that is there",
        "orders-0: TOPIC_AUTHORIZATION_FAILED",
    }
    assert expected <= set(found.left_out)
    assert found.sketches["orders"].messages == 0


@pytest.mark.parametrize(("messages", "topics"), [(0, 1), (10**7, 1), (10, 65)])
async def test_what_is_over_the_limits_is_refused(messages: int, topics: int) -> None:
    """With what they are."""
    async with holding(Logs([[], []])) as (_, link):
        with pytest.raises(KeysError, match="64 of 1000000 are taken at most"):
            await sampled(link, messages, *(f"t{at}" for at in range(topics)))


async def test_the_file_is_what_the_study_reads(tmp_path: Path) -> None:
    """`--key-sketches` of the study: messages, error and counts by topic."""
    async with holding(Logs([[b"a"] * 7, []])) as (_, link):
        write_sketches(tmp_path / "keys.json", (await sampled(link, 100)).sketches)
    written = json.loads((tmp_path / "keys.json").read_text(encoding="utf-8"))

    assert written == {"orders": {"messages": 7, "error": 0, "counts": {key_name(b"a"): 7}}}
    assert b"a".decode() not in written["orders"]["counts"]

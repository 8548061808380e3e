"""Which keys a topic's messages pile up on: the last messages of chosen topics, fetched and counted in a sketch.

From each partition as many as its part of the topic's messages, so that the sketch tells of the topic as it is held. A key is told
by a hash of its bytes alone. Leaves out the sketch (study.key_skew), messages without a key, which no key piles up, and batches in a
codec that kafka_wire does not open: those are counted, and named.
"""

import asyncio
import hashlib
import json
import os
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from balance_analytics.sampling import offsets
from balance_analytics.sampling.asking import AskedBroker, AskFailed, decoded
from balance_analytics.sampling.cluster_link import ClusterLink
from balance_analytics.sampling.layout import Layout, layout_of
from balance_analytics.sampling.left_out import LeftOut
from balance_analytics.sampling.process import unix_ms
from balance_analytics.study.key_skew import KeySketch
from kafka_wire.api import ApiKey
from kafka_wire.codec import Body
from kafka_wire.compression import UnsupportedCompression
from kafka_wire.errors import ErrorCode
from kafka_wire.failures import WireError
from kafka_wire.records import RecordBatch, decode_batches

MAX_TOPICS = 64
MAX_MESSAGES = 1_000_000
"""Of a topic. A sketch of 256 counters tells a key with a 257th of them; more messages tell no more."""
FETCH_BYTES = 1_048_576
"""Of one answer; a broker sends a batch that is larger all the same, up to MAX_BATCH_BYTES."""
MAX_BATCH_BYTES = 64 * 1024 * 1024
FETCHES_PER_PARTITION = 64
"""Messages so large that these do not bring the wanted number are counted as far as they came."""
MAX_UNPACKED_BYTES = 64 * 1024 * 1024
FIRST_VERSION, LAST_VERSION = 4, 12
"""Of Fetch: record batches of format 2 since 4; since 13 topics have their ids alone."""
HASH_CHARACTERS = 16


class KeysError(Exception):
    """No sketch could be made; says why."""


@dataclass(frozen=True, slots=True)
class SampledKeys:
    """The sketches by topic, and in words what is not in them."""

    sketches: dict[str, KeySketch]
    left_out: tuple[str, ...]


async def sample_keys(link: ClusterLink, topics: Sequence[str], messages: int, *, deadline: float) -> SampledKeys:
    """Fetch the last `messages` of each topic, and sketch their keys; `deadline` is loop time. Raises KeysError."""
    if not (0 < len(topics) <= MAX_TOPICS and 0 < messages <= MAX_MESSAGES):
        raise KeysError(
            f"{len(topics)} topics of {messages} messages; {MAX_TOPICS} of {MAX_MESSAGES} are taken at most"
        )
    missing = LeftOut()
    try:
        layout = layout_of(await link.metadata(deadline=deadline, topics=topics), missing)
    except AskFailed as why:
        raise KeysError(str(why)) from why
    words: dict[str, None] = dict.fromkeys(f"topic {name} is not there" for name in topics if name not in layout.topics)
    leaders = {int(one): link.broker(int(one)) for one in np.unique(layout.leader)}
    for leader, broker in leaders.items():
        rows = np.flatnonzero(layout.leader == leader)
        if broker is None:
            words[f"{len(rows)} partitions have no leader that is there"] = None
            continue
        await offsets.ask_offsets(broker, rows, layout, missing, deadline=deadline, now_ms=unix_ms)
    words |= missing.examples
    sketches = dict.fromkeys(layout.topics, KeySketch())
    for row, share in enumerate(_shares(layout, messages)):
        broker = leaders[int(layout.leader[row])]
        if broker is not None and share:
            topic = layout.topics[int(layout.topic_of_row[row])]
            counts = await _count(broker, topic, row, share, layout, words, deadline)
            sketches[topic] = sketches[topic].adding(counts)
    return SampledKeys(sketches, tuple(words))


def write_sketches(path: Path, sketches: dict[str, KeySketch]) -> None:
    """Write sketches as the study's --key-sketches reads them; the file appears whole or not at all. Raises OSError."""
    found = {
        topic: {"messages": one.messages, "error": one.error, "counts": dict(one.counts)}
        for topic, one in sketches.items()
    }
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        draft.write_text(json.dumps(found, indent=1, sort_keys=True) + "\n", encoding="utf-8")
        draft.replace(path)
    finally:
        draft.unlink(missing_ok=True)


def key_name(key: bytes) -> str:
    """Return what a key is told by."""
    return hashlib.sha256(key).hexdigest()[:HASH_CHARACTERS]


def _shares(layout: Layout, messages: int) -> list[int]:
    """Return how many of the last messages of each row to fetch: its part of its topic's, rounded up."""
    held = np.where((layout.end_offset < 0) | (layout.start_offset < 0), 0, layout.end_offset - layout.start_offset)
    held = np.maximum(held, 0)
    of_topic = np.bincount(layout.topic_of_row, weights=held, minlength=len(layout.topics))[layout.topic_of_row]
    wanted = np.ceil(messages * held / np.maximum(of_topic, 1)).astype(np.int64)
    shares: list[int] = np.minimum(wanted, held).tolist()
    return shares


async def _count(
    broker: AskedBroker, topic: str, row: int, share: int, layout: Layout, words: dict[str, None], deadline: float
) -> Counter[str]:
    """Count the keys of a partition's last messages."""
    counts: Counter[str] = Counter()
    partition, end = int(layout.partition[row]), int(layout.end_offset[row])
    at = end - share
    for _ in range(FETCHES_PER_PARTITION):
        if at >= end:
            break
        try:
            body = await broker.ask(
                ApiKey.FETCH,
                lambda _, at=at: _request(topic, partition, at),  # type: ignore[misc]
                decoded(ApiKey.FETCH, MAX_BATCH_BYTES),
                deadline=deadline,
                lowest=FIRST_VERSION,
                highest=LAST_VERSION,
            )
            answer = body["responses"][0]["partitions"][0]
            if answer["error_code"] != ErrorCode.NONE:
                words[f"{topic}-{partition}: {ErrorCode.of(answer['error_code']).name}"] = None
                break
            found = await asyncio.to_thread(_keys, answer["records"] or b"", at, end)
        except UnsupportedCompression as why:
            words[f"{topic}: {why}"] = None
            break
        except (AskFailed, WireError, IndexError) as why:
            words[f"{topic}-{partition}: {why}"] = None
            break
        counts += found[0]
        if found[1] <= at:  # a transaction that is open, or nothing there any more
            break
        at = found[1]
    return counts


def _keys(data: bytes, begin: int, end: int) -> tuple[Counter[str], int]:
    """Count the keys of records with offsets from `begin` to `end`; returns them and the offset to go on from."""
    counts: Counter[str] = Counter()
    onward = begin
    for batch in decode_batches(data, max_unpacked_bytes=MAX_UNPACKED_BYTES):
        counts.update(_keys_of(batch, begin, end))
        onward = max(onward, batch.header.last_offset + 1)
    return counts, onward


def _keys_of(batch: RecordBatch, begin: int, end: int) -> list[str]:
    if batch.header.is_control:
        return []
    return [key_name(one.key) for one in batch.records if one.key is not None and begin <= one.offset < end]


def _request(topic: str, partition: int, offset: int) -> Body:
    wanted = {"partition": partition, "fetch_offset": offset, "partition_max_bytes": FETCH_BYTES}
    return {
        "replica_id": -1,
        "max_wait_ms": 100,
        "min_bytes": 1,
        "max_bytes": FETCH_BYTES,
        "isolation_level": 0,
        "topics": [{"topic": topic, "partitions": [wanted]}],
        "rack_id": "",
    }

"""Counts of message keys: reads the last messages of chosen topics and counts their keys in a sketch, to find hot keys.

The number of messages read from each partition is in proportion to those that it holds, so that the counts represent the topic. Keys are
stored only as hashes. Messages without a key are skipped; so are batches in a codec that kafka_wire does not support, which is reported.
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
from balance_analytics.sampling.missing_data import MissingData
from balance_analytics.sampling.sample_builder import SampleBuilder, builder_of
from balance_analytics.sampling.sampler import unix_ms
from balance_analytics.study.key_skew import KeySketch
from kafka_wire import ApiKey, Body, ErrorCode
from kafka_wire.compression import UnsupportedCompression
from kafka_wire.failures import WireError
from kafka_wire.net.client import Node, RequestFailed
from kafka_wire.net.cluster import REQUEST_ATTEMPTS, ClusterClient
from kafka_wire.net.connection import body_decoder
from kafka_wire.records import RecordBatch, decode_batches

MAX_TOPICS = 64
MAX_MESSAGES = 1_000_000
"""Of a topic. A sketch of 256 counters finds keys with a 257th of the messages; more messages would not improve that."""
FETCH_BYTES = 1_048_576
"""Of one response; a single batch that is larger is still returned, up to MAX_BATCH_BYTES."""
MAX_BATCH_BYTES = 64 * 1024 * 1024
FETCHES_PER_PARTITION = 64
"""Limit of requests per partition. If messages are so large that these return too few, fewer are counted."""
MAX_UNPACKED_BYTES = 64 * 1024 * 1024
VERSIONS = (4, 12)
"""Of Fetch: record batches of format 2 since 4; since 13 topics have only ids."""
HASH_CHARACTERS = 16


class KeysError(Exception):
    """The keys could not be counted; the message contains the reason."""


@dataclass(frozen=True, slots=True)
class SampledKeys:
    """The sketches by topic, and messages about what they do not contain."""

    sketches: dict[str, KeySketch]
    not_counted: tuple[str, ...]


async def sample_keys(client: ClusterClient, topics: Sequence[str], messages: int, *, deadline: float) -> SampledKeys:
    """Read the last `messages` of each topic and count their keys; `deadline` is loop time. Raises KeysError."""
    if not (0 < len(topics) <= MAX_TOPICS and 0 < messages <= MAX_MESSAGES):
        raise KeysError(
            f"{len(topics)} topics of {messages} messages; the limit is {MAX_TOPICS} topics of {MAX_MESSAGES}"
        )
    missing_data = MissingData()
    try:
        builder = builder_of(await client.metadata(deadline=deadline, topics=topics), missing_data)
    except RequestFailed as error:
        raise KeysError(str(error)) from error
    errors: dict[str, None] = dict.fromkeys(
        f"topic {name} does not exist" for name in topics if name not in builder.topics
    )
    leaders = {int(leader): client.broker(int(leader)) for leader in np.unique(builder.leader)}
    for leader, broker in leaders.items():
        rows = np.flatnonzero(builder.leader == leader)
        if broker is None:
            errors[f"{len(rows)} partitions have no leader, or one that is offline"] = None
            continue
        await offsets.read_offsets(broker, rows, builder, missing_data, deadline=deadline, now_ms=unix_ms)
    errors |= missing_data.examples
    sketches = dict.fromkeys(builder.topics, KeySketch())
    for row, share in enumerate(_shares(builder, messages)):
        broker = leaders[int(builder.leader[row])]
        if broker is not None and share:
            topic = builder.topics[int(builder.topic_of_row[row])]
            counts = await _count(broker, topic, row, share, builder, errors, deadline)
            sketches[topic] = sketches[topic].adding(counts)
    return SampledKeys(sketches, tuple(errors))


def write_sketches(path: Path, sketches: dict[str, KeySketch]) -> None:
    """Write sketches in the format of the study's --key-sketches; the file is replaced atomically. Raises OSError."""
    found = {
        topic: {"messages": sketch.messages, "error": sketch.error, "counts": dict(sketch.counts)}
        for topic, sketch in sketches.items()
    }
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        draft.write_text(json.dumps(found, indent=1, sort_keys=True) + "\n", encoding="utf-8")
        draft.replace(path)
    finally:
        draft.unlink(missing_ok=True)


def key_name(key: bytes) -> str:
    """Return the hash that represents a key."""
    return hashlib.sha256(key).hexdigest()[:HASH_CHARACTERS]


def _shares(builder: SampleBuilder, messages: int) -> list[int]:
    """Return how many of the last messages of each row to read, in proportion to those it holds of its topic's, rounded up."""
    held = np.where((builder.end_offset < 0) | (builder.start_offset < 0), 0, builder.end_offset - builder.start_offset)
    held = np.maximum(held, 0)
    of_topic = np.bincount(builder.topic_of_row, weights=held, minlength=len(builder.topics))[builder.topic_of_row]
    wanted = np.ceil(messages * held / np.maximum(of_topic, 1)).astype(np.int64)
    shares: list[int] = np.minimum(wanted, held).tolist()
    return shares


async def _count(
    broker: Node,
    topic: str,
    row: int,
    share: int,
    builder: SampleBuilder,
    errors: dict[str, None],
    deadline: float,
) -> Counter[str]:
    """Count the keys of a partition's last messages."""
    counts: Counter[str] = Counter()
    partition, end = int(builder.partition[row]), int(builder.end_offset[row])
    at = end - share
    for _ in range(FETCHES_PER_PARTITION):
        if at >= end:
            break
        try:
            body = await broker.request(
                ApiKey.FETCH,
                _request(topic, partition, at),
                body_decoder(ApiKey.FETCH, MAX_BATCH_BYTES),
                deadline=deadline,
                versions=VERSIONS,
                attempts=REQUEST_ATTEMPTS,
            )
            response = body["responses"][0]["partitions"][0]
            if response["error_code"] != ErrorCode.NONE:
                errors[f"{topic}-{partition}: {ErrorCode.of(response['error_code']).name}"] = None
                break
            found = await asyncio.to_thread(_keys, response["records"] or b"", at, end)
        except UnsupportedCompression as error:
            errors[f"{topic}: {error}"] = None
            break
        except (RequestFailed, WireError, IndexError) as error:
            errors[f"{topic}-{partition}: {error}"] = None
            break
        counts += found[0]
        if found[1] <= at:  # an open transaction, or the messages were deleted
            break
        at = found[1]
    return counts


def _keys(data: bytes, begin: int, end: int) -> tuple[Counter[str], int]:
    """Count the keys of records with offsets from `begin` to `end`; return the counts and the next offset to read."""
    counts: Counter[str] = Counter()
    next_offset = begin
    for batch in decode_batches(data, max_unpacked_bytes=MAX_UNPACKED_BYTES):
        counts.update(_keys_of(batch, begin, end))
        next_offset = max(next_offset, batch.header.last_offset + 1)
    return counts, next_offset


def _keys_of(batch: RecordBatch, begin: int, end: int) -> list[str]:
    if batch.header.is_control:
        return []
    return [key_name(record.key) for record in batch.records if record.key is not None and begin <= record.offset < end]


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

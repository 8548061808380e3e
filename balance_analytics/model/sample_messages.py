"""The samples topic's messages: one topic's partitions at one look, as JSON that Spark reads with no Python of ours.

Key: the topic's name. Header `schema`: the number of this format. Value: an object of arrays of one length, an entry for each
partition; what could not be asked is null. A topic whose value would go over MAX_VALUE_BYTES is split into several messages.
Leaves out where messages go (`sampling.topic_writer`).
"""

import json
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from balance_analytics.model.sample_rows import SCHEMA_ID
from balance_analytics.model.samples import NOBODY, UNKNOWN, Ints, Longs, Samples, TopicSpan

SCHEMA_HEADER = "schema"
MAX_VALUE_BYTES = 900_000
"""With its key and Kafka's own bytes around it, it fits into a batch of message.max.bytes' default (1,048,588) uncompressed."""
MAX_PARTITIONS = 100_000
"""In one message: a partition takes 60 bytes at the least, so no value within the limit has a fifth of this."""
MAX_CELLS = 4_000_000
"""Of a list column, padded: 32 MB. An honest value has a fiftieth of it."""
MAX_REPLICAS = 32_767
"""Of a partition: Kafka's replication factor is an int16."""

NUMBERS = ("partition", "leader", "leader_epoch")
LISTS = ("replicas", "isr")
NULLABLE = ("start_offset", "end_offset", "committed_offset_sum")
_COLUMNS = (*NUMBERS, *LISTS, *NULLABLE, "size_bytes", "committed_groups")


class SampleError(ValueError):
    """Bytes that are no message of samples; says what is wrong."""


class SampleMessage(NamedTuple):
    """A message, as it goes into the topic."""

    topic: str
    """The topic that was looked at: the key."""
    value: bytes

    @property
    def key(self) -> bytes:
        """The key's bytes."""
        return self.topic.encode()


HEADERS = ((SCHEMA_HEADER, str(SCHEMA_ID).encode()),)
"""Of every message."""


def encode(samples: Samples, max_value_bytes: int = MAX_VALUE_BYTES) -> Iterator[SampleMessage]:
    """Yield the messages of a look, topic after topic. Raises SampleError for a partition that is too large by itself."""
    for span in samples.spans():
        if span.begin < span.end:
            yield from _split(samples, span, max_value_bytes)


def _split(samples: Samples, span: TopicSpan, max_value_bytes: int) -> Iterator[SampleMessage]:
    """Yield a topic's messages, halved until each fits: what a partition takes differs little within a topic."""
    value = json.dumps(_object(samples, span), separators=(",", ":")).encode()
    if len(value) <= max_value_bytes:
        yield SampleMessage(span.name, value)
        return
    if span.end - span.begin == 1:
        raise SampleError(f"a partition of {span.name} takes {len(value)} bytes, more than {max_value_bytes}")
    middle = (span.begin + span.end) // 2
    yield from _split(samples, span._replace(end=middle), max_value_bytes)
    yield from _split(samples, span._replace(begin=middle), max_value_bytes)


def _object(samples: Samples, span: TopicSpan) -> dict[str, Any]:
    rows = slice(span.begin, span.end)
    replicas = samples.replicas[rows]
    return {
        "schema": SCHEMA_ID,
        "sampled_at_ms": span.sampled_at_ms,
        "round_ms": samples.round_ms,
        "cluster_id": samples.cluster_id,
        "topic": span.name,
        "partition": samples.partition[rows].tolist(),
        "leader": samples.leader[rows].tolist(),
        "leader_epoch": samples.leader_epoch[rows].tolist(),
        "replicas": ids(replicas),
        "isr": ids(samples.isr[rows]),
        "start_offset": known(samples.start_offset[rows]),
        "end_offset": known(samples.end_offset[rows]),
        "size_bytes": sizes(samples.size_bytes[rows], replicas),
        "committed_offset_sum": known(samples.committed_offset_sum[rows]),
        "committed_groups": samples.committed_groups[rows].tolist(),
    }


def known(column: Longs) -> list[int | None]:
    """Return numbers, None for what is not known."""
    found: list[int | None] = column.tolist()
    return found if (column >= 0).all() else [None if value == UNKNOWN else value for value in found]


def ids(column: Ints) -> list[list[int]]:
    """Return lists of broker ids without what pads them."""
    found: list[list[int]] = column.tolist()
    return found if (column >= 0).all() else [[one for one in row if one != NOBODY] for row in found]


def sizes(column: Longs, replicas: Ints) -> list[list[int | None]]:
    """Return sizes by replica, None for what is not known; as many as a partition has replicas."""
    found: list[list[int | None]] = column.tolist()
    if (column >= 0).all() and (replicas >= 0).all():
        return found
    counts = (replicas != NOBODY).sum(axis=1).tolist()
    return [[None if one == UNKNOWN else one for one in row[:count]] for row, count in zip(found, counts, strict=True)]


def decode(key: bytes, value: bytes) -> Samples:
    """Read one message back into columns. Raises SampleError, before anything large is made of what is no sample."""
    if len(value) > MAX_VALUE_BYTES:
        raise SampleError(f"a value of {len(value)} bytes; at most {MAX_VALUE_BYTES} are read")
    try:
        body = json.loads(value)
    except (ValueError, RecursionError) as error:
        raise SampleError(f"the value is not JSON: {error}") from None
    if not isinstance(body, dict) or body.get("schema") != SCHEMA_ID:
        found = body.get("schema") if isinstance(body, dict) else None
        raise SampleError(f"the value has schema {found!r}; {SCHEMA_ID} is read here")
    topic, cluster_id = body.get("topic"), body.get("cluster_id")
    if not isinstance(topic, str) or not isinstance(cluster_id, str) or topic.encode() != key:
        raise SampleError("topic or cluster_id is no text, or the topic is not the key")
    columns: dict[str, Any] = {name: body.get(name) for name in _COLUMNS}
    count = len(columns["partition"]) if isinstance(columns["partition"], list) else 0
    if not 0 < count <= MAX_PARTITIONS:
        raise SampleError(f"{count} partitions of {topic}; 1 to {MAX_PARTITIONS} are read")
    for name, column in columns.items():
        if not isinstance(column, list) or len(column) != count:
            raise SampleError(f"{name} of {topic} has not the {count} entries that partition has")
    replicas = _id_lists(columns["replicas"])
    return Samples(
        cluster_id=cluster_id,
        round_ms=_number(body, "round_ms"),
        topics=(topic,),
        first_row=np.array([0, count], np.int64),
        sampled_at_ms=np.array([_number(body, "sampled_at_ms")], np.int64),
        partition=_ints(columns["partition"]),
        leader=_ints(columns["leader"], lowest=NOBODY),
        leader_epoch=_ints(columns["leader_epoch"], lowest=-1),
        replicas=replicas,
        isr=_id_lists(columns["isr"]),
        start_offset=_nullable(columns["start_offset"]),
        end_offset=_nullable(columns["end_offset"]),
        size_bytes=_size_lists(columns["size_bytes"], replicas),
        committed_offset_sum=_nullable(columns["committed_offset_sum"]),
        committed_groups=_ints(columns["committed_groups"]),
    )


def _number(body: dict[str, Any], name: str) -> int:
    value = body.get(name)
    if type(value) is not int or not 0 <= value < 1 << 63:
        raise SampleError(f"{name} is {value!r:.40}, no time in milliseconds")
    return value


def _checked(values: list[Any], lowest: int, bits: int) -> list[int]:
    for value in values:
        if type(value) is not int or not lowest <= value < 1 << bits:
            raise SampleError(f"{value!r:.40} stands where a number of {lowest} or more is due")
    return values


def _ints(values: list[Any], lowest: int = 0) -> Ints:
    return np.array(_checked(values, lowest, 31), np.int32)


def _nullable(values: list[Any]) -> Longs:
    return np.array([UNKNOWN if one is None else one for one in _nulls_apart(values)], np.int64)


def _nulls_apart(values: list[Any]) -> list[Any]:
    _checked([one for one in values if one is not None], 0, 63)
    return values


def _id_lists(lists: list[Any]) -> Ints:
    for row in lists:
        if not isinstance(row, list) or len(row) > MAX_REPLICAS:
            raise SampleError(f"{row!r:.40} stands where a list of brokers is due")
    width = max(map(len, lists), default=0)
    _fits(len(lists), width)
    found = np.full((len(lists), width), NOBODY, np.int32)
    for at, row in enumerate(lists):
        found[at, : len(row)] = _checked(row, 0, 31)
    return found


def _size_lists(lists: list[Any], replicas: Ints) -> Longs:
    found = np.full(replicas.shape, UNKNOWN, np.int64)
    counts = (replicas != NOBODY).sum(axis=1).tolist()
    for at, (row, count) in enumerate(zip(lists, counts, strict=True)):
        if not isinstance(row, list) or len(row) != count:
            raise SampleError(f"{row!r:.40} stands where sizes of {count} replicas are due")
        found[at, :count] = _nullable(row)
    return found


def _fits(rows: int, width: int) -> None:
    """Refuse lists that would be padded far beyond what was sent."""
    if rows * width > MAX_CELLS:
        raise SampleError(f"lists of up to {width} brokers for {rows} partitions: more than a value can hold")

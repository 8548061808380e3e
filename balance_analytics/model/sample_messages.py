"""Messages of the samples topic: the partitions of one topic in one sample, as JSON, which Spark can read without Python code.

Key: the topic's name. Header `schema`: the number of this format. Value: an object of arrays of equal length, with an entry for each
partition; unknown values are null. A topic whose value would exceed MAX_VALUE_BYTES is split into several messages.
"""

import json
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from balance_analytics.model.sample_rows import SCHEMA_ID
from balance_analytics.model.samples import NO_BROKER, UNKNOWN, Ints, Longs, Samples, TopicSpan

SCHEMA_HEADER = "schema"
MAX_VALUE_BYTES = 900_000
"""With its key and Kafka's headers, it fits uncompressed into a batch of the default message.max.bytes (1,048,588)."""
MAX_PARTITIONS = 100_000
"""In one message: a partition takes at least 60 bytes, so a valid value has less than a fifth of this."""
MAX_CELLS = 4_000_000
"""Of a padded list column: 32 MB. A valid value has at most a fiftieth of it."""
MAX_REPLICAS = 32_767
"""Of a partition: Kafka's replication factor is an int16."""

NUMBERS = ("partition", "leader", "leader_epoch")
LISTS = ("replicas", "isr")
NULLABLE = ("start_offset", "end_offset", "committed_offset_sum")
_COLUMNS = (*NUMBERS, *LISTS, *NULLABLE, "size_bytes", "committed_groups")


class SampleError(ValueError):
    """A message is not a valid sample; the text contains the reason."""


class SampleMessage(NamedTuple):
    """A message of the samples topic."""

    topic: str
    """The sampled topic: the key."""
    value: bytes

    @property
    def key(self) -> bytes:
        """The key as bytes."""
        return self.topic.encode()


HEADERS = ((SCHEMA_HEADER, str(SCHEMA_ID).encode()),)
"""Of every message."""


def encode(samples: Samples, max_value_bytes: int = MAX_VALUE_BYTES) -> Iterator[SampleMessage]:
    """Yield the messages of a sample, topic after topic. Raises SampleError for a partition that is too large for a message."""
    for span in samples.spans():
        if span.begin < span.end:
            yield from _split(samples, span, max_value_bytes)


def _split(samples: Samples, span: TopicSpan, max_value_bytes: int) -> Iterator[SampleMessage]:
    """Yield a topic's messages; a message that is too large is halved, as partitions of a topic differ little in size."""
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
    """Return numbers, None for unknown ones."""
    found: list[int | None] = column.tolist()
    return found if (column >= 0).all() else [None if value == UNKNOWN else value for value in found]


def ids(column: Ints) -> list[list[int]]:
    """Return lists of broker ids without padding."""
    found: list[list[int]] = column.tolist()
    return found if (column >= 0).all() else [[broker for broker in row if broker != NO_BROKER] for row in found]


def sizes(column: Longs, replicas: Ints) -> list[list[int | None]]:
    """Return the sizes of each partition's replicas, None for unknown ones."""
    found: list[list[int | None]] = column.tolist()
    if (column >= 0).all() and (replicas >= 0).all():
        return found
    counts = (replicas != NO_BROKER).sum(axis=1).tolist()
    return [
        [None if value == UNKNOWN else value for value in row[:count]] for row, count in zip(found, counts, strict=True)
    ]


def decode(key: bytes, value: bytes) -> Samples:
    """Decode one message into columns. Raises SampleError before large arrays are allocated for an invalid one."""
    if len(value) > MAX_VALUE_BYTES:
        raise SampleError(f"the value has {len(value)} bytes; the limit is {MAX_VALUE_BYTES}")
    try:
        body = json.loads(value)
    except (ValueError, RecursionError) as error:
        raise SampleError(f"the value is not JSON: {error}") from None
    if not isinstance(body, dict) or body.get("schema") != SCHEMA_ID:
        found = body.get("schema") if isinstance(body, dict) else None
        raise SampleError(f"the value has schema {found!r}; only {SCHEMA_ID} is supported")
    topic, cluster_id = body.get("topic"), body.get("cluster_id")
    if not isinstance(topic, str) or not isinstance(cluster_id, str) or topic.encode() != key:
        raise SampleError("topic or cluster_id is not text, or the topic is not the key")
    columns: dict[str, Any] = {name: body.get(name) for name in _COLUMNS}
    count = len(columns["partition"]) if isinstance(columns["partition"], list) else 0
    if not 0 < count <= MAX_PARTITIONS:
        raise SampleError(f"{count} partitions of {topic}; 1 to {MAX_PARTITIONS} are allowed")
    for name, column in columns.items():
        if not isinstance(column, list) or len(column) != count:
            raise SampleError(f"{name} of {topic} does not have the {count} entries that partition has")
    replicas = _id_lists(columns["replicas"])
    return Samples(
        cluster_id=cluster_id,
        round_ms=_number(body, "round_ms"),
        topics=(topic,),
        first_row=np.array([0, count], np.int64),
        sampled_at_ms=np.array([_number(body, "sampled_at_ms")], np.int64),
        partition=_ints(columns["partition"]),
        leader=_ints(columns["leader"], lowest=NO_BROKER),
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
        raise SampleError(f"{name} is {value!r:.40}, not a time in milliseconds")
    return value


def _checked(values: list[Any], lowest: int, bits: int) -> list[int]:
    for value in values:
        if type(value) is not int or not lowest <= value < 1 << bits:
            raise SampleError(f"{value!r:.40} is not a number of {lowest} or more")
    return values


def _ints(values: list[Any], lowest: int = 0) -> Ints:
    return np.array(_checked(values, lowest, 31), np.int32)


def _nullable(values: list[Any]) -> Longs:
    return np.array([UNKNOWN if value is None else value for value in _checked_nullable(values)], np.int64)


def _checked_nullable(values: list[Any]) -> list[Any]:
    _checked([value for value in values if value is not None], 0, 63)
    return values


def _id_lists(lists: list[Any]) -> Ints:
    for row in lists:
        if not isinstance(row, list) or len(row) > MAX_REPLICAS:
            raise SampleError(f"{row!r:.40} is not a list of brokers")
    width = max(map(len, lists), default=0)
    _check_padded_size(len(lists), width)
    found = np.full((len(lists), width), NO_BROKER, np.int32)
    for at, row in enumerate(lists):
        found[at, : len(row)] = _checked(row, 0, 31)
    return found


def _size_lists(lists: list[Any], replicas: Ints) -> Longs:
    found = np.full(replicas.shape, UNKNOWN, np.int64)
    counts = (replicas != NO_BROKER).sum(axis=1).tolist()
    for at, (row, count) in enumerate(zip(lists, counts, strict=True)):
        if not isinstance(row, list) or len(row) != count:
            raise SampleError(f"{row!r:.40} is not a list of the sizes of {count} replicas")
        found[at, :count] = _nullable(row)
    return found


def _check_padded_size(rows: int, width: int) -> None:
    """Raise SampleError if padding would make lists much larger than the message."""
    if rows * width > MAX_CELLS:
        raise SampleError(f"lists of up to {width} brokers for {rows} partitions: more than a value can contain")

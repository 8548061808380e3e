"""Packed samples become the same hourly facts as a plain computation of one partition after another."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from balance_analytics.jobs import packed_samples
from balance_analytics.jobs.packed_samples import FIELDS, PARTITION, packed_batches, unpacked
from balance_analytics.jobs.sample_hours import hour_batches
from balance_analytics.model.day_states import STATE_VALUES

MINUTE_MS, HOUR_MS = 60_000, 3_600_000
ORDER = FIELDS[:8]

INPUT = pa.schema(
    [
        *(("cluster_id", pa.string()), ("topic", pa.string()), ("partition", pa.int32())),
        ("replicas", pa.list_(pa.int32())),
        *((name, pa.int64()) for name in FIELDS),
    ]
)

brokers = st.sampled_from((-1, 1, 2, 3))


def offsets(usual: int) -> st.SearchStrategy[int | None]:
    """Mostly increasing, sometimes the same or lower, or unknown."""
    return st.sampled_from((usual, usual, usual, usual + 1, max(0, usual - 2), None))


@st.composite
def rows(draw: st.DrawFn) -> list[dict[str, Any]]:
    """Samples and states of some partitions in any order: late, twice, at one time, out of order, unknown, with changed replicas."""
    found = []
    for number in range(draw(st.integers(1, 30))):
        topic, partition = draw(st.sampled_from([("a", 0), ("a", 0), ("a", 0), ("a", 1), ("b", 0)]))
        planned = (50 + number // 2 + draw(st.sampled_from((0, 0, 0, 2)))) * MINUTE_MS
        is_sample = draw(st.sampled_from((1, 1, 1, 1, 0)))
        found.append(
            {
                "cluster_id": draw(st.sampled_from(("c", "c", "c", "d"))),
                "topic": topic,
                "partition": partition,
                "replicas": draw(st.sampled_from(([1, 2], [1, 2], [2, 1], [3], []))) if is_sample else None,
                "sampled_at_ms": planned + draw(st.sampled_from((0, 0, 500, MINUTE_MS, -MINUTE_MS))),
                "is_sample": is_sample,
                "round_ms": planned,
                "end_offset": draw(offsets(number)),
                "start_offset": draw(st.sampled_from((0, 0, 0, 1, None))),
                "leader": draw(brokers),
                "leader_epoch": draw(st.integers(0, 1)),
                "leader_size": draw(st.none() | st.integers(0, 10**12)),
                "committed_offset_sum": draw(offsets(number // 2)),
                "committed_groups": draw(st.sampled_from((1, 1, 1, 2))),
                "known_leader": None if is_sample else draw(st.none() | st.sampled_from((1, 2, 3))),
            }
        )
    return found


@given(rows(), st.integers(1, 40))
def test_hours_are_those_of_a_plain_computation(samples: list[dict[str, Any]], size: int) -> None:
    """However the samples are divided into batches and tasks."""
    table = pa.Table.from_pylist(samples, INPUT)
    packed = [packed for batch in table.to_batches(size) for packed in packed_batches(MINUTE_MS, [batch])]
    together = pa.Table.from_batches(packed).sort_by([(name, "ascending") for name in PARTITION])

    found = [row for batch in hour_batches(MINUTE_MS, together.to_batches(size)) for row in batch.to_pylist()]

    expected = list(plain_hours(samples))
    assert [{name: row[name] for name in expected[0]} for row in found] == expected if expected else found == []


@given(rows())
def test_packed_samples_are_unpacked_as_they_were(samples: list[dict[str, Any]]) -> None:
    """Each row of PACKED has samples of one partition, one hour and one list of replicas; null stays null."""
    (packed,) = packed_batches(MINUTE_MS, pa.Table.from_pylist(samples, INPUT).to_batches())
    cut = packed.slice(packed.num_rows // 2)

    def key(row: dict[str, Any]) -> str:
        return repr([row[name] for name in INPUT.names])

    assert sorted(unpacked_rows(packed), key=key) == sorted(samples, key=key)
    assert unpacked_rows(cut) == unpacked_rows(packed)[-len(unpacked_rows(cut)) :]


def test_a_row_has_no_more_samples_than_the_limit() -> None:
    """Spark hands rows to Python by their number."""
    one = {"cluster_id": "c", "topic": "t", "partition": 0, "replicas": [1], **dict.fromkeys(FIELDS, 1)}
    count = 2 * packed_samples.MAX_SAMPLES + 1

    (packed,) = packed_batches(MINUTE_MS, pa.Table.from_pylist([one] * count, INPUT).to_batches())

    assert packed.num_rows == 3


def unpacked_rows(packed: Any) -> list[dict[str, Any]]:
    """The samples of rows of PACKED."""
    matrix, row = unpacked(packed)
    series = packed.to_pylist()
    names = (*PARTITION, "replicas")
    return [
        {
            **{name: series[at][name] for name in names},
            **{
                name: None if value == packed_samples.NULL else value
                for name, value in zip(FIELDS, values, strict=True)
            },
        }
        for at, values in zip(row.tolist(), matrix.tolist(), strict=True)
    ]


def plain_hours(samples: Sequence[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """The facts of each partition and hour, in order, one sample after another."""
    for series in sorted({tuple(row[name] for name in PARTITION) for row in samples}):
        of_series = [row for row in samples if tuple(row[name] for name in PARTITION) == series]
        of_series.sort(key=lambda row: [-1 if row[name] is None else row[name] for name in ORDER])
        hours: dict[int, list[dict[str, Any]]] = {}
        for row in differences(of_series):
            hours.setdefault((row["round_ms"] - MINUTE_MS // 2) // HOUR_MS, []).append(row)
        for hour in sorted(hours):
            yield {**dict(zip(PARTITION, series, strict=True)), **plain_fact(hours[hour])}


def differences(ordered: Sequence[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """The samples of a partition that count, with what changed since the one before."""
    before: dict[str, Any] = dict.fromkeys(FIELDS)
    known_leader = None
    for row in ordered:
        changes = {name: None if None in (row[name], before[name]) else row[name] - before[name] for name in FIELDS}
        led = row["leader"] if row["leader"] != -1 else None
        if row["is_sample"] and changes["sampled_at_ms"] != 0:
            yield {
                **row,
                **difference(row, changes, known_leader),
                "known_leader": known_leader if led is None else led,
            }
        if not row["is_sample"]:
            led = row["known_leader"]
        known_leader = known_leader if led is None else led
        before = row


def difference(row: dict[str, Any], changes: dict[str, Any], known_leader: int | None) -> dict[str, Any]:
    """What a sample adds to its hour, None for nothing known."""
    elapsed, messages = changes["sampled_at_ms"], changes["end_offset"]
    reset = any((changes[name] or 0) < 0 for name in ("end_offset", "start_offset"))
    valid = elapsed is not None and 1 <= elapsed <= 150_000 and not reset
    committed = changes["committed_offset_sum"] if changes["committed_groups"] == 0 else None
    return {
        "reset": int(reset),
        "moved": int(row["leader"] != -1 and known_leader is not None and row["leader"] != known_leader),
        "elapsed": elapsed if valid and messages is not None else None,
        "messages": messages if valid else None,
        "committed": committed if valid and committed is not None and committed >= 0 else None,
        "growth": changes["leader_size"] if valid and changes["leader"] == 0 else None,
    }


def plain_fact(rows: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """The fact of an hour, and the state after it."""
    elapsed, messages, growth = (total(rows, name) for name in ("elapsed", "messages", "growth"))
    leaders = Counter(row["leader"] for row in rows if row["leader"] != -1)
    sizes = [row["leader_size"] for row in rows if row["leader_size"] is not None]
    sized = [row for row in rows if None not in (row["leader_size"], row["end_offset"], row["start_offset"])]
    sized = [row for row in sized if row["end_offset"] > row["start_offset"]]
    held = sum(row["end_offset"] - row["start_offset"] for row in sized)
    record_bytes = sum(row["leader_size"] for row in sized) / held if sized else None
    last = rows[-1]
    bytes_out = in_bytes(read(rows, elapsed), record_bytes)
    return {
        "leader": min(leaders, key=lambda one: (-leaders[one], one)) if leaders else -1,
        "replicas": last["replicas"],
        "minutes": ((elapsed or 0) + MINUTE_MS // 2) // MINUTE_MS,
        "resets": sum(row["reset"] for row in rows),
        "leader_changes": sum(row["moved"] for row in rows),
        "messages_in": messages,
        "bytes_in": in_bytes(messages, record_bytes),
        "bytes_out": bytes_out,
        "bytes_out_source": "none" if bytes_out is None else "estimate",
        "record_bytes": record_bytes,
        "size_bytes": sizes[-1] if sizes else None,
        "size_growth_bytes": growth,
        **{f"state_{column.name}": last[column.name] for column in STATE_VALUES},
    }


def read(rows: Sequence[dict[str, Any]], elapsed: int | None) -> float | None:
    """The messages that groups read, if they were known for half of the time."""
    known_ms = total([row for row in rows if row["committed"] is not None], "elapsed")
    committed = total(rows, "committed")
    if elapsed is None or known_ms is None or committed is None or known_ms * 2 < elapsed:
        return None
    return committed * elapsed / known_ms


def total(rows: Sequence[dict[str, Any]], name: str) -> int | None:
    """The sum of what is known."""
    known = [row[name] for row in rows if row[name] is not None]
    return sum(known) if known else None


def in_bytes(messages: float | None, record_bytes: float | None) -> float | None:
    """Messages in bytes: none are none whatever their size."""
    if messages == 0:
        return 0.0
    return None if messages is None or record_bytes is None else messages * record_bytes

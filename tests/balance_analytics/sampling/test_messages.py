"""Messages of the samples topic: decoding returns what was encoded, sizes are limited, and invalid messages are rejected.

Sources: docs/analytics.md (a compact topic, keyed, with a schema id); the columns of `model.sample_rows`.
"""

import json
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from balance_analytics.model.column import names
from balance_analytics.model.sample_messages import HEADERS, MAX_VALUE_BYTES, SampleError, decode, encode
from balance_analytics.model.sample_rows import SAMPLE_ROWS
from balance_analytics.model.samples import PartitionRows, Samples
from tests.balance_analytics.sampling.makers import SAMPLES, row, samples

ARRAYS = names(SAMPLE_ROWS)


def table(sample: Samples) -> list[dict[str, Any]]:
    """A sample as rows, without padding."""
    found = []
    for span in sample.spans():
        for at in range(span.begin, span.end):
            replicas = [broker for broker in sample.replicas[at].tolist() if broker >= 0]
            values = {
                name: getattr(sample, name)[at] for name in ("partition", "leader", "leader_epoch", "start_offset")
            }
            values |= {name: getattr(sample, name)[at] for name in ("end_offset", "committed_offset_sum")}
            found.append(
                {
                    **{name: int(value) for name, value in values.items()},
                    "topic": span.name,
                    "sampled_at_ms": span.sampled_at_ms,
                    "committed_groups": int(sample.committed_groups[at]),
                    "replicas": replicas,
                    "isr": [broker for broker in sample.isr[at].tolist() if broker >= 0],
                    "size_bytes": sample.size_bytes[at].tolist()[: len(replicas)],
                }
            )
    return found


@settings(deadline=None)
@given(SAMPLES, st.sampled_from([600, 1_500, MAX_VALUE_BYTES]))
def test_decoding_returns_what_was_encoded(sample: Samples, max_value_bytes: int) -> None:
    """Also if a topic is split over several messages; no value is over the limit."""
    messages = list(encode(sample, max_value_bytes))
    read = [decode(message.key, message.value) for message in messages]

    assert [row for part in read for row in table(part)] == table(sample)
    assert all(len(message.value) <= max_value_bytes for message in messages)
    assert {(part.cluster_id, part.round_ms) for part in read} <= {(sample.cluster_id, sample.round_ms)}


def test_a_message_has_an_array_for_each_column() -> None:
    """Unknown values are null."""
    sample = samples({"orders": [row(0), row(1, end_offset=None, size_bytes=[1, None, 3], committed_offset_sum=None)]})
    (message,) = encode(sample)
    body = json.loads(message.value)

    assert set(body) == set(ARRAYS) | {"schema"}
    assert message.key == b"orders"
    assert HEADERS == (("schema", b"1"),)
    assert body["end_offset"] == [1_000, None]
    assert body["size_bytes"] == [[4_096, 4_096, 4_096], [1, None, 3]]
    assert body["committed_offset_sum"] == [900, None]


def test_a_topic_with_very_many_partitions_is_split() -> None:
    """A value is at most 900 kB: such a topic has several messages with the same key."""
    sample = samples({"wide": [row(partition, end_offset=10**15) for partition in range(20_000)]})
    messages = list(encode(sample))

    assert len(messages) > 1
    assert {message.key for message in messages} == {b"wide"}
    assert all(len(message.value) <= MAX_VALUE_BYTES for message in messages)
    assert [
        partition for message in messages for partition in decode(message.key, message.value).partition.tolist()
    ] == list(range(20_000))


def test_a_partition_too_large_for_a_message_is_rejected() -> None:
    """The error names it. A topic name has at most 249 characters, so this needs thousands of replicas."""
    with pytest.raises(SampleError, match=r"a partition of orders takes .* bytes, more than 100"):
        list(encode(samples({"orders": [row()]}), 100))


def changed(**values: Any) -> bytes:
    """A valid value with some of its fields replaced."""
    (message,) = encode(samples({"orders": [row(0), row(1)]}))
    return json.dumps({**json.loads(message.value), **values}).encode()


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (b"", "not JSON"),
        (b"\xff", "not JSON"),
        (b"[" * 100_000, "not JSON"),
        (b"[]", "schema None"),
        (changed(schema=2), "schema 2; only 1 is supported"),
        (changed(topic="payments"), "not the key"),
        (changed(cluster_id=None), "not text"),
        (changed(partition=[]), "0 partitions"),
        (changed(leader=[1]), "leader of orders does not have the 2 entries"),
        (changed(end_offset=None), "end_offset of orders does not have the 2"),
        (changed(end_offset=[1, -5]), "-5 is not a number of 0 or more"),
        (changed(end_offset=[1, 2**63]), "is not a number"),
        (changed(end_offset=[1, 1.5]), "1.5 is not"),
        (changed(leader_epoch=[True, 1]), "True is not"),
        (changed(partition=[0, 2**31]), "is not a number"),
        (changed(replicas=[[1], 2]), "is not a list of brokers"),
        (changed(size_bytes=[[1], [2, 3, 4]]), "is not a list of the sizes of 3 replicas"),
        (changed(round_ms="now"), "round_ms is 'now'"),
        (b" " * (MAX_VALUE_BYTES + 1), "the limit is 900000"),
    ],
)
def test_an_invalid_message_is_rejected_with_its_error(value: bytes, message: str) -> None:
    """Any client with the right to write to the topic can send anything."""
    with pytest.raises(SampleError, match=message):
        decode(b"orders", value)


def test_lists_that_need_too_much_padding_are_rejected() -> None:
    """One long list of brokers and many empty ones would need gigabytes of padding."""
    lists: list[list[int]] = [list(range(10_000)), *([[]] * 20_000)]
    numbers = [0] * len(lists)
    arrays: dict[str, Any] = dict.fromkeys(("partition", "leader", "leader_epoch", "committed_groups"), numbers)
    arrays |= dict.fromkeys(("start_offset", "end_offset", "committed_offset_sum"), numbers)
    arrays |= {"replicas": lists, "isr": [[]] * len(lists), "size_bytes": lists}

    with pytest.raises(SampleError, match="more than a value can contain"):
        decode(b"orders", json.dumps(json.loads(changed(**arrays)), separators=(",", ":")).encode())


def test_rows_are_found_by_topic_and_partition() -> None:
    """In any order; unknown partitions have the row -1."""
    sample = samples({"a": [row(0), row(2)], "b": [row(1)]})
    rows = PartitionRows(sample.topics, sample.first_row, sample.partition)

    found = rows.find(("b", "c", "a"), np.array([2, 1, 3]), np.array([1, -1, 0, 2, 1, 0], np.int32))

    assert found.tolist() == [2, -1, -1, 1, -1, 0]


def test_columns_of_different_lengths_are_rejected() -> None:
    """Checked when a sample is created, so that no row mixes partitions."""
    sample = samples({"a": [row(0), row(2)]})
    with pytest.raises(ValueError, match="a column has 1 rows, expected 2"):
        type(sample)(**{name: getattr(sample, name) for name in sample.__slots__} | {"leader": sample.leader[:1]})

"""The samples topic's messages: what is written is what is read, within the limit, and nothing else is read as samples.

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
from tests.balance_analytics.sampling_makers import LOOKS, row, samples

ARRAYS = names(SAMPLE_ROWS)


def table(look: Samples) -> list[dict[str, Any]]:
    """A look as rows, which do not say how wide the columns are."""
    found = []
    for span in look.spans():
        for at in range(span.begin, span.end):
            replicas = [one for one in look.replicas[at].tolist() if one >= 0]
            values = {name: getattr(look, name)[at] for name in ("partition", "leader", "leader_epoch", "start_offset")}
            values |= {name: getattr(look, name)[at] for name in ("end_offset", "committed_offset_sum")}
            found.append(
                {
                    **{name: int(value) for name, value in values.items()},
                    "topic": span.name,
                    "sampled_at_ms": span.sampled_at_ms,
                    "committed_groups": int(look.committed_groups[at]),
                    "replicas": replicas,
                    "isr": [one for one in look.isr[at].tolist() if one >= 0],
                    "size_bytes": look.size_bytes[at].tolist()[: len(replicas)],
                }
            )
    return found


@settings(deadline=None)
@given(LOOKS, st.sampled_from([600, 1_500, MAX_VALUE_BYTES]))
def test_what_is_written_is_what_is_read(look: Samples, max_value_bytes: int) -> None:
    """Split or whole, every partition is in one message, keyed by its topic, and no value is over the limit."""
    messages = list(encode(look, max_value_bytes))
    read = [decode(message.key, message.value) for message in messages]

    assert table(look) == [one for part in read for one in table(part)]
    assert all(len(message.value) <= max_value_bytes for message in messages)
    assert {(look.cluster_id, look.round_ms)} >= {(part.cluster_id, part.round_ms) for part in read}


def test_a_message_has_the_fields_that_the_pipeline_reads() -> None:
    """An object of arrays of one length; what is not known is null."""
    look = samples({"orders": [row(0), row(1, end_offset=None, size_bytes=[1, None, 3], committed_offset_sum=None)]})
    (message,) = encode(look)
    body = json.loads(message.value)

    assert set(body) == set(ARRAYS) | {"schema"}
    assert message.key == b"orders"
    assert HEADERS == (("schema", b"1"),)
    assert body["end_offset"] == [1_000, None]
    assert body["size_bytes"] == [[4_096, 4_096, 4_096], [1, None, 3]]
    assert body["committed_offset_sum"] == [900, None]


def test_a_topic_with_very_many_partitions_is_split() -> None:
    """A value is at most 900 kB: such a topic has several messages with the same key."""
    look = samples({"wide": [row(partition, end_offset=10**15) for partition in range(20_000)]})
    messages = list(encode(look))

    assert len(messages) > 1
    assert {message.key for message in messages} == {b"wide"}
    assert all(len(message.value) <= MAX_VALUE_BYTES for message in messages)
    assert list(range(20_000)) == [
        one for message in messages for one in decode(message.key, message.value).partition.tolist()
    ]


def test_a_partition_too_large_for_a_message_is_refused() -> None:
    """It says which; a topic name has 249 characters at the most, so this needs thousands of replicas."""
    with pytest.raises(SampleError, match=r"a partition of orders takes .* bytes, more than 100"):
        list(encode(samples({"orders": [row()]}), 100))


def spoilt(**values: Any) -> bytes:
    """A good value with some of its fields replaced."""
    (message,) = encode(samples({"orders": [row(0), row(1)]}))
    return json.dumps({**json.loads(message.value), **values}).encode()


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (b"", "not JSON"),
        (b"\xff", "not JSON"),
        (b"[" * 100_000, "not JSON"),
        (b"[]", "schema None"),
        (spoilt(schema=2), "schema 2; 1 is read here"),
        (spoilt(topic="payments"), "not the key"),
        (spoilt(cluster_id=None), "no text"),
        (spoilt(partition=[]), "0 partitions"),
        (spoilt(leader=[1]), "leader of orders has not the 2 entries"),
        (spoilt(end_offset=None), "end_offset of orders has not the 2"),
        (spoilt(end_offset=[1, -5]), "-5 stands where a number of 0 or more"),
        (spoilt(end_offset=[1, 2**63]), "stands where a number"),
        (spoilt(end_offset=[1, 1.5]), "1.5 stands"),
        (spoilt(leader_epoch=[True, 1]), "True stands"),
        (spoilt(partition=[0, 2**31]), "stands where a number"),
        (spoilt(replicas=[[1], 2]), "a list of brokers"),
        (spoilt(size_bytes=[[1], [2, 3, 4]]), "sizes of 3 replicas"),
        (spoilt(round_ms="now"), "round_ms is 'now'"),
        (b" " * (MAX_VALUE_BYTES + 1), "at most 900000"),
    ],
)
def test_what_is_no_sample_is_refused_in_words(value: bytes, words: str) -> None:
    """Anybody who may write to the topic can write anything."""
    with pytest.raises(SampleError, match=words):
        decode(b"orders", value)


def test_lists_that_padding_would_blow_up_are_refused() -> None:
    """One long list of brokers beside very many empty ones would be gigabytes of padding."""
    lists: list[list[int]] = [list(range(10_000)), *([[]] * 20_000)]
    numbers = [0] * len(lists)
    arrays: dict[str, Any] = dict.fromkeys(("partition", "leader", "leader_epoch", "committed_groups"), numbers)
    arrays |= dict.fromkeys(("start_offset", "end_offset", "committed_offset_sum"), numbers)
    arrays |= {"replicas": lists, "isr": [[]] * len(lists), "size_bytes": lists}

    with pytest.raises(SampleError, match="more than a value can hold"):
        decode(b"orders", json.dumps(json.loads(spoilt(**arrays)), separators=(",", ":")).encode())


def test_rows_are_found_by_topic_and_partition() -> None:
    """In any order; what is not there has none."""
    look = samples({"a": [row(0), row(2)], "b": [row(1)]})
    rows = PartitionRows(look.topics, look.first_row, look.partition)

    found = rows.find(("b", "c", "a"), np.array([2, 1, 3]), np.array([1, -1, 0, 2, 1, 0], np.int32))

    assert found.tolist() == [2, -1, -1, 1, -1, 0]


def test_columns_of_different_lengths_are_no_look() -> None:
    """Asserted where a look is made, so that no row is ever another partition's."""
    look = samples({"a": [row(0), row(2)]})
    with pytest.raises(ValueError, match="a column of 1 rows where 2 are due"):
        type(look)(**{name: getattr(look, name) for name in look.__slots__} | {"leader": look.leader[:1]})

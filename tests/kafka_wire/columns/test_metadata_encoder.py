"""MetadataResponse from columns has the same bytes as from the codec, in every version (KIP-482, KIP-516, KIP-430)."""

from typing import Any
from uuid import UUID

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafka_wire import codec
from kafka_wire.columns.metadata_encoder import (
    NOT_REQUESTED,
    MetadataPartitions,
    TopicHead,
    encode_partitions,
    prefix_and_suffix,
    topic_head,
    topic_tail,
)
from tests.effort import examples

VERSIONS = range(14)
numbers = st.integers(-1, 2**31 - 1)
ids = st.lists(st.integers(0, 2**31 - 1), max_size=4)
partitions = st.fixed_dictionaries(
    {
        "error_code": st.sampled_from([0, 5, 9, 72]),
        "partition_index": numbers,
        "leader_id": numbers,
        "leader_epoch": numbers,
        "replica_nodes": ids,
        "isr_nodes": ids,
        "offline_replicas": ids,
    }
)
topics = st.fixed_dictionaries(
    {
        "error_code": st.sampled_from([0, 3, 17, -1]),
        "name": st.text(max_size=300),
        "topic_id": st.uuids(),
        "is_internal": st.booleans(),
        "topic_authorized_operations": st.sampled_from([NOT_REQUESTED, 0xDF8]),
        "partitions": st.lists(partitions, max_size=5),
    }
)


def padded(lists: list[list[int]]) -> Any:
    """Return lists of ids as a padded array."""
    width = max(map(len, lists), default=0) + 1
    return np.array([[*brokers, *[-1] * (width - len(brokers))] for brokers in lists], np.int32).reshape(-1, width)


def from_columns(version: int, body: dict[str, Any]) -> bytes:
    """Encode a body from columns."""
    every = [partition for topic in body["topics"] for partition in topic["partitions"]]

    def numbers_of(key: str) -> Any:
        return np.array([entry[key] for entry in every], np.int32)

    columns = MetadataPartitions(
        *map(numbers_of, ("error_code", "partition_index", "leader_id", "leader_epoch")),
        *(padded([entry[key] for entry in every]) for key in ("replica_nodes", "isr_nodes", "offline_replicas")),
    )
    text, offsets = encode_partitions(version, columns)
    before, after = prefix_and_suffix(version, {**body, "topics": []}, len(body["topics"]))
    first = 0
    for topic in body["topics"]:
        end = first + len(topic["partitions"])
        head = TopicHead(topic["error_code"], topic["name"], topic["topic_id"], topic["is_internal"], end - first)
        before += topic_head(version, head) + text[offsets[first] : offsets[end]]
        before += topic_tail(version, topic["topic_authorized_operations"])
        first = end
    return before + after


def without_missing_fields(version: int, body: dict[str, Any]) -> dict[str, Any]:
    """Remove fields that a version lacks and that are not ignorable."""
    if version < 8:
        for topic in body["topics"]:
            topic["topic_authorized_operations"] = NOT_REQUESTED
    return body


@pytest.mark.parametrize("version", VERSIONS)
@examples(20)
@given(st.lists(topics, max_size=4))
def test_columns_are_encoded_as_by_the_codec(version: int, described: list[dict[str, Any]]) -> None:
    """Lists of mixed lengths, long names, topics without partitions."""
    brokers = [{"node_id": 1, "host": "one", "port": 9092, "rack": None}]
    body = {"brokers": brokers, "cluster_id": "c", "controller_id": 1000, "topics": described}
    body = without_missing_fields(version, body)
    if 8 <= version <= 10:
        body["cluster_authorized_operations"] = 0x1FA0
    assert from_columns(version, body) == codec.encode("MetadataResponse", version, body)


@pytest.mark.parametrize("version", [12, 13])
def test_a_topic_without_a_name(version: int) -> None:
    """An UNKNOWN_TOPIC_ID entry contains only the id (KIP-516)."""
    topic = {"error_code": 100, "name": None, "topic_id": UUID(int=7), "is_internal": False, "partitions": []}
    body: dict[str, Any] = {"topics": [{**topic, "topic_authorized_operations": NOT_REQUESTED}]}
    assert from_columns(version, body) == codec.encode("MetadataResponse", version, body)


@pytest.mark.slow
@pytest.mark.parametrize("version", [9, 12])
def test_counts_of_more_than_one_byte(version: int) -> None:
    """Counts of 127 and more take two bytes."""
    one = {
        "error_code": 0,
        "partition_index": 0,
        "leader_id": 1,
        "leader_epoch": 2,
        "replica_nodes": list(range(130)),
        "isr_nodes": list(range(126)),
        "offline_replicas": list(range(127)),
    }
    topic = {"error_code": 0, "name": "a", "topic_id": UUID(int=7), "is_internal": False, "partitions": [one] * 130}
    body: dict[str, Any] = {"topics": [{**topic, "topic_authorized_operations": NOT_REQUESTED}] * 130}
    assert from_columns(version, body) == codec.encode("MetadataResponse", version, body)

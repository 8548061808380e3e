"""Bounded decoders and slices: the cost of a request is checked before its elements are created."""

import copy
import struct
import uuid
from typing import Any

import pytest

from kafka_wire import ApiKey, codec
from kafka_wire.failures import CodecError, TooManyElements
from kafka_wire.joined_response import JoinedResponse
from kafka_wire.slices import SLICE_ELEMENTS, slices
from kafka_wire.source_decoder import VIEW_BYTES
from kafka_wire.varints import write_uvarint

TARGETS = [{"partition_index": number, "replicas": [1, 2, 3]} for number in range(1_000)]
MEMBERS = [{"broker_id": broker, "broker_epoch": -1} for broker in (1, 2, 3)]
LARGE: list[tuple[ApiKey, int, tuple[str, ...], codec.Body]] = [
    *((ApiKey.METADATA, v, ("topics",), {"topics": [{"name": f"t{n}"} for n in range(900)]}) for v in (0, 9, 12)),
    *(
        (ApiKey.CREATE_TOPICS, v, ("topics",), {"topics": [{"name": f"t{n}"} for n in range(900)], "timeout_ms": 7})
        for v in (0, 4, 5, 7)
    ),
    (ApiKey.DELETE_TOPICS, 1, ("topic_names",), {"topic_names": [f"t{n}" for n in range(900)], "timeout_ms": 7}),
    (ApiKey.DELETE_TOPICS, 6, ("topics",), {"topics": [{"name": f"t{n}"} for n in range(900)], "timeout_ms": 7}),
    (
        ApiKey.ALTER_PARTITION_REASSIGNMENTS,
        0,
        ("topics", "partitions"),
        {"topics": [{"name": "a", "partitions": TARGETS}]},
    ),
    (
        ApiKey.ELECT_LEADERS,
        2,
        ("topic_partitions", "partitions"),
        {"topic_partitions": [{"topic": "a", "partitions": list(range(900))}, {"topic": "b", "partitions": []}]},
    ),
    (
        ApiKey.ALTER_PARTITION,
        3,
        ("topics", "partitions"),
        {
            "broker_id": 1,
            "topics": [
                {
                    "topic_id": uuid.UUID(int=topic),
                    "partitions": [{"partition_index": n, "new_isr_with_epochs": MEMBERS} for n in range(70)],
                }
                for topic in range(1, 20)
            ],
        },
    ),
]


def sliced(key: ApiKey, version: int, path: tuple[str, ...], frame: bytes, **options: Any) -> list[codec.Body]:
    """Decode a request in slices."""
    position = codec.peek_header(frame).body_offset
    options = {"max_elements": 100_000, **options}
    found = slices(key.message + "Request", version, path, frame, position, **options)
    return [body for body in found if body is not None]


def joined(bodies: list[codec.Body], path: tuple[str, ...]) -> codec.Body:
    """Join slices."""
    elements = [copy.deepcopy(element) for body in bodies for element in body[path[0]]]
    if len(path) > 1:
        whole: list[codec.Body] = []
        for element in elements:
            around = {key: value for key, value in element.items() if key != path[1]}
            if whole and around == {key: value for key, value in whole[-1].items() if key != path[1]}:
                whole[-1][path[1]] += element[path[1]]
            else:
                whole.append(element)
        elements = whole
    return {**bodies[0], path[0]: elements}


@pytest.mark.parametrize(("key", "version", "path", "body"), LARGE)
def test_slices_are_small_and_together_equal_the_request(
    key: ApiKey, version: int, path: tuple[str, ...], body: codec.Body
) -> None:
    """Each has at most SLICE_ELEMENTS elements, all of them in order; the fields after the array are in each slice."""
    frame = codec.encode_request(key, version, 1, "tests", body)
    bodies = sliced(key, version, path, frame)

    assert len(bodies) > 1
    assert joined(bodies, path) == codec.decode_request(frame)[1]
    for one in bodies:
        leaves = one[path[0]] if len(path) == 1 else [leaf for group in one[path[0]] for leaf in group[path[1]]]
        assert len(leaves) <= SLICE_ELEMENTS


@pytest.mark.parametrize(("key", "version", "path", "body"), LARGE)
def test_a_request_that_is_malformed_at_its_end_has_no_slice(
    key: ApiKey, version: int, path: tuple[str, ...], body: codec.Body
) -> None:
    """Kafka parses a whole request before it acts; so a malformed request has no effect here either."""
    frame = codec.encode_request(key, version, 1, "tests", body)[:-1]
    found: list[codec.Body] = []

    with pytest.raises(CodecError):
        found += sliced(key, version, path, frame)

    assert found == []


def test_a_null_array_is_one_slice() -> None:
    """In Metadata and ElectLeaders null means everything."""
    frame = codec.encode_request(ApiKey.METADATA, 12, 1, "tests", {"topics": None})

    assert sliced(ApiKey.METADATA, 12, ("topics",), frame) == [codec.decode_request(frame)[1]]


def test_the_caller_may_yield_control_while_a_request_is_checked() -> None:
    """The first pass over a large request also yields None between pieces of work."""
    frame = codec.encode_request(ApiKey.METADATA, 12, 1, "tests", {"topics": [{"name": "a"}] * 20_000})
    position = codec.peek_header(frame).body_offset
    found = list(slices("MetadataRequest", 12, ("topics",), frame, position, max_elements=100_000))
    first = next(index for index, body in enumerate(found) if body is not None)

    assert first >= 10


@pytest.mark.parametrize("version", [1, 12])
def test_more_elements_than_the_limit_are_rejected_by_their_count(version: int) -> None:
    """Only the count is read, not the elements."""
    frame = codec.encode_request(ApiKey.METADATA, version, 1, "tests", {"topics": [{"name": "a"}] * 101})

    with pytest.raises(TooManyElements):
        sliced(ApiKey.METADATA, version, ("topics",), frame, max_elements=100)


@pytest.mark.parametrize("count", [2**31 - 2, 2**31 - 1, 1_000_000])
def test_a_count_that_exceeds_the_remaining_bytes_is_rejected(count: int) -> None:
    """A compact length of 2^31 in a frame of 40 bytes creates nothing: the minimum size of an element limits the count."""
    start = struct.pack(">hhih", ApiKey.METADATA, 12, 1, 0) + b"\0"
    frame = start + write_uvarint(count + 1) + bytes(20)

    with pytest.raises(CodecError):
        sliced(ApiKey.METADATA, 12, ("topics",), frame, max_elements=2**31)
    with pytest.raises(CodecError):
        codec.decode_bounded(frame, codec.peek_header(frame), 100_000)


def test_the_cost_of_a_single_element_is_limited() -> None:
    """Nested arrays count: a topic with a million assignments is one element of CreateTopics."""
    topic = {"name": "a", "assignments": [{"partition_index": 0, "broker_ids": []}] * 100_000}
    frame = codec.encode_request(ApiKey.CREATE_TOPICS, 7, 1, "tests", {"topics": [topic]})

    with pytest.raises(TooManyElements):
        sliced(ApiKey.CREATE_TOPICS, 7, ("topics",), frame)


def test_a_topic_with_ten_thousand_assigned_partitions_is_accepted() -> None:
    """Tools may send one topic with manual assignments for each partition."""
    assignments = [{"partition_index": number, "broker_ids": [1, 2, 3]} for number in range(10_000)]
    body = {"topics": [{"name": "a", "assignments": assignments}]}
    frame = codec.encode_request(ApiKey.CREATE_TOPICS, 7, 1, "tests", body)

    (found,) = sliced(ApiKey.CREATE_TOPICS, 7, ("topics",), frame)
    assert len(found["topics"][0]["assignments"]) == 10_000


def test_a_repeated_name_across_slices_is_rejected() -> None:
    """Within its slice a duplicate would not be detected: the whole CreateTopics request is rejected."""
    names = [*(f"t{number}" for number in range(900)), "t0"]
    frame = codec.encode_request(ApiKey.CREATE_TOPICS, 7, 1, "tests", {"topics": [{"name": name} for name in names]})

    with pytest.raises(CodecError, match="t0"):
        sliced(ApiKey.CREATE_TOPICS, 7, ("topics",), frame, unique="name")


def test_heavy_elements_fill_a_slice_sooner() -> None:
    """A topic with many partitions is a slice by itself."""
    topics = [{"name": f"t{number}", "num_partitions": 5_000} for number in range(8)]
    frame = codec.encode_request(ApiKey.CREATE_TOPICS, 7, 1, "tests", {"topics": topics})
    bodies = sliced(ApiKey.CREATE_TOPICS, 7, ("topics",), frame, weigh=lambda topic: topic["num_partitions"])

    assert [len(body["topics"]) for body in bodies] == [1] * 8


@pytest.mark.parametrize("elements", [7, 8])
def test_a_budget_is_charged_before_elements_are_created(elements: int) -> None:
    """Each int32 costs one unit, each group of them 3 for its name and 6 and 2 for the dict (element_units)."""
    body = {"topics": [{"name": "a", "partition_indexes": list(range(elements))}], "timeout_ms": 1}
    frame = codec.encode_request(ApiKey.LIST_PARTITION_REASSIGNMENTS, 0, 1, "tests", body)
    header = codec.peek_header(frame)
    fits = 10 + 7

    if elements <= 7:
        assert codec.decode_bounded(frame, header, fits) == codec.decode_request(frame)[1]
    else:
        with pytest.raises(TooManyElements):
            codec.decode_bounded(frame, header, fits)


def test_unknown_tagged_fields_are_charged() -> None:
    """A frame full of empty tagged fields (KIP-482) takes as long as one full of elements."""
    start = struct.pack(">hhih", ApiKey.DESCRIBE_CLUSTER, 1, 1, 0) + b"\0"
    frame = start + b"\0\1" + write_uvarint(50_000) + b"\5\0" * 50_000

    with pytest.raises(TooManyElements):
        codec.decode_bounded(frame, codec.peek_header(frame), 100_000)


def test_large_byte_fields_are_not_copied() -> None:
    """The records of a relayed Produce stay in their frame: only names are checked."""
    partition = {"index": 0, "records": bytes(VIEW_BYTES + 1)}
    body = {"topic_data": [{"name": "a", "partition_data": [partition]}], "acks": 1}
    frame = codec.encode_request(ApiKey.PRODUCE, 9, 1, "tests", body)
    found = codec.decode_bounded(frame, codec.peek_header(frame), 1_000)
    records = found["topic_data"][0]["partition_data"][0]["records"]

    assert isinstance(records, memoryview)
    assert records.obj is frame


@pytest.mark.parametrize("sizes", [[0], [3], [0, 0], [1, 200, 0], [256, 256, 3]])
@pytest.mark.parametrize(("key", "version"), [(ApiKey.METADATA, 0), (ApiKey.METADATA, 12), (ApiKey.CREATE_TOPICS, 7)])
def test_a_joined_response_equals_the_whole_one(key: ApiKey, version: int, sizes: list[int]) -> None:
    """Byte for byte the same as encoded at once, in classic and flexible versions."""
    response = JoinedResponse(key, version, 9, "topics")
    for size in sizes:
        response.add({"throttle_time_ms": 0, "topics": [{"name": "a"}] * size})

    assert response.finish() == codec.encode_response(key, version, 9, {"topics": [{"name": "a"}] * sum(sizes)})

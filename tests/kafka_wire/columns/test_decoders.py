"""Column decoders return the same values as the codec, for any bytes.

Sources: docs/analytics.md, the numbers on sampling; MetadataResponse, ListOffsetsResponse and DescribeLogDirsResponse of
Kafka 3.9 and 4.3 (KIP-482). The codec is the reference.
"""

from collections.abc import Callable
from dataclasses import fields
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafka_wire import ApiKey, Body, codec, schema
from kafka_wire.codec import CodecError
from kafka_wire.columns import log_dirs, metadata_decoder, offsets, reading
from tests.effort import examples
from tests.kafka_wire.bodies import Bodies

Decoder = Callable[[int, bytes], Any]

INT16, INT32, INT64 = (st.integers(-(1 << bits), (1 << bits) - 1) for bits in (15, 31, 63))
IDS = st.one_of(
    st.just([1, 2, 3]), st.lists(INT32, max_size=4), st.integers(126, 128).map(lambda count: list(range(count)))
)
NAMES = st.text(max_size=300)
"""Long enough for a length of two bytes."""

METADATA_PARTITION = st.fixed_dictionaries(
    {
        "error_code": INT16,
        "partition_index": INT32,
        "leader_id": INT32,
        "leader_epoch": INT32,
        "replica_nodes": IDS,
        "isr_nodes": IDS,
        "offline_replicas": st.just([]) | IDS,
    }
)
OFFSET = st.fixed_dictionaries(
    {"partition_index": INT32, "error_code": INT16, "timestamp": INT64, "offset": INT64, "leader_epoch": INT32}
)
REPLICA = st.fixed_dictionaries(
    {"partition_index": INT32, "partition_size": INT64, "offset_lag": INT64, "is_future_key": st.booleans()}
)

DECODERS: dict[ApiKey, tuple[Decoder, Any, st.SearchStrategy[Body], str]] = {
    ApiKey.METADATA: (metadata_decoder.decode_metadata, metadata_decoder, METADATA_PARTITION, "topics"),
    ApiKey.LIST_OFFSETS: (offsets.decode_list_offsets, offsets, OFFSET, "topics"),
    ApiKey.DESCRIBE_LOG_DIRS: (log_dirs.decode_log_dirs, log_dirs, REPLICA, "results"),
}
DIRECT = {ApiKey.METADATA: range(11, 14), ApiKey.LIST_OFFSETS: range(6, 12), ApiKey.DESCRIBE_LOG_DIRS: range(2, 6)}
"""Versions that are read without the codec: those of brokers from 3.0 on."""
CASES = [(key, version) for key in DECODERS for version in schema.known_versions(f"{key.message}Response").all()]


def strategy(key: ApiKey, version: int) -> st.SearchStrategy[Body]:
    """Bodies with lists of every usual and unusual length."""
    partitions = st.lists(DECODERS[key][2], max_size=4)
    return Bodies(version, {"partitions": partitions, "name": NAMES}).structs(
        schema.definition(f"{key.message}Response", version).fields
    )


def frame(key: ApiKey, version: int, body: Body) -> bytes:
    """Return an encoded response."""
    return codec.encode_response(key, version, 7, body)


def by_codec(key: ApiKey, version: int, data: bytes) -> Any:
    """Return the columns of the codec."""
    return DECODERS[key][1]._from_body(codec.decode_response(key, version, data)[1])


def assert_same(expected: Any, actual: Any) -> None:
    """Compare shape, type and values of every column."""
    for field in fields(expected):
        one, other = getattr(expected, field.name), getattr(actual, field.name)
        if isinstance(one, np.ndarray):
            assert (one.dtype, one.shape) == (other.dtype, other.shape), field.name
            assert one.tolist() == other.tolist(), field.name
        else:
            assert one == other, field.name


@pytest.mark.parametrize(("key", "version"), CASES)
def test_columns_equal_those_of_the_codec(key: ApiKey, version: int) -> None:
    """Any body of any version, including those that the codec itself reads."""
    if version not in DIRECT[key]:
        bodies = Bodies(version).structs(schema.definition(f"{key.message}Response", version).fields)
    else:
        bodies = strategy(key, version)

    @examples(6)
    @given(bodies)
    def hold(body: Body) -> None:
        data = _encoded(key, version, body)
        if data is not None:
            assert_same(by_codec(key, version, data), DECODERS[key][0](version, data))

    hold()


def _encoded(key: ApiKey, version: int, body: Body) -> bytes | None:
    """Return None if the version lacks something of the body."""
    try:
        return frame(key, version, body)
    except CodecError:
        return None


@pytest.mark.parametrize(("key", "version"), [(key, version) for key in DIRECT for version in DIRECT[key]])
def test_usual_responses_are_read_without_the_codec(key: ApiKey, version: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Many topics with many partitions of several layouts, as brokers of 3.0 and later send them."""
    data = frame(key, version, usual(key))
    expected = by_codec(key, version, data)
    monkeypatch.setattr(reading, "MAX_PLAIN_BYTES", 0)

    assert_same(expected, DECODERS[key][0](version, data))


def usual(key: ApiKey) -> Body:
    """Three hundred partitions of each topic, whose ISRs shrink here and there."""
    if key is ApiKey.METADATA:
        partitions = [
            {
                "partition_index": index,
                "leader_id": index % 3,
                "leader_epoch": index,
                "replica_nodes": [0, 1, 2],
                "isr_nodes": [0, 1, 2][: 1 + index % 7 % 3],
                "offline_replicas": [2] if index % 11 == 0 else [],
            }
            for index in range(300)
        ]
        brokers = [{"node_id": node, "host": f"broker-{node}", "port": 9092, "rack": None} for node in range(3)]
        topics = [{"name": f"topic-{at}", "partitions": partitions} for at in range(20)]
        return {"cluster_id": "cluster", "controller_id": 1, "brokers": brokers, "topics": [*topics, {"name": "none"}]}
    if key is ApiKey.LIST_OFFSETS:
        offsets = [{"partition_index": index, "offset": index << 33, "leader_epoch": 1} for index in range(300)]
        return {"topics": [{"name": f"topic-{at}", "partitions": offsets} for at in range(20)]}
    sizes = [{"partition_index": index, "partition_size": index << 33} for index in range(300)]
    topics = [{"name": f"topic-{at}", "partitions": sizes} for at in range(20)]
    return {"results": [{"log_dir": "/a", "topics": topics}, {"log_dir": "/b", "error_code": 56, "topics": []}]}


@pytest.mark.parametrize("key", DECODERS)
@examples(150)
@given(data=st.data())
def test_malformed_bytes_raise_the_codecs_error(key: ApiKey, data: st.DataObject) -> None:
    """Any bytes result in a CodecError, or in the columns of the codec."""
    version = DIRECT[key][-1]
    whole = bytearray(frame(key, version, data.draw(strategy(key, version))))
    for _ in range(data.draw(st.integers(1, 3))):
        whole[data.draw(st.integers(0, len(whole) - 1))] = data.draw(st.integers(0, 255))
    damaged = bytes(whole[: data.draw(st.integers(0, len(whole)))])
    try:
        expected = by_codec(key, version, damaged)
    except (CodecError, OverflowError):
        with pytest.raises(CodecError):
            DECODERS[key][0](version, damaged)
    else:
        assert_same(expected, DECODERS[key][0](version, damaged))


@pytest.mark.parametrize("key", DECODERS)
def test_a_large_response_in_an_unusual_form_is_rejected(key: ApiKey, monkeypatch: pytest.MonkeyPatch) -> None:
    """As dicts it would take a hundred times its bytes."""
    version = DIRECT[key][-1]
    monkeypatch.setattr(reading, "MAX_PLAIN_BYTES", 10)

    with pytest.raises(CodecError, match="unusual form exceed the limit of 10"):
        DECODERS[key][0](version, frame(key, version, usual(key)) + b"\0")


TOPICS = st.lists(st.tuples(NAMES, st.lists(INT32, max_size=140)), max_size=4)


@pytest.mark.parametrize("version", DIRECT[ApiKey.LIST_OFFSETS])
def test_a_request_from_columns_equals_the_codecs(version: int) -> None:
    """Byte for byte."""

    @examples(10)
    @given(TOPICS, st.sampled_from([offsets.LATEST, offsets.EARLIEST]))
    def hold(topics: list[tuple[str, list[int]]], timestamp: int) -> None:
        requested = [
            {
                "name": name,
                "partitions": [{"partition_index": partition, "timestamp": timestamp} for partition in partitions],
            }
            for name, partitions in topics
        ]
        expected = codec.encode("ListOffsetsRequest", version, {"replica_id": -1, "topics": requested})

        assert (
            offsets.encode_list_offsets(
                version,
                [name for name, _ in topics],
                np.array([len(partitions) for _, partitions in topics], np.int64),
                np.array([partition for _, partitions in topics for partition in partitions], np.int32),
                timestamp,
            )
            == expected
        )

    hold()


def test_a_request_before_flexible_versions_is_rejected() -> None:
    """The codec encodes requests for such a broker."""
    with pytest.raises(CodecError, match="cannot be encoded from columns"):
        offsets.encode_list_offsets(5, [], np.array([], np.int64), np.array([], np.int32), offsets.LATEST)

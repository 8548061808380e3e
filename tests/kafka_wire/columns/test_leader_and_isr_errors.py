"""The LeaderAndIsr decoder returns only the partitions with an error; the codec is the reference.

Source: LeaderAndIsrResponse 4 to 7 of Kafka 3.9 (KIP-482, KIP-516).
"""

from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controller_core.zookeeper_mode.apis import CALLED
from kafka_wire import ApiKey, Body, codec
from kafka_wire.codec import CodecError
from kafka_wire.columns import leader_and_isr_errors
from kafka_wire.columns.leader_and_isr_errors import FIRST_BY_TOPIC_ID, decode_errors

KEY = ApiKey.LEADER_AND_ISR
VERSIONS = range(CALLED[KEY].lowest, CALLED[KEY].highest + 1)
ERROR = {"partition_index": st.integers(0, 2**31 - 1), "error_code": st.sampled_from([0, 0, 0, 56, 103, -1])}


def body(version: int) -> st.SearchStrategy[Body]:
    """A response in which most partitions have no error."""
    error_code = st.sampled_from([0, 0, 11])
    if version < FIRST_BY_TOPIC_ID:
        named = st.lists(st.fixed_dictionaries({**ERROR, "topic_name": st.text(max_size=5)}), max_size=9)
        return st.fixed_dictionaries({"error_code": error_code, "partition_errors": named})
    errors = st.lists(st.fixed_dictionaries(ERROR), max_size=200)
    topics = st.lists(st.fixed_dictionaries({"topic_id": st.uuids(), "partition_errors": errors}), max_size=4)
    return st.fixed_dictionaries({"error_code": error_code, "topics": topics})


def plain(version: int, frame: bytes) -> Body:
    """Return the codec's result without the partitions that have no error."""
    found = codec.decode_response(KEY, version, frame)[1]
    topics = [{**topic, "partition_errors": with_error(topic["partition_errors"])} for topic in found["topics"]]
    return {
        "error_code": found["error_code"],
        "partition_errors": with_error(found["partition_errors"]),
        "topics": [topic for topic in topics if topic["partition_errors"]],
    }


def with_error(errors: list[Body]) -> list[Body]:
    """Return the entries with an error."""
    return [error for error in errors if error["error_code"]]


@pytest.mark.parametrize("version", VERSIONS)
@given(data=st.data())
def test_partitions_with_an_error_equal_the_codecs(version: int, data: st.DataObject) -> None:
    """For any other entries, in every version that the controller uses."""
    frame = codec.encode_response(KEY, version, 7, data.draw(body(version)))

    assert plain(version, frame) == decode_errors(version, frame)


@pytest.mark.parametrize("version", [version for version in VERSIONS if version >= FIRST_BY_TOPIC_ID])
def test_a_response_by_topic_id_is_read_without_the_codec(version: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The codec's dicts took a fifth of a second."""
    errors = [{"topic_name": "", "partition_index": 5, "error_code": 56}]
    drawn = {"error_code": 0, "topics": [{"topic_id": UUID(int=1), "partition_errors": errors}]}
    frame = codec.encode_response(KEY, version, 7, drawn)
    monkeypatch.setattr(leader_and_isr_errors, "_from_body", None)

    assert decode_errors(version, frame) == {**drawn, "partition_errors": []}


@given(data=st.data())
def test_a_truncated_or_too_long_response_is_rejected(data: st.DataObject) -> None:
    """As by the codec."""
    frame = codec.encode_response(KEY, VERSIONS[-1], 7, data.draw(body(VERSIONS[-1])))
    cut = data.draw(st.integers(0, len(frame) - 1))

    for malformed in (frame[:cut], frame + b"\0"):
        with pytest.raises(CodecError):
            decode_errors(VERSIONS[-1], malformed)


@pytest.mark.parametrize("place", ["header", "partition", "topic", "response"])
def test_tagged_fields_are_ignored(place: str) -> None:
    """A later Kafka may add some (KIP-482)."""
    tag = b"\x01\x05\x02xy"
    tags = dict.fromkeys(("header", "partition", "topic", "response"), b"\0") | {place: tag}
    partition = b"\0\0\0\x07\0\x38" + tags["partition"]
    topic = bytes(15) + b"\x01" + b"\x02" + partition + tags["topic"]
    frame = b"\0\0\0\x01" + tags["header"] + b"\0\0" + b"\x02" + topic + tags["response"]

    expected = {"topic_name": "", "partition_index": 7, "error_code": 56}
    assert decode_errors(7, frame)["topics"][0]["partition_errors"][0] == expected

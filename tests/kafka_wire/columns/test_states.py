"""Partition states from columns have the same bytes as from the codec.

Sources: benchmark P5; LeaderAndIsrRequest 4 to 7 and UpdateMetadataRequest 6 to 8 of Kafka 3.9 (KIP-482, KIP-516, KIP-704).
"""

from dataclasses import replace
from typing import Any
from uuid import UUID

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from controller_core.zookeeper_mode.apis import CALLED
from kafka_wire import ApiKey, codec
from kafka_wire.columns.states import (
    CHUNK_STATES,
    SCRATCH_BYTES,
    STATES_PER_PART,
    StateColumns,
    TopicStates,
    encode_request,
    request_parts,
)
from tests.effort import examples

NUMBERS = ("partition_index", "controller_epoch", "leader", "leader_epoch")
INT32 = st.integers(-(2**31), 2**31 - 1)
IDS = st.lists(st.integers(0, 2**31 - 1), max_size=5)
MANY_IDS = st.one_of(IDS, st.integers(126, 130).map(lambda count: list(range(count))))

CALLS = [
    (key, version)
    for key in (ApiKey.LEADER_AND_ISR, ApiKey.UPDATE_METADATA)
    for version in range(CALLED[key].lowest, CALLED[key].highest + 1)
]
LISTS = {
    ApiKey.LEADER_AND_ISR: ("isr", "replicas", "adding_replicas", "removing_replicas"),
    ApiKey.UPDATE_METADATA: ("isr", "replicas", "offline_replicas"),
}
EPOCHS = {ApiKey.LEADER_AND_ISR: "partition_epoch", ApiKey.UPDATE_METADATA: "zk_version"}
FLAGS = {ApiKey.LEADER_AND_ISR: ("is_new", "leader_recovery_state"), ApiKey.UPDATE_METADATA: ()}
HEADS: dict[ApiKey, dict[str, Any]] = {
    ApiKey.LEADER_AND_ISR: {
        "controller_id": 1000,
        "controller_epoch": 7,
        "broker_epoch": 42,
        "live_leaders": [{"broker_id": 1, "host_name": "host", "port": 9092}],
    },
    ApiKey.UPDATE_METADATA: {
        "controller_id": 1000,
        "controller_epoch": 7,
        "broker_epoch": 42,
        "live_brokers": [{"id": 1, "endpoints": [], "rack": "a"}],
    },
}


def state(key: ApiKey, ids: st.SearchStrategy[list[int]] = IDS) -> st.SearchStrategy[dict[str, Any]]:
    """Return one partition's state as a dict."""
    numbers = dict.fromkeys((*NUMBERS, EPOCHS[key]), INT32)
    return st.fixed_dictionaries(
        {**numbers, **dict.fromkeys(LISTS[key], ids), **dict.fromkeys(FLAGS[key], st.booleans())}
    )


def topics(key: ApiKey) -> st.SearchStrategy[list[dict[str, Any]]]:
    """Return topics with their partitions' states, as dicts."""
    topic = st.fixed_dictionaries(
        {
            "topic_name": st.text(max_size=300),
            "topic_id": st.uuids(),
            "partition_states": st.lists(st.one_of(state(key), state(key, MANY_IDS)), max_size=6),
        }
    )
    return st.lists(topic, max_size=4)


def columns(key: ApiKey, found: list[dict[str, Any]]) -> StateColumns:
    """Return the same states as columns."""
    states = [state for topic in found for state in topic["partition_states"]]
    return StateColumns(
        tuple(TopicStates(topic["topic_name"], topic["topic_id"], len(topic["partition_states"])) for topic in found),
        {name: np.array([state[name] for state in states], np.int32) for name in (*NUMBERS, EPOCHS[key])},
        {name: padded([state[name] for state in states]) for name in LISTS[key]},
        {name: np.array([state[name] for state in states], np.bool_) for name in FLAGS[key]},
    )


def padded(lists: list[list[int]]) -> Any:
    """Return lists as an array, padded with -1."""
    width = max(map(len, lists), default=0)
    return np.array([ids + [-1] * (width - len(ids)) for ids in lists], np.int32).reshape(len(lists), width)


def plain(version: int, key: ApiKey, found: list[dict[str, Any]]) -> bytes:
    """Return the bytes from the codec."""
    message = f"{key.message}Request"
    if key is ApiKey.LEADER_AND_ISR and version < 6:
        states = [[without_recovery(state) for state in topic["partition_states"]] for topic in found]
        found = [{**topic, "partition_states": of_topic} for topic, of_topic in zip(found, states, strict=True)]
    return codec.encode(message, version, {**HEADS[key], "topic_states": found})


def without_recovery(one: dict[str, Any]) -> dict[str, Any]:
    """Return the state without the fields that versions below 6 lack."""
    return {name: value for name, value in one.items() if name != "leader_recovery_state"}


@pytest.mark.parametrize(("key", "version"), CALLS, ids=str)
@examples(20)
@given(data=st.data())
def test_columns_are_encoded_as_by_the_codec(key: ApiKey, version: int, data: st.DataObject) -> None:
    """For lists of any length, in every version that the controller uses."""
    found = data.draw(topics(key))

    written = encode_request(f"{key.message}Request", version, HEADS[key], columns(key, found))

    assert plain(version, key, found) == written


@pytest.mark.parametrize("mixed", [False, True])
def test_many_states_of_one_or_several_layouts_are_in_order(mixed: bool) -> None:
    """With some replicas out of sync, for more states than are copied at a time."""
    key, count = ApiKey.LEADER_AND_ISR, 2 * CHUNK_STATES + 3
    states = [
        {
            **dict.fromkeys(NUMBERS, place),
            "partition_epoch": place,
            "isr": [1, 2] if mixed and place % 7 == 0 else [1, 2, 3],
            "replicas": [1, 2, 3],
            "adding_replicas": [],
            "removing_replicas": [],
            "is_new": place % 2 == 0,
            "leader_recovery_state": False,
        }
        for place in range(count)
    ]
    halves = states[: count // 2], states[count // 2 :]
    found = [
        {"topic_name": f"t{number}", "topic_id": UUID(int=number + 1), "partition_states": half}
        for number, half in enumerate(halves)
    ]

    assert plain(7, key, found) == encode_request("LeaderAndIsrRequest", 7, HEADS[key], columns(key, found))


def test_missing_columns_are_zero_or_empty() -> None:
    """Reassignments are rare, so their columns are optional."""
    states = StateColumns(
        (TopicStates("t", UUID(int=1), 1),),
        {name: np.array([5], np.int32) for name in (*NUMBERS, "partition_epoch")},
        {},
        {},
    )
    one = {**dict.fromkeys(NUMBERS, 5), "partition_epoch": 5}
    topic = {"topic_name": "t", "topic_id": UUID(int=1), "partition_states": [one]}

    expected = codec.encode("LeaderAndIsrRequest", 7, {**HEADS[ApiKey.LEADER_AND_ISR], "topic_states": [topic]})
    assert encode_request("LeaderAndIsrRequest", 7, HEADS[ApiKey.LEADER_AND_ISR], states) == expected


def test_shared_states_are_encoded_once_for_all_brokers() -> None:
    """An UpdateMetadata goes to every broker; only the head differs."""
    states = replace(columns(ApiKey.UPDATE_METADATA, []), shared=True)

    first, again = (list(states.parts("UpdateMetadataRequest", 8)) for _ in range(2))

    assert again == [b"".join(first)]
    assert again[0] is next(states.parts("UpdateMetadataRequest", 8))


def test_a_request_is_not_changed_by_the_next_one() -> None:
    """The scratch buffer is reused for the next request."""
    key = ApiKey.UPDATE_METADATA
    found = [[{"topic_name": "t", "topic_id": UUID(int=1), "partition_states": [one(leader)] * 3}] for leader in (1, 2)]
    expected = [plain(8, key, topics) for topics in found]

    for shared in (False, True):
        written = [
            encode_request("UpdateMetadataRequest", 8, HEADS[key], replace(columns(key, topics), shared=shared))
            for topics in found
        ]
        assert written == expected


@pytest.mark.slow
def test_states_larger_than_the_scratch_buffer_are_encoded_the_same() -> None:
    """SCRATCH_BYTES does not limit a request."""
    key, count = ApiKey.UPDATE_METADATA, SCRATCH_BYTES // 25
    found = [{"topic_name": "t", "topic_id": UUID(int=1), "partition_states": [one(1)] * count}]

    assert plain(8, key, found) == encode_request("UpdateMetadataRequest", 8, HEADS[key], columns(key, found))


def one(leader: int) -> dict[str, Any]:
    """Return a state with only a leader."""
    numbers = dict.fromkeys((*NUMBERS, EPOCHS[ApiKey.UPDATE_METADATA]), 0)
    return {**numbers, "leader": leader, **{name: [] for name in LISTS[ApiKey.UPDATE_METADATA]}}


def test_versions_before_kip_482_are_rejected() -> None:
    """They have another format, and are not used."""
    with pytest.raises(AssertionError, match="KIP-482"):
        list(columns(ApiKey.LEADER_AND_ISR, []).parts("LeaderAndIsrRequest", 3))


@pytest.mark.parametrize("shared", [False, True])
def test_many_topics_are_encoded_in_parts_of_whole_topics(shared: bool) -> None:
    """No part has much more than STATES_PER_PART states, and joined they equal the codec's bytes."""
    key, partitions = ApiKey.UPDATE_METADATA, 700
    count = 2 * STATES_PER_PART // partitions + 3
    found = [
        {"topic_name": f"t{number}", "topic_id": UUID(int=number), "partition_states": [one(number)] * partitions}
        for number in range(count)
    ]
    empty = {"topic_name": "none", "topic_id": UUID(int=0), "partition_states": []}
    states = replace(columns(key, [*found, empty]), shared=shared)

    parts = list(request_parts("UpdateMetadataRequest", 8, HEADS[key], states))

    assert plain(8, key, [*found, empty]) == b"".join(parts)
    assert len(parts) == 2 + 1 + 3  # the fields before and after the states, their count, and the states


def test_one_state_above_the_limit_is_encoded_in_parts() -> None:
    """The last part may be topics without partitions."""
    key = ApiKey.LEADER_AND_ISR
    plain_state = {**dict.fromkeys((*NUMBERS, EPOCHS[key]), 0), **dict.fromkeys(FLAGS[key], False)}
    states = [plain_state | {name: [] for name in LISTS[key]}] * (STATES_PER_PART + 1)
    found = [
        {"topic_name": "t", "topic_id": UUID(int=1), "partition_states": states},
        {"topic_name": "none", "topic_id": UUID(int=2), "partition_states": []},
    ]

    assert plain(7, key, found) == encode_request("LeaderAndIsrRequest", 7, HEADS[key], columns(key, found))

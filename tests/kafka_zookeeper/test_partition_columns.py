"""The column codec of partition states agrees with that of single states."""

import json

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from kafka_zookeeper.formats import FormatError, PartitionState, decode_partition_state, encode_partition_state
from kafka_zookeeper.formats.partition_columns import decode_partition_states, encode_partition_states

INT32 = st.integers(-(2**31), 2**31 - 1)
USUAL = st.builds(
    PartitionState,
    leader=st.integers(-1, 2**31 - 1),
    leader_epoch=st.integers(0, 2**31 - 1),
    isr=st.lists(st.integers(0, 2**31 - 1), min_size=1, max_size=4).map(tuple),
    controller_epoch=st.integers(0, 2**31 - 1),
)
ODD = st.builds(
    PartitionState, INT32, INT32, st.lists(INT32, max_size=4).map(tuple), INT32, leader_recovery_state=st.integers(0, 1)
)
DOCUMENT = encode_partition_state(PartitionState(1, 0, (1, 2), 1))


def _damaged(state: PartitionState, place: int, byte: int) -> bytes:
    data = bytearray(encode_partition_state(state))
    data[place % len(data)] = byte
    return bytes(data)


def _rewritten(state: PartitionState) -> bytes:
    """Write the same state with blanks and in another order."""
    return json.dumps(json.loads(encode_partition_state(state)), sort_keys=True).encode()


DOCUMENTS = st.one_of(
    st.none(),
    USUAL.map(encode_partition_state),
    ODD.map(encode_partition_state),
    ODD.map(_rewritten),
    st.builds(_damaged, USUAL, st.integers(0, 200), st.integers(0, 255)),
    st.binary(max_size=8),
)


def _single_states(documents: list[bytes | None]) -> list[PartitionState | None]:
    states: list[PartitionState | None] = []
    for document in documents:
        try:
            states.append(None if document is None else decode_partition_state("/p", document))
        except FormatError:
            states.append(None)
    return states


@given(documents=st.lists(DOCUMENTS, max_size=12))
@example(documents=[])
@example(documents=[None])
@example(documents=[b""])
@example(documents=[DOCUMENT.replace(b'"leader":1', b'"leader":9999999999'), DOCUMENT])
@example(documents=[DOCUMENT + b"\n" + DOCUMENT, b""])
@example(documents=[DOCUMENT.replace(b'"leader":1', b'"lea1der":'), DOCUMENT])
@example(documents=[DOCUMENT + b"\n"])
def test_the_column_decoder_agrees_with_the_single_one(documents: list[bytes | None]):
    """The reference is decode_partition_state, which must read every document in the usual form the same."""
    columns = decode_partition_states([f"/{place}" for place in range(len(documents))], documents)

    assert _single_states(documents) == [columns.state(place) for place in range(len(documents))]
    assert {
        place for place, state in enumerate(_single_states(documents)) if state is None and documents[place] is not None
    } == set(columns.errors)
    assert len(columns.isr) == columns.isr_offsets[-1]


@given(states=st.lists(ODD, max_size=12), controller_epoch=INT32)
def test_the_column_encoder_agrees_with_the_single_one(states: list[PartitionState], controller_epoch: int):
    """The reference is encode_partition_state."""
    expected = [
        encode_partition_state(
            PartitionState(state.leader, state.leader_epoch, state.isr, controller_epoch, state.leader_recovery_state)
        )
        for state in states
    ]

    assert (
        encode_partition_states(
            np.array([state.leader for state in states], np.int32),
            np.array([state.leader_epoch for state in states], np.int32),
            controller_epoch,
            np.array([broker for state in states for broker in state.isr], np.int32),
            np.concatenate(([0], np.cumsum([len(state.isr) for state in states]))).astype(np.int64),
            leader_recovery_state=np.array([state.leader_recovery_state for state in states], np.int8),
        )
        == expected
    )


def test_encoded_states_are_decoded_again():
    """Columns of documents are encoded as the same documents."""
    documents: list[bytes | None] = [
        encode_partition_state(PartitionState(place, place * 2, (place, place + 1), 5)) for place in range(1000)
    ]
    columns = decode_partition_states([""] * 1000, documents)

    written = encode_partition_states(columns.leader, columns.leader_epoch, 5, columns.isr, columns.isr_offsets)

    assert documents == written


def test_an_invalid_document_only_affects_its_partition():
    """One invalid znode must not stop a failover; the error names the znode."""
    columns = decode_partition_states(["/a", "/b", "/c", "/d"], [DOCUMENT, b"garbage", None, DOCUMENT])

    assert columns.present.tolist() == [True, False, False, True]
    assert columns.leader.tolist() == [1, -1, -1, 1]
    assert columns.isr.tolist() == [1, 2, 1, 2]
    assert {place: error.path for place, error in columns.errors.items()} == {1: "/b"}


def test_every_document_needs_its_path():
    """Otherwise an error would name the wrong znode."""
    with pytest.raises(ValueError, match="1 paths for 2 documents"):
        decode_partition_states(["/a"], [None, None])

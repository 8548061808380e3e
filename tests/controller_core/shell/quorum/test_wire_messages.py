"""Messages of the quorum's nodes in Kafka's encoding: what one node sends, another one reads."""

from dataclasses import replace
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controller_core.quorum import messages
from controller_core.quorum.batches import (
    Batch,
    KRaftVersionRecord,
    LeaderChangeRecord,
    Position,
    VotersRecord,
    control_batch,
)
from controller_core.quorum.messages import (
    ANY_HIGH_WATERMARK,
    FailedResponse,
    FetchResponse,
    FetchSnapshotResponse,
    Leadership,
    RequestBody,
    ResponseBody,
    VoteRequest,
    VoteResponse,
)
from controller_core.quorum.voters import NO_NODE, Endpoint, ReplicaKey, VersionRange, Voter, VoterSet
from controller_core.shell.quorum.wire_batches import data_payload, decode_log, encode_log, snapshot_voters
from controller_core.shell.quorum.wire_requests import (
    API_OF,
    LogTopic,
    WrongTopicError,
    decode_request,
    encode_request,
)
from controller_core.shell.quorum.wire_responses import decode_response, encode_response, wrong_topic_body
from kafka_log.format.batches import control_batches
from kafka_log.format.control_records import snapshot_batches
from kafka_wire import ApiKey, Body, ErrorCode, codec
from kafka_wire.codec import CodecError
from kafka_wire.records import CorruptBatch

TOPIC = LogTopic("__cluster_metadata", UUID(int=1))
NOW_MS = 1_700_000_000_000

INTS = st.integers(0, 2**31 - 1)
LONGS = st.integers(0, 2**63 - 1)
CLUSTERS = st.none() | st.just("cluster")
DIRECTORIES = st.none() | st.integers(1, 2**128 - 1).map(lambda number: UUID(int=number))
KEYS = st.builds(ReplicaKey, INTS, DIRECTORIES)
ENDPOINTS = st.lists(
    st.builds(Endpoint, st.sampled_from(["CONTROLLER", "B"]), st.just("host"), st.integers(0, 65535)), max_size=2
).map(tuple)
POSITIONS = st.builds(Position, LONGS, INTS)
ANSWERED_ENDPOINTS = st.none() | st.just(Endpoint("", "host", 9))
LEADERSHIPS = st.builds(Leadership, INTS, INTS, ANSWERED_ENDPOINTS) | st.builds(Leadership, INTS, st.just(NO_NODE))
ERRORS = st.sampled_from([ErrorCode.NONE, ErrorCode.FENCED_LEADER_EPOCH, ErrorCode.NOT_LEADER_OR_FOLLOWER])
LEVELS = st.builds(VersionRange, st.integers(0, 1), st.integers(0, 1))

REQUESTS = st.one_of(
    st.builds(VoteRequest, CLUSTERS, INTS, KEYS, st.none() | KEYS, POSITIONS, st.booleans()),
    st.builds(messages.BeginQuorumEpochRequest, CLUSTERS, INTS, INTS, ENDPOINTS, st.none() | KEYS),
    st.builds(messages.EndQuorumEpochRequest, CLUSTERS, INTS, INTS, st.lists(KEYS, max_size=2).map(tuple), ENDPOINTS),
    st.builds(messages.FetchRequest, CLUSTERS, INTS, KEYS, POSITIONS, LONGS, INTS, INTS),
    st.builds(messages.FetchSnapshotRequest, CLUSTERS, INTS, KEYS, POSITIONS, LONGS, INTS),
    st.builds(messages.AddRaftVoterRequest, CLUSTERS, INTS, KEYS, ENDPOINTS, st.booleans()),
    st.builds(messages.RemoveRaftVoterRequest, CLUSTERS, KEYS),
    st.builds(messages.UpdateRaftVoterRequest, CLUSTERS, INTS, KEYS, ENDPOINTS, LEVELS),
)
RESPONSES = st.one_of(
    st.builds(VoteResponse, ERRORS, LEADERSHIPS, st.booleans()),
    st.builds(messages.BeginQuorumEpochResponse, ERRORS, LEADERSHIPS),
    st.builds(messages.EndQuorumEpochResponse, ERRORS, LEADERSHIPS),
    st.builds(FetchResponse, ERRORS, LEADERSHIPS, LONGS, LONGS, st.none() | POSITIONS, st.none() | POSITIONS),
    st.builds(FetchSnapshotResponse, ERRORS, LEADERSHIPS, POSITIONS, LONGS, LONGS),
    st.builds(messages.UpdateRaftVoterResponse, ERRORS, LEADERSHIPS),
    st.builds(messages.AddRaftVoterResponse, st.just(ErrorCode.DUPLICATE_VOTER), st.just("known")),
    st.builds(messages.RemoveRaftVoterResponse, st.just(ErrorCode.NONE), st.none()),
)
API_OF_RESPONSE = {
    getattr(messages, f"{request.__name__.removesuffix('Request')}Response"): key for request, key in API_OF.items()
}


def highest(key: ApiKey) -> int:
    """Return the highest version of an API."""
    return codec.versions(f"{key.message}Request")[1]


def sent(request: RequestBody, version: int) -> RequestBody:
    """Return a request as the receiver reads it."""
    key = API_OF[type(request)]
    name = f"{key.message}Request"
    body = codec.decode(name, version, codec.encode(name, version, encode_request(request, TOPIC, version)))
    return decode_request(key, version, body, TOPIC)


def answered(response: ResponseBody, version: int, data: bytes = b"") -> ResponseBody:
    """Return a response as the receiver reads it."""
    key = API_OF_RESPONSE[type(response)]
    name = f"{key.message}Response"
    body = codec.decode(name, version, codec.encode(name, version, encode_response(response, TOPIC, version, data)))
    return decode_response(key, version, body, TOPIC)


@given(REQUESTS)
def test_a_request_of_the_highest_version_arrives_as_it_was_sent(request: RequestBody) -> None:
    """Each request that a node sends."""
    assert sent(request, highest(API_OF[type(request)])) == request


@given(RESPONSES)
def test_a_response_of_the_highest_version_arrives_as_it_was_sent(response: ResponseBody) -> None:
    """Each response that a node gives to another one."""
    assert answered(response, highest(API_OF_RESPONSE[type(response)])) == response


def test_a_pre_vote_cannot_be_asked_for_in_an_old_version() -> None:
    """Without PreVote the request would be one for a vote."""
    request = VoteRequest("cluster", 3, ReplicaKey(1), ReplicaKey(2), Position(5, 2), pre_vote=True)

    with pytest.raises(CodecError, match="pre_vote"):
        sent(request, 1)


def test_a_vote_of_version_0_has_no_directories() -> None:
    """Directory ids came with KIP-853."""
    request = VoteRequest("cluster", 3, ReplicaKey(1, UUID(int=7)), ReplicaKey(2, UUID(int=8)), Position(5, 2))

    assert sent(request, 0) == replace(request, candidate=ReplicaKey(1), voter=None)


@pytest.mark.parametrize("version", range(4, 13))
def test_a_fetch_whose_topic_has_a_name_is_refused(version: int) -> None:
    """RaftUtil.hasValidTopicPartition compares the topic's id, which came with version 13; versions 4 to 6 have no field for the error."""
    content = {"replica_id": 1, "topics": [{"topic": TOPIC.name, "partitions": [{"partition": 0}]}]}
    body = codec.decode("FetchRequest", version, codec.encode("FetchRequest", version, content))
    refusal = codec.encode("FetchResponse", version, wrong_topic_body(ApiKey.FETCH, body))
    expected = ErrorCode.INVALID_REQUEST if version >= 7 else ErrorCode.NONE

    with pytest.raises(WrongTopicError):
        decode_request(ApiKey.FETCH, version, body, TOPIC)
    assert codec.decode("FetchResponse", version, refusal)["error_code"] == expected


@pytest.mark.parametrize("version", range(13, 19))
def test_a_fetch_of_each_version_that_the_quorum_uses_arrives(version: int) -> None:
    """Replicas have an id at the top before version 15, directories come in 17."""
    key = ReplicaKey(1, UUID(int=7) if version >= 17 else None)
    high_watermark = 4 if version >= 18 else ANY_HIGH_WATERMARK
    request = messages.FetchRequest("cluster", 3, key, Position(5, 2), high_watermark, 500, 1000)

    assert sent(replace(request, high_watermark=4), version) == request


@pytest.mark.parametrize("key", [ApiKey.VOTE, ApiKey.BEGIN_QUORUM_EPOCH, ApiKey.END_QUORUM_EPOCH, ApiKey.FETCH])
def test_an_error_of_the_whole_request_is_at_the_top(key: ApiKey) -> None:
    """As in Kafka, a wrong cluster id; the responses of a node that knows an epoch have it in the partition."""
    response = next(kind for kind, api in API_OF_RESPONSE.items() if api is key)(ErrorCode.INCONSISTENT_CLUSTER_ID)

    assert encode_response(response, TOPIC, highest(key)) == {"error_code": ErrorCode.INCONSISTENT_CLUSTER_ID}
    assert answered(response, highest(key)) == response


def test_a_request_for_another_topic_is_refused() -> None:
    """Source: RaftUtil.hasValidTopicPartition."""
    body = encode_request(
        VoteRequest("cluster", 3, ReplicaKey(1), None, Position(5, 2)), LogTopic("other", TOPIC.id), 2
    )

    with pytest.raises(WrongTopicError):
        decode_request(ApiKey.VOTE, 2, body, TOPIC)


@pytest.mark.parametrize(
    ("partitions", "expected"),
    [
        (
            [7],
            {
                "topics": [
                    {
                        "name": "other",
                        "partitions": [
                            {"index": 7, "error_code": ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "unaligned_records": b""}
                        ],
                    }
                ]
            },
        ),
        ([], {"error_code": ErrorCode.INVALID_REQUEST}),
        ([7, 8], {"error_code": ErrorCode.INVALID_REQUEST}),
    ],
)
def test_a_snapshot_of_another_partition_is_unknown_in_that_partition(partitions: list[int], expected: Body) -> None:
    """KafkaRaftClientSnapshotTest.testFetchSnapshotRequestUnknownPartition; without exactly one partition the request is invalid."""
    request = {"topics": [{"name": "other", "partitions": [{"partition": partition} for partition in partitions]}]}
    body = wrong_topic_body(ApiKey.FETCH_SNAPSHOT, request)

    assert body == expected
    assert codec.encode("FetchSnapshotResponse", 1, body)


def test_a_response_without_the_partition_is_a_failure() -> None:
    """The node then asks again after its backoff."""
    body = codec.decode("VoteResponse", 2, codec.encode("VoteResponse", 2, {"topics": []}))

    assert decode_response(ApiKey.VOTE, 2, body, TOPIC) == FailedResponse(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)


VOTERS = VoterSet.of(
    Voter(
        ReplicaKey(voter_id, UUID(int=voter_id)), (Endpoint("CONTROLLER", f"host-{voter_id}", 9),), VersionRange(0, 1)
    )
    for voter_id in (1, 2)
)
FIRST = control_batch(0, 4, LeaderChangeRecord(1, (1, 2), (1,)), KRaftVersionRecord(1), VotersRecord(VOTERS))
SECOND = Batch(3, 4, 4, data_payload([b"one", b"two"], NOW_MS))


def log_bytes() -> bytes:
    """Return the two batches as a log has them."""
    return encode_log(FIRST, NOW_MS) + encode_log(SECOND, NOW_MS)


def test_batches_arrive_with_their_control_records_and_opaque_data() -> None:
    """Control records of the quorum: leader, voters, kraft.version."""
    found = decode_log(log_bytes(), is_verified=False)

    assert [replace(found_slice, payload=b"") for found_slice in found] == [FIRST, replace(SECOND, payload=b"")]
    assert b"".join(found_slice.payload for found_slice in found) == log_bytes()


def test_the_control_batches_of_a_log_are_found_among_its_other_records() -> None:
    """A start reads the whole log for the voters in it; a batch that is cut off is read with the next bytes."""
    other = encode_log(replace(SECOND, base_offset=5, last_offset=6), NOW_MS)

    assert control_batches(log_bytes() + other) == ([encode_log(FIRST, NOW_MS)], 7)
    assert control_batches(log_bytes() + other[:-1]) == ([encode_log(FIRST, NOW_MS)], 5)
    assert control_batches(other[:-1]) == ([], None)


def test_a_fetched_batch_is_appended_byte_for_byte() -> None:
    """The logs of all voters have the same bytes."""
    (_, fetched) = decode_log(log_bytes(), is_verified=False)

    assert encode_log(fetched, NOW_MS + 1) == fetched.payload


def test_a_batch_that_is_cut_off_at_the_end_of_a_response_is_left_out() -> None:
    """Fetch limits a response by bytes, not by batches."""
    assert len(decode_log(log_bytes()[:-1], is_verified=False)) == 1


def test_corrupt_records_do_not_reach_the_node() -> None:
    """With a wrong checksum the whole response counts as none, so that it is fetched again."""
    corrupt = bytearray(log_bytes())
    corrupt[-2] ^= 1
    body = encode_response(FetchResponse(leadership=Leadership(4, 1), high_watermark=0), TOPIC, 17, bytes(corrupt))
    answer = codec.decode("FetchResponse", 17, codec.encode("FetchResponse", 17, body))

    with pytest.raises(CorruptBatch):
        decode_log(bytes(corrupt), is_verified=False)
    assert decode_response(ApiKey.FETCH, 17, answer, TOPIC) == FailedResponse(ErrorCode.CORRUPT_MESSAGE)


def test_a_snapshot_begins_with_the_voters() -> None:
    """None at kraft.version 0."""
    stored = encode_log(control_batch(0, 0, VotersRecord(VOTERS)), NOW_MS)
    static = b"".join(snapshot_batches((), epoch=0, timestamp_ms=0, last_contained_timestamp_ms=0))

    assert snapshot_voters(stored) == (VOTERS, 0)
    assert snapshot_voters(static) == (None, 0)

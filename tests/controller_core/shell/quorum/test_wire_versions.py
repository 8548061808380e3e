"""Messages of the quorum in each version: the same bytes as Kafka's RaftUtil writes.

The bodies are those of Kafka's RaftUtilTest, with partition 0, and with the cluster, replica and wait that KafkaRaftClient sets in a
Fetch.
"""

from uuid import UUID

import pytest

from controller_core.quorum import messages
from controller_core.quorum.batches import Position
from controller_core.quorum.messages import Leadership, RequestBody, ResponseBody
from controller_core.quorum.voters import Endpoint, ReplicaKey
from controller_core.shell.quorum.wire_requests import API_OF, LogTopic, encode_request
from controller_core.shell.quorum.wire_responses import encode_response
from kafka_wire import ApiKey, Body, ErrorCode, codec
from kafka_wire.codec import CodecError

CLUSTER = "I4ZmrWqfT2e-upky_4fdPA"
TOPIC = LogTopic("topic", UUID(int=1))
FIRST, SECOND = UUID(int=1), UUID(int=2)

KNOWN = Leadership(1, 1, Endpoint("", "localhost", 9990))
LEADER = {"leader_id": 1, "leader_epoch": 1}
ENDPOINTS = (Endpoint("PLAINTEXT", "localhost", 9990),)
ENDPOINT_BODIES = [{"name": "PLAINTEXT", "host": "localhost", "port": 9990}]
NODE_ENDPOINTS = {"node_endpoints": [{"node_id": 1, "host": "localhost", "port": 9990}]}


def of_cluster(partition: Body, **fields: object) -> Body:
    """Return the body of a request of the cluster about the partition."""
    return {"cluster_id": CLUSTER, **about(partition), **fields}


def about(partition: Body, **fields: object) -> Body:
    """Return the body of a message about the partition."""
    return {"topics": [{"topic_name": "topic", "partitions": [{"partition_index": 0, **partition}]}], **fields}


def vote(*, pre_vote: bool) -> RequestBody:
    """Return a request for a vote."""
    candidate, voter = ReplicaKey(1, FIRST), ReplicaKey(2, SECOND)
    return messages.VoteRequest(CLUSTER, 1, candidate, voter, Position(1000, 1000), pre_vote)


CANDIDATE = {"replica_epoch": 1, "replica_id": 1, "last_offset_epoch": 1000, "last_offset": 1000}
CANDIDATE_AND_VOTER = {**CANDIDATE, "replica_directory_id": FIRST, "voter_directory_id": SECOND}

BEGIN = messages.BeginQuorumEpochRequest(CLUSTER, 1, 1, ENDPOINTS, ReplicaKey(1, FIRST))
END = messages.EndQuorumEpochRequest(CLUSTER, 1, 1, (ReplicaKey(1, FIRST),))
SUCCESSOR = {"candidate_id": 1, "candidate_directory_id": FIRST}
FETCH_SNAPSHOT = messages.FetchSnapshotRequest(CLUSTER, 1, ReplicaKey(1, FIRST), Position(10, 1), 10, 1000)
FETCH = messages.FetchRequest(CLUSTER, 5, ReplicaKey(1, FIRST), Position(333, 10), 4, 500, 1000)


def snapshot_wanted(**fields: object) -> Body:
    """Return the body of a FetchSnapshot request."""
    partition = {
        "partition": 0,
        "current_leader_epoch": 1,
        "snapshot_id": {"end_offset": 10, "epoch": 1},
        "position": 10,
        **fields,
    }
    topics = [{"name": "topic", "partitions": [partition]}]
    return {"cluster_id": CLUSTER, "replica_id": 1, "max_bytes": 1000, "topics": topics}


def fetch(topic: Body, replica: Body, **fields: object) -> Body:
    """Return the body of a Fetch."""
    partition = {
        "partition": 0,
        "current_leader_epoch": 5,
        "fetch_offset": 333,
        "last_fetched_epoch": 10,
        "log_start_offset": -1,
        "partition_max_bytes": 0,
        **fields,
    }
    return {
        "cluster_id": CLUSTER,
        "max_wait_ms": 500,
        "min_bytes": 0,
        "max_bytes": 1000,
        "isolation_level": 0,
        "session_id": 0,
        "session_epoch": -1,
        "topics": [{**topic, "partitions": [partition]}],
        "forgotten_topics_data": [],
        "rack_id": "",
        **replica,
    }


NAME, ID = {"topic": "topic"}, {"topic_id": FIRST}
REPLICA, REPLICA_STATE = {"replica_id": 1}, {"replica_state": {"replica_id": 1, "replica_epoch": -1}}


@pytest.mark.parametrize(
    ("request_body", "version", "expected"),
    [
        (vote(pre_vote=False), 0, of_cluster(CANDIDATE)),
        (vote(pre_vote=False), 1, of_cluster(CANDIDATE_AND_VOTER, voter_id=2)),
        (vote(pre_vote=True), 2, of_cluster({**CANDIDATE_AND_VOTER, "pre_vote": True}, voter_id=2)),
        (BEGIN, 0, of_cluster(LEADER)),
        (BEGIN, 1, of_cluster({**LEADER, "voter_directory_id": FIRST}, voter_id=1, leader_endpoints=ENDPOINT_BODIES)),
        (END, 0, of_cluster({**LEADER, "preferred_successors": [1]})),
        (END, 1, of_cluster({**LEADER, "preferred_candidates": [SUCCESSOR]}, leader_endpoints=[])),
        (FETCH_SNAPSHOT, 0, snapshot_wanted()),
        (FETCH_SNAPSHOT, 1, snapshot_wanted(replica_directory_id=FIRST)),
        (FETCH, 12, fetch(NAME, REPLICA)),
        (FETCH, 13, fetch(ID, REPLICA)),
        (FETCH, 15, fetch(ID, REPLICA_STATE)),
        (FETCH, 17, fetch(ID, REPLICA_STATE, replica_directory_id=FIRST)),
        (FETCH, 18, fetch(ID, REPLICA_STATE, replica_directory_id=FIRST, high_watermark=4)),
        *((messages.DescribeQuorumRequest(), version, about({})) for version in (0, 1, 2)),
    ],
)
def test_a_request_has_kafkas_fields_of_its_version(request_body: RequestBody, version: int, expected: Body) -> None:
    """What an old version does not have is left out: directories, endpoints, the voter that is addressed."""
    name = f"{API_OF[type(request_body)].message}Request"

    assert codec.encode(name, version, encode_request(request_body, TOPIC, version)) == codec.encode(
        name, version, expected
    )


def fetched(topic: Body, **fields: object) -> Body:
    """Return the body of a response to a Fetch."""
    partition = {
        "partition_index": 0,
        "error_code": 0,
        "high_watermark": 1000,
        "last_stable_offset": -1,
        "log_start_offset": 10,
        "aborted_transactions": [],
        "preferred_read_replica": -1,
        "current_leader": LEADER,
        "records": b"",
    }
    responses = [{**topic, "partitions": [partition]}]
    return {"throttle_time_ms": 0, "error_code": 0, "session_id": 0, "responses": responses, **fields}


def snapshot_part(**fields: object) -> Body:
    """Return the body of a response to FetchSnapshot."""
    partition = {
        "index": 0,
        "error_code": 0,
        "snapshot_id": {"end_offset": 0, "epoch": 0},
        "current_leader": LEADER,
        "size": 0,
        "position": 0,
        "unaligned_records": b"",
    }
    topics = [{"name": "topic", "partitions": [partition]}]
    return {"throttle_time_ms": 0, "error_code": 0, "topics": topics, **fields}


def described(replica: Body, **fields: object) -> Body:
    """Return the body of a response to DescribeQuorum with one voter and one observer."""
    both = {"current_voters": [replica], "observers": [replica]}
    return {"error_code": 0, **about({"error_code": 0, **LEADER, "high_watermark": 1000, **both}), **fields}


VOTED = messages.VoteResponse(leadership=KNOWN, granted=True)
GRANT = {"error_code": 0, **LEADER, "vote_granted": True}
BEGUN = messages.BeginQuorumEpochResponse(leadership=KNOWN)
ENDED = messages.EndQuorumEpochResponse(leadership=KNOWN)
ACKNOWLEDGED = {"error_code": 0, **LEADER}
FETCHED = messages.FetchResponse(leadership=KNOWN, high_watermark=1000, log_start_offset=10)
SNAPSHOT_PART = messages.FetchSnapshotResponse(leadership=KNOWN)
REPLICA_1 = messages.ReplicaState(ReplicaKey(1, FIRST), -1, 0, 0)
DESCRIBED = messages.DescribeQuorumResponse(
    leadership=KNOWN, high_watermark=1000, voters=(REPLICA_1,), observers=(REPLICA_1,)
)
OF_REPLICA = {"replica_id": 1, "log_end_offset": -1}
WITH_TIMES = {**OF_REPLICA, "last_fetch_timestamp": 0, "last_caught_up_timestamp": 0}


@pytest.mark.parametrize(
    ("key", "response", "version", "expected"),
    [
        (ApiKey.VOTE, VOTED, 0, about(GRANT)),
        *((ApiKey.VOTE, VOTED, version, about(GRANT, **NODE_ENDPOINTS)) for version in (1, 2)),
        (ApiKey.BEGIN_QUORUM_EPOCH, BEGUN, 0, about(ACKNOWLEDGED)),
        (ApiKey.BEGIN_QUORUM_EPOCH, BEGUN, 1, about(ACKNOWLEDGED, **NODE_ENDPOINTS)),
        (ApiKey.END_QUORUM_EPOCH, ENDED, 0, about(ACKNOWLEDGED)),
        (ApiKey.END_QUORUM_EPOCH, ENDED, 1, about(ACKNOWLEDGED, **NODE_ENDPOINTS)),
        (ApiKey.FETCH, FETCHED, 12, fetched(NAME)),
        *((ApiKey.FETCH, FETCHED, version, fetched(ID)) for version in (13, 16)),
        *((ApiKey.FETCH, FETCHED, version, fetched(ID, **NODE_ENDPOINTS)) for version in (17, 18)),
        (ApiKey.FETCH_SNAPSHOT, SNAPSHOT_PART, 0, snapshot_part()),
        (ApiKey.FETCH_SNAPSHOT, SNAPSHOT_PART, 1, snapshot_part(**NODE_ENDPOINTS)),
        (ApiKey.DESCRIBE_QUORUM, DESCRIBED, 0, described(OF_REPLICA)),
        (ApiKey.DESCRIBE_QUORUM, DESCRIBED, 1, described(WITH_TIMES)),
    ],
)
def test_a_response_has_kafkas_fields_of_its_version(
    key: ApiKey, response: ResponseBody, version: int, expected: Body
) -> None:
    """The leader's endpoint comes with KIP-853."""
    name = f"{key.message}Response"

    assert codec.encode(name, version, encode_response(response, TOPIC, version)) == codec.encode(
        name, version, expected
    )


def test_a_description_of_version_2_has_directories_and_the_endpoints_of_voters() -> None:
    """Messages of errors come with this version too."""
    body = encode_response(DESCRIBED, TOPIC, 2)
    found = codec.decode("DescribeQuorumResponse", 2, codec.encode("DescribeQuorumResponse", 2, body))
    (partition,) = found["topics"][0]["partitions"]

    assert partition["current_voters"] == [{**WITH_TIMES, "replica_directory_id": FIRST}] == partition["observers"]
    assert found["nodes"] == [{"node_id": 1, "listeners": []}]


def test_an_early_answer_cannot_be_asked_for_in_version_0() -> None:
    """RaftUtilTest.testAddRaftVoterRequestAckWhenCommittedNotIgnorable."""
    request = messages.AddRaftVoterRequest(CLUSTER, 1000, ReplicaKey(1, FIRST), (), ack_when_committed=False)

    with pytest.raises(CodecError, match="ack_when_committed"):
        codec.encode("AddRaftVoterRequest", 0, encode_request(request, TOPIC, 0))


@pytest.mark.parametrize("error", ErrorCode, ids=lambda error: error.name)
def test_a_change_of_the_voters_is_refused_with_the_message_of_the_error(error: ErrorCode) -> None:
    """RaftUtilTest.testAddVoterResponse and testRemoveVoterResponse: without an error there is no message."""
    expected = {"error_code": error, "error_message": None if error is ErrorCode.NONE else error.message}

    assert encode_response(messages.AddRaftVoterResponse(error), TOPIC, 0) == expected
    assert encode_response(messages.RemoveRaftVoterResponse(error), TOPIC, 0) == expected

"""Requests between the nodes of a quorum, between the node's values and the bodies of Kafka's messages.

Every request is about the one partition of the quorum's log. Source: Kafka's RaftUtil and KafkaRaftClient.
"""

from dataclasses import dataclass
from typing import Any
from uuid import UUID

from controller_core.quorum import batches, messages, voters
from controller_core.shell.quorum.wire_batches import directory_or_none, directory_or_zero
from kafka_wire import ApiKey, Body
from kafka_wire.net.negotiation import api_versions_request

PARTITION = 0
"""The log has one partition."""

REPLICA_STATE_FROM = 15
"""Version of Fetch from which the replica's id is in ReplicaState (KIP-903)."""


@dataclass(frozen=True, slots=True)
class LogTopic:
    """Name and id of the topic that the log is the only partition of."""

    name: str
    id: UUID

    @property
    def folder_name(self) -> str:
        """Name of the log's folder."""
        return f"{self.name}-{PARTITION}"


class WrongTopicError(Exception):
    """A request or response is not about the quorum's partition, or not only about it."""


API_OF: dict[type[messages.RequestBody], ApiKey] = {
    messages.VoteRequest: ApiKey.VOTE,
    messages.BeginQuorumEpochRequest: ApiKey.BEGIN_QUORUM_EPOCH,
    messages.EndQuorumEpochRequest: ApiKey.END_QUORUM_EPOCH,
    messages.FetchRequest: ApiKey.FETCH,
    messages.FetchSnapshotRequest: ApiKey.FETCH_SNAPSHOT,
    messages.ApiVersionsRequest: ApiKey.API_VERSIONS,
    messages.AddRaftVoterRequest: ApiKey.ADD_RAFT_VOTER,
    messages.RemoveRaftVoterRequest: ApiKey.REMOVE_RAFT_VOTER,
    messages.UpdateRaftVoterRequest: ApiKey.UPDATE_RAFT_VOTER,
    messages.DescribeQuorumRequest: ApiKey.DESCRIBE_QUORUM,
}
"""The API of each request."""


def encode_request(request: messages.RequestBody, topic: LogTopic, version: int) -> Body:
    """Return the body of a request in a version of its API.

    The codec raises CodecError for a field without which an old version would mean something else, such as PreVote.
    """
    match request:
        case messages.VoteRequest():
            return _vote_body(request, topic)
        case messages.BeginQuorumEpochRequest():
            return _begin_body(request, topic)
        case messages.EndQuorumEpochRequest():
            return _end_body(request, topic)
        case messages.FetchRequest():
            return _fetch_body(request, topic, version)
        case messages.FetchSnapshotRequest():
            return _fetch_snapshot_body(request, topic)
        case messages.ApiVersionsRequest():
            return api_versions_request()
        case messages.AddRaftVoterRequest():
            return _voter_body(request.voter) | {
                "cluster_id": request.cluster_id,
                "timeout_ms": request.timeout_ms,
                "listeners": endpoint_bodies(request.endpoints),
                "ack_when_committed": request.ack_when_committed,
            }
        case messages.RemoveRaftVoterRequest():
            return _voter_body(request.voter) | {"cluster_id": request.cluster_id}
        case messages.UpdateRaftVoterRequest(kraft_versions=levels):
            return _voter_body(request.voter) | {
                "cluster_id": request.cluster_id,
                "current_leader_epoch": request.epoch,
                "listeners": endpoint_bodies(request.endpoints),
                "kraft_version_feature": {
                    "min_supported_version": levels.minimum,
                    "max_supported_version": levels.maximum,
                },
            }
        case messages.DescribeQuorumRequest():
            return _in_topic("topic_name", topic, {"partition_index": PARTITION})


def decode_request(key: ApiKey, version: int, body: Body, topic: LogTopic) -> messages.RequestBody:
    """Return the request in a body. Raises WrongTopicError."""
    match key:
        case ApiKey.VOTE:
            return _vote(body, topic)
        case ApiKey.BEGIN_QUORUM_EPOCH:
            return _begin(body, topic)
        case ApiKey.END_QUORUM_EPOCH:
            return _end(body, topic, version)
        case ApiKey.FETCH:
            return _fetch(body, topic, version)
        case ApiKey.FETCH_SNAPSHOT:
            return _fetch_snapshot(body, topic)
        case ApiKey.ADD_RAFT_VOTER:
            voter, endpoints = _voter(body), endpoints_of(body["listeners"])
            return messages.AddRaftVoterRequest(
                body["cluster_id"], body["timeout_ms"], voter, endpoints, body["ack_when_committed"]
            )
        case ApiKey.REMOVE_RAFT_VOTER:
            return messages.RemoveRaftVoterRequest(body["cluster_id"], _voter(body))
        case ApiKey.UPDATE_RAFT_VOTER:
            feature = body["kraft_version_feature"]
            levels = voters.VersionRange(feature["min_supported_version"], feature["max_supported_version"])
            epoch, endpoints = body["current_leader_epoch"], endpoints_of(body["listeners"])
            return messages.UpdateRaftVoterRequest(body["cluster_id"], epoch, _voter(body), endpoints, levels)
        case ApiKey.DESCRIBE_QUORUM:
            the_partition(body["topics"], topic, name="topic_name", index="partition_index")
            return messages.DescribeQuorumRequest()
        case _:
            raise AssertionError(key)


def the_partition(topics: list[Body], topic: LogTopic, *, name: str, index: str) -> Body:
    """Return the one partition of a request or response. Raises WrongTopicError."""
    if len(topics) != 1 or topics[0][name] != topic.name:
        raise WrongTopicError
    return only_partition(topics, index)


def only_partition(topics: list[Body], index: str) -> Body:
    """Return the one partition of the one topic. Raises WrongTopicError."""
    partitions: list[Body] = topics[0]["partitions"]
    if len(partitions) != 1 or partitions[0][index] != PARTITION:
        raise WrongTopicError
    return partitions[0]


def fetch_partition(topics: list[Body], topic: LogTopic, index: str) -> Body:
    """Return the one partition of a Fetch. Raises WrongTopicError, also below version 13: a topic then has a name and no id (KIP-516).

    Kafka announces Fetch from version 4 on as well, and refuses those below 13 (RaftUtil.hasValidTopicPartition).
    """
    if len(topics) != 1 or topics[0]["topic_id"] != topic.id:
        raise WrongTopicError
    return only_partition(topics, index)


def endpoint_bodies(endpoints: voters.Endpoints) -> list[Body]:
    """Return endpoints as a request has them."""
    return [{"name": endpoint.listener, "host": endpoint.host, "port": endpoint.port} for endpoint in endpoints]


def endpoints_of(bodies: list[Body]) -> voters.Endpoints:
    """Return the endpoints in a request."""
    return tuple(voters.Endpoint(body["name"], body["host"], body["port"]) for body in bodies)


def key_of(node_id: int, directory_id: UUID) -> voters.ReplicaKey | None:
    """Return a replica's key; None for no node."""
    return None if node_id == voters.NO_NODE else voters.ReplicaKey(node_id, directory_or_none(directory_id))


def _in_topic(name: str, topic: LogTopic, partition: Body) -> Body:
    return {"topics": [{name: topic.name, "partitions": [partition]}]}


def _voter_body(key: voters.ReplicaKey) -> Body:
    return {"voter_id": key.id, "voter_directory_id": directory_or_zero(key.directory_id)}


def _voter(body: Body) -> voters.ReplicaKey:
    return voters.ReplicaKey(body["voter_id"], directory_or_none(body["voter_directory_id"]))


def _addressee(request: messages.VoteRequest | messages.BeginQuorumEpochRequest) -> tuple[int, UUID]:
    voter = request.voter
    return (
        (voters.NO_NODE, directory_or_zero(None))
        if voter is None
        else (voter.id, directory_or_zero(voter.directory_id))
    )


def _vote_body(request: messages.VoteRequest, topic: LogTopic) -> Body:
    voter_id, voter_directory_id = _addressee(request)
    partition = {
        "partition_index": PARTITION,
        "replica_epoch": request.epoch,
        "replica_id": request.candidate.id,
        "replica_directory_id": directory_or_zero(request.candidate.directory_id),
        "voter_directory_id": voter_directory_id,
        "last_offset_epoch": request.last.epoch,
        "last_offset": request.last.offset,
        "pre_vote": request.pre_vote,
    }
    return {"cluster_id": request.cluster_id, "voter_id": voter_id, **_in_topic("topic_name", topic, partition)}


def _vote(body: Body, topic: LogTopic) -> messages.VoteRequest:
    partition = the_partition(body["topics"], topic, name="topic_name", index="partition_index")
    return messages.VoteRequest(
        body["cluster_id"],
        partition["replica_epoch"],
        voters.ReplicaKey(partition["replica_id"], directory_or_none(partition["replica_directory_id"])),
        key_of(body["voter_id"], partition["voter_directory_id"]),
        batches.Position(partition["last_offset"], partition["last_offset_epoch"]),
        partition["pre_vote"],
    )


def _begin_body(request: messages.BeginQuorumEpochRequest, topic: LogTopic) -> Body:
    voter_id, voter_directory_id = _addressee(request)
    partition = {
        "partition_index": PARTITION,
        "voter_directory_id": voter_directory_id,
        "leader_id": request.leader_id,
        "leader_epoch": request.epoch,
    }
    return {
        "cluster_id": request.cluster_id,
        "voter_id": voter_id,
        **_in_topic("topic_name", topic, partition),
        "leader_endpoints": endpoint_bodies(request.endpoints),
    }


def _begin(body: Body, topic: LogTopic) -> messages.BeginQuorumEpochRequest:
    partition = the_partition(body["topics"], topic, name="topic_name", index="partition_index")
    return messages.BeginQuorumEpochRequest(
        body["cluster_id"],
        partition["leader_epoch"],
        partition["leader_id"],
        endpoints_of(body["leader_endpoints"]),
        key_of(body["voter_id"], partition["voter_directory_id"]),
    )


def _end_body(request: messages.EndQuorumEpochRequest, topic: LogTopic) -> Body:
    partition = {
        "partition_index": PARTITION,
        "leader_id": request.leader_id,
        "leader_epoch": request.epoch,
        "preferred_successors": [key.id for key in request.successors],
        "preferred_candidates": [
            {"candidate_id": key.id, "candidate_directory_id": directory_or_zero(key.directory_id)}
            for key in request.successors
        ],
    }
    return {
        "cluster_id": request.cluster_id,
        **_in_topic("topic_name", topic, partition),
        "leader_endpoints": endpoint_bodies(request.endpoints),
    }


def _end(body: Body, topic: LogTopic, version: int) -> messages.EndQuorumEpochRequest:
    partition = the_partition(body["topics"], topic, name="topic_name", index="partition_index")
    if version == 0:
        successors = tuple(map(voters.ReplicaKey, partition["preferred_successors"]))
    else:
        successors = tuple(
            voters.ReplicaKey(candidate["candidate_id"], directory_or_none(candidate["candidate_directory_id"]))
            for candidate in partition["preferred_candidates"]
        )
    return messages.EndQuorumEpochRequest(
        body["cluster_id"],
        partition["leader_epoch"],
        partition["leader_id"],
        successors,
        endpoints_of(body["leader_endpoints"]),
    )


def _fetch_body(request: messages.FetchRequest, topic: LogTopic, version: int) -> Body:
    partition = {
        "partition": PARTITION,
        "current_leader_epoch": request.epoch,
        "fetch_offset": request.fetched.offset,
        "last_fetched_epoch": request.fetched.epoch,
        "replica_directory_id": directory_or_zero(request.replica.directory_id),
        "high_watermark": request.high_watermark,
    }
    replica: dict[str, Any] = {"replica_id": request.replica.id}
    return {
        "cluster_id": request.cluster_id,
        **({"replica_state": replica} if version >= REPLICA_STATE_FROM else replica),
        "max_wait_ms": request.max_wait_ms,
        "max_bytes": request.max_bytes,
        "topics": [{"topic": topic.name, "topic_id": topic.id, "partitions": [partition]}],
    }


def _fetch(body: Body, topic: LogTopic, version: int) -> messages.FetchRequest:
    partition = fetch_partition(body["topics"], topic, "partition")
    replica_id = body["replica_state"]["replica_id"] if version >= REPLICA_STATE_FROM else body["replica_id"]
    return messages.FetchRequest(
        body["cluster_id"],
        partition["current_leader_epoch"],
        voters.ReplicaKey(replica_id, directory_or_none(partition["replica_directory_id"])),
        batches.Position(partition["fetch_offset"], partition["last_fetched_epoch"]),
        partition.get("high_watermark", messages.ANY_HIGH_WATERMARK),
        body["max_wait_ms"],
        body["max_bytes"],
    )


def _fetch_snapshot_body(request: messages.FetchSnapshotRequest, topic: LogTopic) -> Body:
    partition = {
        "partition": PARTITION,
        "current_leader_epoch": request.epoch,
        "snapshot_id": {"end_offset": request.snapshot.offset, "epoch": request.snapshot.epoch},
        "position": request.position,
        "replica_directory_id": directory_or_zero(request.replica.directory_id),
    }
    return {
        "cluster_id": request.cluster_id,
        "replica_id": request.replica.id,
        "max_bytes": request.max_bytes,
        **_in_topic("name", topic, partition),
    }


def _fetch_snapshot(body: Body, topic: LogTopic) -> messages.FetchSnapshotRequest:
    partition = the_partition(body["topics"], topic, name="name", index="partition")
    snapshot = partition["snapshot_id"]
    return messages.FetchSnapshotRequest(
        body["cluster_id"],
        partition["current_leader_epoch"],
        voters.ReplicaKey(body["replica_id"], directory_or_none(partition["replica_directory_id"])),
        batches.Position(snapshot["end_offset"], snapshot["epoch"]),
        partition["position"],
        body["max_bytes"],
    )

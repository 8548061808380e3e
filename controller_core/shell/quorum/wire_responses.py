"""Responses between the nodes of a quorum, between the node's values and the bodies of Kafka's messages.

An error about the request as a whole, without an epoch and leader, is at the top of a response; others are in its partition. Records and
bytes of snapshots are passed next to the values. Source: Kafka's RaftUtil and KafkaRaftClient.
"""

from collections.abc import Callable

from controller_core.quorum import batches, messages, voters
from controller_core.shell.quorum import wire_batches, wire_requests
from kafka_metadata.metadata_versions import KRAFT_VERSION
from kafka_wire import ApiKey, Body, ErrorCode, failures

_ENDPOINTS_FROM = {
    ApiKey.VOTE: 1,
    ApiKey.BEGIN_QUORUM_EPOCH: 1,
    ApiKey.END_QUORUM_EPOCH: 1,
    ApiKey.FETCH: 17,
    ApiKey.FETCH_SNAPSHOT: 1,
}
"""Version from which a response has the leader's endpoint (KIP-853)."""

_NODES_FROM = _DIRECTORIES_FROM = 2
"""Version of DescribeQuorum from which it has the voters' endpoints, and the directories of replicas (KIP-853)."""


def encode_response(
    response: messages.ResponseBody, topic: wire_requests.LogTopic, version: int, data: bytes = b""
) -> Body:
    """Return the body of a response. `data` are the records or the bytes of a snapshot that it names."""
    match response:
        case messages.VoteResponse():
            partition = {**_known(response.leadership), "vote_granted": response.granted}
            return _election_body(ApiKey.VOTE, response.error, response.leadership, partition, topic, version)
        case messages.BeginQuorumEpochResponse(error=error, leadership=known):
            return _election_body(ApiKey.BEGIN_QUORUM_EPOCH, error, known, _known(known), topic, version)
        case messages.EndQuorumEpochResponse(error=error, leadership=known):
            return _election_body(ApiKey.END_QUORUM_EPOCH, error, known, _known(known), topic, version)
        case messages.FetchResponse():
            return _fetch_body(response, topic, version, data)
        case messages.FetchSnapshotResponse():
            return _fetch_snapshot_body(response, topic, version, data)
        case (
            messages.AddRaftVoterResponse(error=error, message=message)
            | messages.RemoveRaftVoterResponse(error=error, message=message)
        ):
            return {"error_code": error, "error_message": _message(error, message)}
        case messages.UpdateRaftVoterResponse(error=error, leadership=known):
            return {"error_code": error, "current_leader": _known(known) | _host_and_port(known)}
        case messages.DescribeQuorumResponse():
            return _describe_body(response, topic, version)
        case messages.ApiVersionsResponse() | messages.FailedResponse():
            raise AssertionError(response)


def wrong_topic_body(key: ApiKey, request: Body) -> Body:
    """Return the response to a request about another partition than the quorum's."""
    if key is ApiKey.DESCRIBE_QUORUM:
        error = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        return {
            "topics": [
                {
                    "topic_name": topic["topic_name"],
                    "partitions": [
                        {"partition_index": partition["partition_index"], "error_code": error}
                        for partition in topic["partitions"]
                    ],
                }
                for topic in request["topics"]
            ]
        }
    if key is ApiKey.FETCH_SNAPSHOT and [len(topic["partitions"]) for topic in request["topics"]] == [1]:
        (topic,) = request["topics"]
        index = topic["partitions"][0]["partition"]
        partition = {"index": index, "error_code": ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "unaligned_records": b""}
        return {"topics": [{"name": topic["name"], "partitions": [partition]}]}
    return {"error_code": ErrorCode.INVALID_REQUEST}


def decode_response(key: ApiKey, version: int, body: Body, topic: wire_requests.LogTopic) -> messages.ResponseBody:
    """Return the response in a body, or why it cannot be used: another partition, or corrupt records."""
    try:
        return _DECODERS[key](body, topic, version)
    except wire_requests.WrongTopicError:
        return messages.FailedResponse(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    except failures.WireError:
        return messages.FailedResponse(ErrorCode.CORRUPT_MESSAGE)


def error_of(code: int) -> ErrorCode:
    """Return an error; one that is not known here is UNKNOWN_SERVER_ERROR."""
    try:
        return ErrorCode(code)
    except ValueError:
        return ErrorCode.UNKNOWN_SERVER_ERROR


def _is_about_the_request(error: ErrorCode, known: messages.Leadership) -> bool:
    return error is not messages.NONE and known.epoch == messages.UNKNOWN


def _known(known: messages.Leadership) -> Body:
    return {"leader_id": known.leader_id, "leader_epoch": known.epoch}


def _host_and_port(known: messages.Leadership) -> Body:
    return {} if known.endpoint is None else {"host": known.endpoint.host, "port": known.endpoint.port}


def _node_endpoints(key: ApiKey, known: messages.Leadership, version: int) -> Body:
    if known.endpoint is None or version < _ENDPOINTS_FROM[key]:
        return {}
    return {"node_endpoints": [{"node_id": known.leader_id, "host": known.endpoint.host, "port": known.endpoint.port}]}


def _message(error: ErrorCode, message: str | None) -> str | None:
    return None if error is messages.NONE else message or error.message


def _election_body(
    key: ApiKey,
    error: ErrorCode,
    known: messages.Leadership,
    partition: Body,
    topic: wire_requests.LogTopic,
    version: int,
) -> Body:
    if _is_about_the_request(error, known):
        return {"error_code": error}
    entry = {"partition_index": wire_requests.PARTITION, "error_code": error, **partition}
    topics = [{"topic_name": topic.name, "partitions": [entry]}]
    return {"topics": topics, **_node_endpoints(key, known, version)}


def _fetch_body(response: messages.FetchResponse, topic: wire_requests.LogTopic, version: int, records: bytes) -> Body:
    error, known = response.error, response.leadership
    if _is_about_the_request(error, known):
        return {"error_code": error}
    partition: Body = {
        "partition_index": wire_requests.PARTITION,
        "error_code": error,
        "high_watermark": response.high_watermark,
        "log_start_offset": response.log_start_offset,
        "current_leader": _known(known),
        "records": records,
    }
    if response.diverging is not None:
        partition["diverging_epoch"] = _position(response.diverging)
    if response.snapshot is not None:
        partition["snapshot_id"] = _position(response.snapshot)
    responses = [{"topic": topic.name, "topic_id": topic.id, "partitions": [partition]}]
    return {"responses": responses, **_node_endpoints(ApiKey.FETCH, known, version)}


def _fetch_snapshot_body(
    response: messages.FetchSnapshotResponse, topic: wire_requests.LogTopic, version: int, data: bytes
) -> Body:
    error, known = response.error, response.leadership
    if _is_about_the_request(error, known):
        return {"error_code": error}
    partition: Body = {
        "index": wire_requests.PARTITION,
        "error_code": error,
        "current_leader": _known(known),
        "size": response.size_bytes,
        "position": response.position,
        "unaligned_records": data,
    }
    if response.snapshot is not None:
        partition["snapshot_id"] = _position(response.snapshot)
    topics = [{"name": topic.name, "partitions": [partition]}]
    return {"topics": topics, **_node_endpoints(ApiKey.FETCH_SNAPSHOT, known, version)}


def _position(position: batches.Position) -> Body:
    return {"end_offset": position.offset, "epoch": position.epoch}


def _describe_body(response: messages.DescribeQuorumResponse, topic: wire_requests.LogTopic, version: int) -> Body:
    partition = {
        "partition_index": wire_requests.PARTITION,
        "error_code": response.error,
        "error_message": _message(response.error, None),
        **_known(response.leadership),
        "high_watermark": response.high_watermark,
        "current_voters": [_replica(voter, version) for voter in response.voters],
        "observers": [_replica(observer, version) for observer in response.observers],
    }
    body: Body = {"topics": [{"topic_name": topic.name, "partitions": [partition]}]}
    if version >= _NODES_FROM:
        body["nodes"] = [
            {"node_id": voter.key.id, "listeners": wire_requests.endpoint_bodies(voter.endpoints)}
            for voter in response.voters
        ]
    return body


def _replica(state: messages.ReplicaState, version: int) -> Body:
    body: Body = {
        "replica_id": state.key.id,
        "log_end_offset": state.end_offset,
        "last_fetch_timestamp": state.last_fetch_ms,
        "last_caught_up_timestamp": state.last_caught_up_ms,
    }
    if version >= _DIRECTORIES_FROM:
        body["replica_directory_id"] = wire_batches.directory_or_zero(state.key.directory_id)
    return body


def _leadership(known: Body, body: Body) -> messages.Leadership:
    leader_id = known["leader_id"]
    endpoints = (endpoint for endpoint in body.get("node_endpoints", ()) if endpoint["node_id"] == leader_id)
    endpoint = next((voters.Endpoint("", endpoint["host"], endpoint["port"]) for endpoint in endpoints), None)
    return messages.Leadership(known["leader_epoch"], leader_id, endpoint)


def _vote(body: Body, topic: wire_requests.LogTopic, _: int) -> messages.ResponseBody:
    if error := error_of(body["error_code"]):
        return messages.VoteResponse(error)
    partition = wire_requests.the_partition(body["topics"], topic, name="topic_name", index="partition_index")
    return messages.VoteResponse(
        error_of(partition["error_code"]), _leadership(partition, body), partition["vote_granted"]
    )


def _begin(body: Body, topic: wire_requests.LogTopic, _: int) -> messages.ResponseBody:
    if error := error_of(body["error_code"]):
        return messages.BeginQuorumEpochResponse(error)
    partition = wire_requests.the_partition(body["topics"], topic, name="topic_name", index="partition_index")
    return messages.BeginQuorumEpochResponse(error_of(partition["error_code"]), _leadership(partition, body))


def _end(body: Body, topic: wire_requests.LogTopic, _: int) -> messages.ResponseBody:
    if error := error_of(body["error_code"]):
        return messages.EndQuorumEpochResponse(error)
    partition = wire_requests.the_partition(body["topics"], topic, name="topic_name", index="partition_index")
    return messages.EndQuorumEpochResponse(error_of(partition["error_code"]), _leadership(partition, body))


def _fetch(body: Body, topic: wire_requests.LogTopic, _: int) -> messages.ResponseBody:
    if error := error_of(body["error_code"]):
        return messages.FetchResponse(error)
    partition = wire_requests.fetch_partition(body["responses"], topic, "partition_index")
    return messages.FetchResponse(
        error_of(partition["error_code"]),
        _leadership(partition["current_leader"], body),
        partition["high_watermark"],
        partition["log_start_offset"],
        diverging=_position_or_none(partition["diverging_epoch"]),
        snapshot=_position_or_none(partition["snapshot_id"]),
        batches=wire_batches.decode_log(bytes(partition["records"] or b""), is_verified=False),
    )


def _position_or_none(body: Body) -> batches.Position | None:
    """Return an offset and epoch; None where they are the defaults of a response without them."""
    if body["end_offset"] < 0 or body["epoch"] < 0:
        return None
    return batches.Position(body["end_offset"], body["epoch"])


def _fetch_snapshot(body: Body, topic: wire_requests.LogTopic, _: int) -> messages.ResponseBody:
    if error := error_of(body["error_code"]):
        return messages.FetchSnapshotResponse(error)
    partition = wire_requests.the_partition(body["topics"], topic, name="name", index="index")
    return messages.FetchSnapshotResponse(
        error_of(partition["error_code"]),
        _leadership(partition["current_leader"], body),
        _position_or_none(partition["snapshot_id"]),
        partition["size"],
        partition["position"],
        data=bytes(partition["unaligned_records"] or b""),
    )


def _api_versions(body: Body, _: wire_requests.LogTopic, __: int) -> messages.ResponseBody:
    features = {feature["name"]: feature for feature in body["supported_features"]}
    kraft = features.get(KRAFT_VERSION)
    levels = None if kraft is None else voters.VersionRange(kraft["min_version"], kraft["max_version"])
    return messages.ApiVersionsResponse(error_of(body["error_code"]), levels)


def _add_voter(body: Body, _: wire_requests.LogTopic, __: int) -> messages.ResponseBody:
    return messages.AddRaftVoterResponse(error_of(body["error_code"]), body["error_message"])


def _remove_voter(body: Body, _: wire_requests.LogTopic, __: int) -> messages.ResponseBody:
    return messages.RemoveRaftVoterResponse(error_of(body["error_code"]), body["error_message"])


def _update_voter(body: Body, _: wire_requests.LogTopic, __: int) -> messages.ResponseBody:
    known = body["current_leader"]
    endpoint = voters.Endpoint("", known["host"], known["port"]) if known["host"] else None
    leadership = messages.Leadership(known["leader_epoch"], known["leader_id"], endpoint)
    return messages.UpdateRaftVoterResponse(error_of(body["error_code"]), leadership)


_DECODERS: dict[ApiKey, Callable[[Body, wire_requests.LogTopic, int], messages.ResponseBody]] = {
    ApiKey.VOTE: _vote,
    ApiKey.BEGIN_QUORUM_EPOCH: _begin,
    ApiKey.END_QUORUM_EPOCH: _end,
    ApiKey.FETCH: _fetch,
    ApiKey.FETCH_SNAPSHOT: _fetch_snapshot,
    ApiKey.API_VERSIONS: _api_versions,
    ApiKey.ADD_RAFT_VOTER: _add_voter,
    ApiKey.REMOVE_RAFT_VOTER: _remove_voter,
    ApiKey.UPDATE_RAFT_VOTER: _update_voter,
}
"""DescribeQuorum is for tools; a node sends none."""

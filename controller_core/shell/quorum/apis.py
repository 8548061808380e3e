"""APIs of the quorum's listeners: served versions, needed rights, and the handlers that pass requests to the node."""

from functools import partial

from controller_core.quorum import ready, rules, voters
from controller_core.shell.front.handler import RequestHandler
from controller_core.shell.quorum import wire_requests, wire_responses
from controller_core.shell.quorum.driver import Driver
from controller_core.shell.quorum.update_features import update_features
from kafka_metadata.metadata_versions import KRAFT_VERSION
from kafka_node.authorization.acl import ResourceType
from kafka_node.authorization.authorized_operations import authorized_operations
from kafka_node.context import RequestContext
from kafka_node.versions import BrokerVersions
from kafka_wire import ApiKey, Body, ErrorCode, codec, schema
from kafka_wire.encoded_body import EncodedBody
from kafka_wire.net.failures import CloseConnection

SERVED: dict[ApiKey, schema.Versions] = {
    ApiKey.API_VERSIONS: schema.Versions(0, 4),
    ApiKey.VOTE: schema.Versions(0, 2),
    ApiKey.BEGIN_QUORUM_EPOCH: schema.Versions(0, 1),
    ApiKey.END_QUORUM_EPOCH: schema.Versions(0, 1),
    ApiKey.FETCH: schema.Versions(4, 18),
    ApiKey.FETCH_SNAPSHOT: schema.Versions(0, 1),
    ApiKey.DESCRIBE_QUORUM: schema.Versions(0, 2),
    ApiKey.DESCRIBE_CLUSTER: schema.Versions(0, 2),
    ApiKey.UPDATE_FEATURES: schema.Versions(0, 2),
    ApiKey.ADD_RAFT_VOTER: schema.Versions(0, 1),
    ApiKey.REMOVE_RAFT_VOTER: schema.Versions(0, 0),
    ApiKey.UPDATE_RAFT_VOTER: schema.Versions(0, 0),
}
"""Versions of Kafka 4.3's controllers. Fetch below version 13 is answered with INVALID_REQUEST, as by Kafka (`fetch_partition`)."""

_TO_THE_NODE = [
    key for key in SERVED if key not in {ApiKey.API_VERSIONS, ApiKey.DESCRIBE_CLUSTER, ApiKey.UPDATE_FEATURES}
]

CONTROLLERS = 2
"""DescribeCluster's endpoint type of controllers (KIP-919)."""
_BROKERS = 1

_NOT_REQUESTED = -(2**31)
"""Value of cluster_authorized_operations in a response that was not asked for them."""


def handlers(driver: Driver, topic: wire_requests.LogTopic, cluster_id: str) -> dict[ApiKey, RequestHandler]:
    """Return the handlers of all served APIs but ApiVersions, which the front answers."""
    found: dict[ApiKey, RequestHandler] = {key: partial(_answer, driver, topic, key) for key in _TO_THE_NODE}
    return {
        **found,
        ApiKey.DESCRIBE_CLUSTER: partial(_describe_cluster, driver, cluster_id),
        ApiKey.UPDATE_FEATURES: partial(update_features, driver),
    }


def features(driver: Driver) -> BrokerVersions:
    """Return what ApiVersions lists: the levels of kraft.version, and the one in effect once it is above 0 (FinalizedFeatures of Kafka)."""
    level = driver.kraft_version
    supported = {KRAFT_VERSION: (rules.ALL_VERSIONS.minimum, rules.ALL_VERSIONS.maximum)}
    return BrokerVersions({}, supported, finalized_features={KRAFT_VERSION: (level, level)} if level else {})


async def _answer(
    driver: Driver, topic: wire_requests.LogTopic, key: ApiKey, context: RequestContext, body: Body
) -> Body | EncodedBody:
    version = context.api_version
    try:
        request = wire_requests.decode_request(key, version, body, topic)
    except wire_requests.WrongTopicError:
        return wire_responses.wrong_topic_body(key, body)
    answer = await driver.ask(context.listener, request)
    response, encoded = answer.body, answer.encoded
    assert not isinstance(response, ready.AppendResult | ready.UpgradeResult), response
    if encoded is None:
        return wire_responses.encode_response(response, topic, version, answer.data)
    if version not in encoded:
        response_body = wire_responses.encode_response(response, topic, version, answer.data)
        encoded[version] = EncodedBody((codec.encode(f"{key.message}Response", version, response_body),))
    return encoded[version]


async def _describe_cluster(driver: Driver, cluster_id: str, context: RequestContext, body: Body) -> Body:
    """List the voters with an endpoint on the listener of the request; the leader is the controller."""
    node = driver.node
    if node is None:
        raise CloseConnection("the node of the quorum does not run")
    if (error := _wrong_endpoint_type(context.api_version, body["endpoint_type"])) is not None:
        return error
    listed = []
    for voter in node.voters.voters:
        endpoint = voters.endpoint_of(voter.endpoints, context.listener)
        if endpoint is not None:
            listed.append({"broker_id": voter.key.id, "host": endpoint.host, "port": endpoint.port})
    are_requested = body["include_cluster_authorized_operations"]
    return {
        "endpoint_type": CONTROLLERS,
        "cluster_id": cluster_id,
        "controller_id": voters.NO_NODE if node.leader_id is None else node.leader_id,
        "brokers": listed,
        "cluster_authorized_operations": authorized_operations(ResourceType.CLUSTER)
        if are_requested
        else _NOT_REQUESTED,
    }


def _wrong_endpoint_type(version: int, endpoint_type: int) -> Body | None:
    """Refuse a request for brokers, or of an unknown type (AuthHelper.computeDescribeClusterResponse)."""
    if endpoint_type == CONTROLLERS:
        return None
    if endpoint_type != _BROKERS:
        text = f"Unsupported endpoint type {endpoint_type}"
        return {"error_code": ErrorCode.UNSUPPORTED_ENDPOINT_TYPE, "error_message": text}
    error = ErrorCode.INVALID_REQUEST if version == 0 else ErrorCode.MISMATCHED_ENDPOINT_TYPE
    return {"error_code": error, "error_message": "The request was sent to a controller, but asks for brokers."}

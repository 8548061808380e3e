"""FindCoordinator: the broker that coordinates a group, several groups at once from version 4 (KIP-699).

Source: KafkaApis.handleFindCoordinatorRequest, getCoordinator.
"""

from kafka_node.authorization.acl import Operation, ResourceType
from kafka_node.context import RequestContext
from kafka_wire.codec import Body
from kafka_wire.errors import ErrorCode
from light_broker.core.groups.offsets_topic import OFFSETS_TOPIC
from light_broker.core.metadata_view import Endpoint
from light_broker.shell.broker import Broker
from light_broker.shell.topic_creation import create_topics

VERSIONS = (0, 6)

BATCHES_FROM = 4
GROUP, TRANSACTION = 0, 1
"""Types of keys (FindCoordinatorRequest.CoordinatorType)."""

NO_NODE = -1
Found = tuple[ErrorCode, int, Endpoint]
NOWHERE = Endpoint("", -1)


async def handle(broker: Broker, context: RequestContext, body: Body) -> Body:
    """Return the coordinator of each key; the topic `__consumer_offsets` is created with the first one."""
    if context.api_version >= BATCHES_FROM:
        coordinators = []
        for key in body["coordinator_keys"]:
            error, node_id, endpoint = _find(broker, context, body["key_type"], key)
            coordinators.append({"key": key, "error_code": error, **_node(node_id, endpoint)})
        return {"coordinators": coordinators}
    error, node_id, endpoint = _find(broker, context, body["key_type"], body["key"])
    return {
        "error_code": error,
        "error_message": error.message if error else ErrorCode.NONE.name,
        **_node(node_id, endpoint),
    }


def _node(node_id: int, endpoint: Endpoint) -> Body:
    return {"node_id": node_id, "host": endpoint.host, "port": endpoint.port}


def _find(broker: Broker, context: RequestContext, key_type: int, key: str) -> Found:
    may = broker.may(context)
    if key_type == GROUP and not may(Operation.DESCRIBE, ResourceType.GROUP, key):
        return ErrorCode.GROUP_AUTHORIZATION_FAILED, NO_NODE, NOWHERE
    if key_type == TRANSACTION and not may(Operation.DESCRIBE, ResourceType.TRANSACTIONAL_ID, key):
        return ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED, NO_NODE, NOWHERE
    if key_type != GROUP:
        # Transactions and share groups have no coordinator here; with a retriable error clients would ask forever.
        return ErrorCode.INVALID_REQUEST, NO_NODE, NOWHERE
    topic = broker.view.topics.get(OFFSETS_TOPIC)
    if topic is None:
        broker.groups.create_offsets_topic(lambda: create_topics(broker, [OFFSETS_TOPIC]))
        return ErrorCode.COORDINATOR_NOT_AVAILABLE, NO_NODE, NOWHERE
    leader = broker.view.brokers.get(topic.partitions[broker.groups.partition_of(key)].leader)
    if leader is None or leader.is_fenced or context.listener not in leader.endpoints:
        return ErrorCode.COORDINATOR_NOT_AVAILABLE, NO_NODE, NOWHERE
    return ErrorCode.NONE, leader.id, leader.endpoints[context.listener]

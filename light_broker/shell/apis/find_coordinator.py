"""FindCoordinator: the broker that coordinates a group, several groups at once from version 4 (KIP-699).

Source: KafkaApis.handleFindCoordinatorRequest, getCoordinator.
"""

from kafka_node.authorization.acl import Operation, ResourceType
from kafka_node.context import RequestContext
from kafka_wire import Body, ErrorCode
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

NO_TRANSACTIONS = "This broker has no transactions. Remove transactional.id from the producer's settings."


async def handle(broker: Broker, context: RequestContext, body: Body) -> Body:
    """Return the coordinator of each key; the topic `__consumer_offsets` is created with the first one."""
    if context.api_version >= BATCHES_FROM:
        coordinators = []
        for key in body["coordinator_keys"]:
            # Kafka sends no messages in these versions (KafkaApis.handleFindCoordinatorRequestV4AndAbove).
            found = _coordinator(broker, context, body["key_type"], key)
            coordinators.append({"key": key, "error_message": "", **found})
        return {"coordinators": coordinators}
    found = _coordinator(broker, context, body["key_type"], body["key"])
    error: ErrorCode = found["error_code"]
    return {"error_message": error.message if error else ErrorCode.NONE.name, **found}


def _coordinator(broker: Broker, context: RequestContext, key_type: int, key: str) -> Body:
    """Describe the coordinator of a key by the fields that all versions have."""
    error, node_id, endpoint = _find(broker, context, key_type, key)
    described = {"error_code": error, "node_id": node_id, "host": endpoint.host, "port": endpoint.port}
    if key_type != TRANSACTION or error is not ErrorCode.INVALID_REQUEST:
        return described
    if context.api_version < BATCHES_FROM:
        # librdkafka and aiokafka use these versions, and end init_transactions only for this error: all others they retry until a timeout.
        described["error_code"] = ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
    return {**described, "error_message": NO_TRANSACTIONS}


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

"""IncrementalAlterConfigs: this broker changes the levels of its loggers, the control plane all other configs."""

from kafka_node.authorization.acl import CLUSTER_NAME, Operation, ResourceType
from kafka_node.context import RequestContext
from kafka_node.logger_levels import logger_responses, split_loggers
from kafka_wire.api import ApiKey
from kafka_wire.codec import Body
from light_broker.shell.broker import Broker

VERSIONS = (0, 1)


async def handle(broker: Broker, context: RequestContext, body: Body) -> Body:
    """Change what the caller may change."""
    others, loggers = split_loggers(body)
    if not loggers:
        return await broker.control.forward(ApiKey.INCREMENTAL_ALTER_CONFIGS, context, body)
    answer: Body = {"responses": []}
    if others["resources"]:
        answer = await broker.control.forward(ApiKey.INCREMENTAL_ALTER_CONFIGS, context, others)
    changed = logger_responses(
        broker.settings.node_id,
        loggers,
        may_change=broker.may(context)(Operation.ALTER_CONFIGS, ResourceType.CLUSTER, CLUSTER_NAME),
        validate_only=body["validate_only"],
    )
    return {**answer, "responses": [*answer["responses"], *changed]}

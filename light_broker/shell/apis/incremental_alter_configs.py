"""IncrementalAlterConfigs: this broker changes the levels of its loggers, the control plane all other configs."""

from functools import partial

from kafka_node.authorization.acl import CLUSTER_NAME, Operation, ResourceType
from kafka_node.context import RequestContext
from kafka_node.logger_levels import alter_with_loggers
from kafka_wire import ApiKey, Body
from light_broker.shell.broker import Broker

VERSIONS = (0, 1)


async def handle(broker: Broker, context: RequestContext, body: Body) -> Body:
    """Change what the caller may change."""
    may = broker.may(context)
    return await alter_with_loggers(
        broker.settings.node_id,
        body,
        lambda: may(Operation.ALTER_CONFIGS, ResourceType.CLUSTER, CLUSTER_NAME),
        partial(broker.control.forward, ApiKey.INCREMENTAL_ALTER_CONFIGS, context),
    )

"""ListConfigResources: names of resources that may have configs (KIP-1142).

Version 0 lists resources for client metrics, of which this broker has none. Source: KafkaApis.handleListConfigResources.
"""

from kafka_node.configs.resource_types import ConfigResourceType
from kafka_node.context import RequestContext
from kafka_wire import Body, ErrorCode
from light_broker.shell.broker import Broker

VERSIONS = (0, 1)

ALL_TYPES = tuple(kind for kind in ConfigResourceType if kind is not ConfigResourceType.UNKNOWN)


async def handle(broker: Broker, context: RequestContext, body: Body) -> Body:
    """List the resources of the requested types, by default of all types."""
    if context.api_version == 0:
        return {"config_resources": []}
    wanted = body["resource_types"] or ALL_TYPES
    if any(kind not in ALL_TYPES for kind in wanted):
        return {"error_code": ErrorCode.UNSUPPORTED_VERSION, "config_resources": []}
    view = broker.view
    brokers = [str(number) for number in sorted(view.brokers)]
    names = {
        ConfigResourceType.TOPIC: list(view.topics),
        ConfigResourceType.BROKER: brokers,
        ConfigResourceType.BROKER_LOGGER: brokers,
    }
    return {
        "config_resources": [
            {"resource_name": name, "resource_type": int(kind)}
            for kind in ALL_TYPES
            if kind in wanted
            for name in names.get(kind, [])
        ]
    }

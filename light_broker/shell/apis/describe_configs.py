"""DescribeConfigs: configs of topics and of this broker, with their sources and synonyms."""

from collections.abc import Mapping

from kafka_node.configs.resource_types import ConfigResourceType
from kafka_node.context import RequestContext
from kafka_node.describe_configs import DescribedNode, describe
from kafka_wire import Body
from light_broker.core.dynamic_settings import DYNAMIC_SETTINGS
from light_broker.core.metadata_view import ConfigResource
from light_broker.shell.broker import Broker

VERSIONS = (1, 4)


async def handle(broker: Broker, context: RequestContext, body: Body) -> Body:
    """Describe each resource that the caller may describe; the others have an error."""
    view = broker.view

    def topic_configs(name: str) -> Mapping[str, str] | None:
        named = ConfigResource(ConfigResourceType.TOPIC, name)
        return view.dynamic_configs(named) if name in view.topics else None

    return describe(DescribedNode(broker.settings, DYNAMIC_SETTINGS, topic_configs), broker.may(context), body)

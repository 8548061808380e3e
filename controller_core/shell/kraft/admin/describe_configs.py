"""DescribeConfigs (versions 1 to 4) at a controller of KRaft mode: its own settings, the defaults of all brokers, and configs of topics, groups and client metrics.

Every controller answers from what it has applied, active or not: a client asks the node that it wants to know about. Source: ControllerApis.
"""

from collections.abc import Callable, Mapping

from controller_core.shell.kraft.security import CommittedImage
from kafka_metadata.image import MetadataImage
from kafka_metadata.records import ResourceType
from kafka_node.authorization.guard import Ask
from kafka_node.configs import described_configs, dynamic_values
from kafka_node.configs.layered_settings import Settings
from kafka_node.context import RequestContext
from kafka_node.describe_configs import CLUSTER_DEFAULT, DescribedNode, describe
from kafka_wire import Body


def current_settings(file: Settings, image: MetadataImage) -> Settings:
    """Return the settings of a node with the dynamic configs of an image that apply."""
    return file.with_dynamic(
        dynamic_values.applicable(image.config_values(ResourceType.BROKER, CLUSTER_DEFAULT), of_all_nodes=True),
        dynamic_values.applicable(image.config_values(ResourceType.BROKER, str(file.node_id)), of_all_nodes=False),
    )


class DescribeConfigsApi:
    """The handler. `file` has the settings of the properties file; `asking` returns the judge of a caller's operations."""

    def __init__(self, controller: CommittedImage, file: Settings, asking: Callable[[RequestContext], Ask]) -> None:
        self._controller = controller
        self._file = file
        self._asking = asking

    async def answer(self, context: RequestContext, body: Body) -> Body:
        """Describe each resource that the caller may describe; the others have an error."""
        image = self._controller.committed_image

        def topic_configs(name: str) -> Mapping[str, str] | None:
            return None if image.topic(name) is None else image.config_values(ResourceType.TOPIC, name)

        node = DescribedNode(
            current_settings(self._file, image), described_configs.ALL_DYNAMIC, topic_configs, image.config_values
        )
        return describe(node, self._asking(context), body)

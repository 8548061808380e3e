"""DescribeConfigs to a controller. Source: ConfigHelper and ControllerApis of Kafka 4.3.1."""

from dataclasses import dataclass
from typing import Any
from uuid import UUID

import pytest

from controller_core.shell.kraft.admin.describe_configs import DescribeConfigsApi
from controller_core.shell.kraft.admin.topics_table import SERVED
from kafka_metadata.image import MetadataImage
from kafka_metadata.records import ConfigRecord, ResourceType, TopicRecord
from kafka_metadata.replay import replay
from kafka_node.authorization.acl import Operation
from kafka_node.authorization.acl import ResourceType as AclResourceType
from kafka_node.authorization.guard import EVERYTHING, Ask
from kafka_node.configs.described_configs import ConfigSource
from kafka_node.configs.layered_settings import Settings
from kafka_node.configs.resource_types import ConfigResourceType
from kafka_node.context import RequestContext
from kafka_wire import ApiKey, ErrorCode, codec

FILE = Settings.of_file(101, {"log.retention.hours": "2", "ssl.key.password": "secret", "max.connections": "9"})
VERSION = SERVED[ApiKey.DESCRIBE_CONFIGS].highest
TOPIC, BROKER = ConfigResourceType.TOPIC, ConfigResourceType.BROKER
IMAGE = replay(
    MetadataImage(),
    [
        TopicRecord("orders", UUID(int=7)),
        ConfigRecord(ResourceType.TOPIC, "orders", "retention.ms", "5"),
        ConfigRecord(ResourceType.BROKER, "", "max.connections", "20"),
        ConfigRecord(ResourceType.BROKER, "101", "max.connections.per.ip", "3"),
        ConfigRecord(ResourceType.BROKER, "1", "max.connections.per.ip", "4"),
    ],
)


@dataclass
class Controller:
    """A controller that has applied an image. Implements CommittedImage."""

    committed_image: MetadataImage


class OnlyTopics:
    """Allows operations on topics. Implements Ask."""

    def __call__(self, operation: Operation, resource_type: AclResourceType, name: str, *, quiet: bool = False) -> bool:  # noqa: ARG002
        """Judge by the type."""
        assert operation is Operation.DESCRIBE_CONFIGS
        return resource_type is AclResourceType.TOPIC

    def on_all(self, operation: Operation, resource_type: AclResourceType) -> bool:
        """Judge by the type."""
        return self(operation, resource_type, "")


async def described(kind: int, name: str, keys: list[str] | None = None, *, may: Ask = EVERYTHING) -> Any:
    """Return the result of one resource, after the codec."""
    resource = {"resource_type": kind, "resource_name": name, "configuration_keys": keys}
    body = {"resources": [resource], "include_synonyms": True, "include_documentation": True}
    api = DescribeConfigsApi(Controller(IMAGE), FILE, lambda _context: may)
    context = RequestContext("CONTROLLER", "app", "127.0.0.1", 1, VERSION, "User:alice")
    response = await api.answer(context, body)
    data = codec.encode("DescribeConfigsResponse", VERSION, response)
    return codec.decode("DescribeConfigsResponse", VERSION, data)["results"][0]


async def config(kind: int, name: str, key: str) -> Any:
    """Return one config of a resource."""
    result = await described(kind, name, [key])
    assert (result["error_code"], result["error_message"]) == (ErrorCode.NONE, "")
    (found,) = result["configs"]
    return found


@pytest.mark.shows("F65")
async def test_a_controller_describes_its_own_settings_with_their_sources() -> None:
    """A dynamic config of this node, then of all nodes, then of the file, then Kafka's default."""
    per_ip, connections = (
        await config(BROKER, "101", "max.connections.per.ip"),
        await config(BROKER, "101", "max.connections"),
    )

    assert (per_ip["value"], per_ip["config_source"]) == ("3", ConfigSource.DYNAMIC_BROKER)
    assert [(synonym["value"], synonym["source"]) for synonym in connections["synonyms"]] == [
        ("20", ConfigSource.DYNAMIC_DEFAULT_BROKER),
        ("9", ConfigSource.STATIC_BROKER),
        ("2147483647", ConfigSource.DEFAULT),
    ]
    assert connections["documentation"].startswith("The maximum number of connections we allow in the broker")
    assert not connections["read_only"]


async def test_secrets_of_a_controller_are_not_shown() -> None:
    """KafkaConfig.maybeSensitive; both names of the node's id have it (KafkaConfig.populateSynonyms)."""
    password = await config(BROKER, "101", "ssl.key.password")

    assert (password["value"], password["is_sensitive"]) == (None, True)
    assert [synonym["value"] for synonym in password["synonyms"]] == [None]
    assert [(await config(BROKER, "101", name))["value"] for name in ("node.id", "broker.id")] == ["101", "101"]


async def test_the_defaults_of_all_nodes_are_those_that_are_set() -> None:
    """The resource with the empty name."""
    result = await described(BROKER, "")

    assert [(config["name"], config["value"]) for config in result["configs"]] == [("max.connections", "20")]


async def test_configs_of_a_topic_follow_the_settings_of_the_controller() -> None:
    """ControllerApis describes topics with the controller's own defaults."""
    retention = await config(TOPIC, "orders", "retention.ms")

    assert (retention["value"], retention["config_source"]) == ("5", ConfigSource.TOPIC)
    assert (await config(TOPIC, "orders", "segment.bytes"))["config_source"] == ConfigSource.DEFAULT
    assert len((await described(TOPIC, "orders", []))["configs"]) == len((await described(TOPIC, "orders"))["configs"])


@pytest.mark.parametrize(
    ("kind", "name", "code", "message"),
    [
        (TOPIC, "none", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ""),
        (TOPIC, "", ErrorCode.INVALID_TOPIC_EXCEPTION, "Topic name is invalid: the empty string is not allowed"),
        (
            BROKER,
            "1",
            ErrorCode.INVALID_REQUEST,
            "Unexpected broker id, expected 101 or empty string, but received 1",
        ),
        (BROKER, "x", ErrorCode.INVALID_REQUEST, "Broker id must be an integer, but it is: x"),
        (BROKER, "9" * 11, ErrorCode.INVALID_REQUEST, f"Broker id must be an integer, but it is: {'9' * 11}"),
        (3, "q", ErrorCode.INVALID_REQUEST, "Unsupported resource type: UNKNOWN"),
    ],
)
async def test_a_resource_that_is_not_described_has_kafkas_error(
    kind: int, name: str, code: ErrorCode, message: str
) -> None:
    """ConfigHelper.describeConfigs."""
    result = await described(kind, name)

    assert (result["error_code"], result["error_message"], result["configs"]) == (code, message, [])


async def test_each_resource_is_authorized_by_itself() -> None:
    """DESCRIBE_CONFIGS on the topic, or on the cluster for a node."""
    node, topic = await described(BROKER, "101", may=OnlyTopics()), await described(TOPIC, "orders", may=OnlyTopics())

    assert (node["error_code"], node["configs"]) == (ErrorCode.CLUSTER_AUTHORIZATION_FAILED, [])
    assert topic["error_code"] == ErrorCode.NONE

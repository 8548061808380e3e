"""Rules of AlterConfigs and IncrementalAlterConfigs for a broker that changes configs itself: standalone, and in ZooKeeper mode. Pure."""

from collections.abc import Container, Mapping

from kafka_node.authorization.acl import CLUSTER_NAME, Operation, ResourceType
from kafka_node.authorization.guard import Ask
from kafka_node.authorization.needs import CODES
from kafka_node.configs.alterations import altered, resource_key
from kafka_node.configs.config_rules import ConfigType
from kafka_node.configs.described_configs import topic_text
from kafka_node.configs.layered_settings import Settings
from kafka_node.configs.resource_types import ConfigResourceType
from kafka_node.configs.setting_table import SETTINGS
from kafka_node.configs.topic_config_table_4 import TOPIC_CONFIGS
from kafka_node.outcomes import duplicates
from kafka_wire import Body, ErrorCode, Failure
from light_broker.core.metadata_view import CLUSTER_DEFAULT

REPEATED = Failure(ErrorCode.INVALID_REQUEST, "Each resource must appear at most once in the request.")


def repeated_resources(body: Body) -> frozenset[str]:
    """Return the keys (`resource_key`) of the resources that a request names more than once."""
    return duplicates(map(resource_key, body["resources"]))


def refused_resource(resource: Body, may: Ask, *, topics: Container[str], node_id: int) -> Failure | None:
    """Return why the configs of a resource cannot be changed here, whatever the change; None if they can."""
    kind, name = resource["resource_type"], resource["resource_name"]
    of = ResourceType.TOPIC if kind == ConfigResourceType.TOPIC else ResourceType.CLUSTER
    if not may(Operation.ALTER_CONFIGS, of, name if of is ResourceType.TOPIC else CLUSTER_NAME):
        return Failure(CODES[of], CODES[of].message)
    if kind == ConfigResourceType.TOPIC:
        if name in topics:
            return None
        return Failure(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"The topic '{name}' does not exist.")
    if kind != ConfigResourceType.BROKER:
        return Failure(ErrorCode.INVALID_REQUEST, f"Configs of resources of type {kind} cannot be changed here.")
    if name not in {CLUSTER_DEFAULT.name, str(node_id)}:
        message = f"Unexpected broker id, expected {node_id} or empty string, but received {name}"
        return Failure(ErrorCode.INVALID_REQUEST, message)
    return None


def altered_topic(
    current: Mapping[str, str], resource: Body, settings: Settings, *, incremental: bool
) -> dict[str, str] | Failure:
    """Return a topic's configs after a request. Whether the values are valid is judged afterwards."""
    defaults = {name: topic_text(name, {}, settings) for name in TOPIC_CONFIGS}
    return altered(current, resource, defaults, _is_list, incremental=incremental)


def altered_brokers(current: Mapping[str, str], resource: Body, *, incremental: bool) -> dict[str, str] | Failure:
    """Return the dynamic settings of a broker, or of all, after a request. Whether the values are valid is judged afterwards."""
    defaults = {name: setting.default or "" for name, setting in SETTINGS.items()}
    return altered(current, resource, defaults, _is_list, incremental=incremental)


def _is_list(name: str) -> bool:
    key = TOPIC_CONFIGS.get(name) or SETTINGS.get(name)
    return key is not None and key.kind is ConfigType.LIST

"""DescribeConfigs of one node: configs of topics, groups and client metrics, and of the node itself with its loggers.

Each resource has an error of its own. Source: ConfigHelper.handleDescribeConfigsRequest, ConfigHelperUtils.
"""

from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from kafka_node.authorization.acl import CLUSTER_NAME, Operation, ResourceType
from kafka_node.authorization.guard import Ask
from kafka_node.authorization.needs import CODES
from kafka_node.configs.described_configs import (
    UNKNOWN_TYPE,
    ConfigEntry,
    ConfigSource,
    broker_entry,
    client_metrics_entry,
    cluster_default_entry,
    group_entry,
    topic_entry,
    topic_source,
)
from kafka_node.configs.documentation import (
    client_metrics_documentation,
    group_documentation,
    setting_documentation,
    topic_documentation,
)
from kafka_node.configs.layered_settings import Settings
from kafka_node.configs.resource_config_table import CLIENT_METRICS_CONFIGS, GROUP_CONFIGS
from kafka_node.configs.resource_types import NODE_ID, ConfigResourceType, resource_type_name
from kafka_node.configs.setting_table import SETTINGS
from kafka_node.configs.topic_config_table_4 import TOPIC_CONFIGS
from kafka_node.logger_levels import logger_levels
from kafka_node.outcomes import error_fields
from kafka_node.topic_names import illegal_name_reason
from kafka_wire import Body, ErrorCode, Failure

CLUSTER_DEFAULT = ""
"""Name of the resource with the defaults of all brokers."""

_JUDGED_AS = {ConfigResourceType.TOPIC: ResourceType.TOPIC, ConfigResourceType.GROUP: ResourceType.GROUP}
"""Types whose resources have ACLs of their own; all others belong to the cluster."""

_DOCUMENTATION: Mapping[ConfigResourceType, Callable[[str], str | None]] = {
    ConfigResourceType.TOPIC: topic_documentation,
    ConfigResourceType.BROKER: setting_documentation,
    ConfigResourceType.CLIENT_METRICS: client_metrics_documentation,
    ConfigResourceType.GROUP: group_documentation,
}

_NO_ERROR: Body = {"error_code": ErrorCode.NONE, "error_message": ""}
"""Kafka's message of success is empty here, where others have none."""

NOT_AN_ID = "Broker id must be an integer, but it is: {}"

Entries = Sequence[ConfigEntry] | Failure
Select = Callable[[Iterable[str]], Iterable[str]]
"""Selects the requested names."""


@dataclass(frozen=True, slots=True)
class DescribedNode:
    """What a node describes at one time."""

    settings: Settings
    dynamic: Container[str]
    """Settings that may change while the node runs."""
    topic_configs: Callable[[str], Mapping[str, str] | None]
    """Returns the configs that are set on a topic; None: there is no such topic."""
    other_configs: Callable[[ConfigResourceType, str], Mapping[str, str]] | None = None
    """Returns the configs that are set on a group or a subscription to client metrics; None: the node has neither."""


def describe(node: DescribedNode, may: Ask, body: Body) -> Body:
    """Describe each resource that the caller may describe; the others have an error."""
    return {"results": [_result(node, may, resource, body) for resource in body["resources"]]}


def _result(node: DescribedNode, may: Ask, resource: Body, request: Body) -> Body:
    kind, name = resource["resource_type"], resource["resource_name"]
    of = _JUDGED_AS.get(kind, ResourceType.CLUSTER)
    allowed = may(Operation.DESCRIBE_CONFIGS, of, CLUSTER_NAME if of is ResourceType.CLUSTER else name)
    found = (
        _entries(node, kind, name, _select(resource["configuration_keys"]))
        if allowed
        else Failure(CODES[of], CODES[of].message)
    )
    failure = found if isinstance(found, Failure) else None
    entries = () if isinstance(found, Failure) else found
    return {
        **(_NO_ERROR if failure is None else error_fields(failure)),
        "resource_type": kind,
        "resource_name": name,
        "configs": [_config(entry, kind, request) for entry in entries],
    }


def _select(keys: Sequence[str] | None) -> Select:
    """Return a selection of requested names; null and, since Kafka 4.3, an empty list mean all."""
    wanted = frozenset(keys or ())
    return lambda names: (name for name in names if not wanted or name in wanted)


def _entries(node: DescribedNode, kind: int, name: str, select: Select) -> Entries:
    match kind:
        case ConfigResourceType.TOPIC:
            return _topic_entries(node, name, select)
        case ConfigResourceType.BROKER:
            return _broker_entries(node, name, select)
        case ConfigResourceType.BROKER_LOGGER:
            return _logger_entries(node.settings.node_id, name, select)
        case ConfigResourceType.GROUP if node.other_configs is not None:
            if not name:
                return Failure(ErrorCode.INVALID_REQUEST, "Group name must not be empty")
            overrides = node.other_configs(ConfigResourceType.GROUP, name)
            return [group_entry(name, overrides, node.settings) for name in select(GROUP_CONFIGS)]
        case ConfigResourceType.CLIENT_METRICS if node.other_configs is not None:
            if not name:
                return Failure(ErrorCode.INVALID_REQUEST, "Client metrics subscription name must not be empty")
            overrides = node.other_configs(ConfigResourceType.CLIENT_METRICS, name)
            return [client_metrics_entry(name, overrides) for name in select(CLIENT_METRICS_CONFIGS)]
        case _:
            message = f"Unsupported resource type: {resource_type_name(kind)}"
            return Failure(ErrorCode.INVALID_REQUEST, message)


def _topic_entries(node: DescribedNode, name: str, select: Select) -> Entries:
    if (reason := illegal_name_reason(name)) is not None:
        return Failure(ErrorCode.INVALID_TOPIC_EXCEPTION, f"Topic name is invalid: {reason}")
    overrides = node.topic_configs(name)
    if overrides is None:
        return Failure(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "")
    return [topic_entry(name, overrides, node.settings) for name in select(TOPIC_CONFIGS)]


def _broker_entries(node: DescribedNode, name: str, select: Select) -> Entries:
    settings = node.settings
    if name == CLUSTER_DEFAULT:
        return [cluster_default_entry(name, settings, node.dynamic) for name in select(sorted(settings.cluster))]
    if not NODE_ID.fullmatch(name):
        return Failure(ErrorCode.INVALID_REQUEST, NOT_AN_ID.format(name))
    if int(name) != settings.node_id:
        message = f"Unexpected broker id, expected {settings.node_id} or empty string, but received {name}"
        return Failure(ErrorCode.INVALID_REQUEST, message)
    return [broker_entry(name, settings, node.dynamic) for name in select(_setting_names(settings))]


def _logger_entries(node_id: int, name: str, select: Select) -> Entries:
    if not name:
        return Failure(ErrorCode.INVALID_REQUEST, "Broker id must not be empty")
    if not NODE_ID.fullmatch(name):
        return Failure(ErrorCode.INVALID_REQUEST, NOT_AN_ID.format(name))
    if int(name) != node_id:
        return Failure(ErrorCode.INVALID_REQUEST, f"Unexpected broker id, expected {node_id} but received {name}")
    levels = logger_levels()
    return [
        ConfigEntry(logger, levels[logger], ConfigSource.DYNAMIC_BROKER_LOGGER, (), False, False, UNKNOWN_TYPE)
        for logger in select(levels)
    ]


def _setting_names(settings: Settings) -> Iterator[str]:
    """Iterate over the names of Kafka, without its internal ones, and all others that have a value."""
    yield from (name for name, setting in SETTINGS.items() if not setting.is_internal)
    yield from sorted({*settings.file, *settings.cluster, *settings.own} - SETTINGS.keys())


def _config(entry: ConfigEntry, kind: int, request: Body) -> Body:
    synonyms = entry.synonyms if request["include_synonyms"] else ()
    documentation = _DOCUMENTATION.get(ConfigResourceType(kind)) if request["include_documentation"] else None
    return {
        "name": entry.name,
        "value": entry.value,
        "read_only": entry.is_read_only,
        "config_source": entry.source,
        "is_sensitive": entry.is_sensitive,
        "synonyms": [{"name": synonym.name, "value": synonym.value, "source": synonym.source} for synonym in synonyms],
        "config_type": entry.wire_type,
        "documentation": None if documentation is None else documentation(entry.name),
    }


def created_configs(own: Mapping[str, str], settings: Settings) -> list[Body]:
    """Return the configs of a topic as CreateTopics lists them (KIP-525): its own values, else the defaults of its node."""
    return [
        {
            "name": entry.name,
            "value": entry.value,
            "read_only": entry.is_read_only,
            "config_source": topic_source(entry.name, own, settings),
            "is_sensitive": entry.is_sensitive,
        }
        for entry in (topic_entry(name, own, settings) for name in TOPIC_CONFIGS)
    ]

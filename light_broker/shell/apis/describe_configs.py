"""DescribeConfigs: configs of topics and brokers, with their sources and synonyms.

Source: ConfigHelper.handleDescribeConfigsRequest.
"""

from collections.abc import Iterator

from kafka_node.authorization.acl import CLUSTER_NAME, Operation, ResourceType
from kafka_node.authorization.guard import Ask
from kafka_node.authorization.needs import CODES
from kafka_node.configs.documentation import setting_documentation, topic_documentation
from kafka_node.configs.setting_table import SETTINGS
from kafka_node.configs.topic_config_table_4 import TOPIC_CONFIGS
from kafka_node.context import RequestContext
from kafka_node.outcomes import error_fields
from kafka_node.topic_names import illegal_name_reason
from kafka_wire.codec import Body
from kafka_wire.errors import ErrorCode, Failure
from light_broker.core.configs import (
    ConfigEntry,
    broker_entry,
    cluster_default_entry,
    topic_entry,
)
from light_broker.core.metadata_view import CLUSTER_DEFAULT, ConfigResource, ConfigResourceType, MetadataView
from light_broker.core.settings import Settings
from light_broker.shell.broker import Broker

VERSIONS = (1, 4)


async def handle(broker: Broker, context: RequestContext, body: Body) -> Body:
    """Describe each resource that the caller may describe; the others have an error."""
    may, results = broker.may(context), []
    for resource in body["resources"]:
        found = _entries(broker.view, broker.settings, may, resource)
        outcome = found if isinstance(found, Failure) else None
        results.append(
            {
                **error_fields(outcome),
                "resource_type": resource["resource_type"],
                "resource_name": resource["resource_name"],
                "configs": []
                if isinstance(found, Failure)
                else [_config(entry, resource["resource_type"], body) for entry in found],
            }
        )
    return {"results": results}


def _entries(view: MetadataView, settings: Settings, may: Ask, resource: Body) -> list[ConfigEntry] | Failure:
    kind, name, keys = resource["resource_type"], resource["resource_name"], resource["configuration_keys"]
    of = ResourceType.TOPIC if kind == ConfigResourceType.TOPIC else ResourceType.CLUSTER
    if not may(Operation.DESCRIBE_CONFIGS, of, name if of is ResourceType.TOPIC else CLUSTER_NAME):
        return Failure(CODES[of], CODES[of].message)
    wanted = None if keys is None else set(keys)
    if kind == ConfigResourceType.TOPIC:
        return _topic_entries(view, settings, name, wanted)
    if kind == ConfigResourceType.BROKER:
        return _broker_entries(settings, name, wanted)
    return Failure(ErrorCode.INVALID_REQUEST, f"Unsupported resource type: {_type_name(kind)}")


def _topic_entries(
    view: MetadataView, settings: Settings, name: str, wanted: set[str] | None
) -> list[ConfigEntry] | Failure:
    if (reason := illegal_name_reason(name)) is not None:
        return Failure(ErrorCode.INVALID_TOPIC_EXCEPTION, f"Topic name is invalid: {reason}")
    if name not in view.topics:
        return Failure(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION.message)
    overrides = view.dynamic_configs(ConfigResource(ConfigResourceType.TOPIC, name))
    return [topic_entry(each, overrides, settings) for each in TOPIC_CONFIGS if wanted is None or each in wanted]


def _broker_entries(settings: Settings, name: str, wanted: set[str] | None) -> list[ConfigEntry] | Failure:
    if name == CLUSTER_DEFAULT.name:
        return [
            cluster_default_entry(each, settings)
            for each in sorted(settings.cluster)
            if wanted is None or each in wanted
        ]
    if name != str(settings.node_id):
        words = f"Unexpected broker id, expected {settings.node_id} or empty string, but received {name}"
        return Failure(ErrorCode.INVALID_REQUEST, words)
    return [broker_entry(each, settings) for each in _setting_names(settings) if wanted is None or each in wanted]


def _setting_names(settings: Settings) -> Iterator[str]:
    """Iterate over the names of Kafka, without its internal ones, and all others that have a value."""
    yield from (name for name, setting in SETTINGS.items() if not setting.is_internal)
    yield from sorted({*settings.file, *settings.cluster, *settings.own} - SETTINGS.keys())


def _type_name(kind: int) -> str:
    try:
        return ConfigResourceType(kind).name
    except ValueError:
        return ConfigResourceType.UNKNOWN.name


def _config(entry: ConfigEntry, kind: int, request: Body) -> Body:
    synonyms = entry.synonyms if request["include_synonyms"] else ()
    documentation = topic_documentation if kind == ConfigResourceType.TOPIC else setting_documentation
    return {
        "name": entry.name,
        "value": entry.value,
        "read_only": entry.is_read_only,
        "config_source": entry.source,
        "is_sensitive": entry.is_sensitive,
        "synonyms": [{"name": one.name, "value": one.value, "source": one.source} for one in synonyms],
        "config_type": entry.wire_type,
        "documentation": documentation(entry.name) if request["include_documentation"] else None,
    }

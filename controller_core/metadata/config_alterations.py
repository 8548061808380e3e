"""Changes of configs in KRaft mode: what AlterConfigs and IncrementalAlterConfigs change, from the current image.

Resources of a request are independent of each other, and a resource changes as a whole or not at all. Configs of brokers are judged by the broker
that forwards them, as in Kafka: the controller checks only that the broker, or controller, is registered. Source:
ConfigurationControlManager, ControllerConfigurationValidator, QuorumController.ConfigResourceExistenceChecker.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from controller_core.model import mode_rules, quorum_changes
from controller_core.model.settings import MIN_ISR
from kafka_metadata import metadata_versions, records
from kafka_metadata.image import MetadataImage
from kafka_node.configs import (
    alterations,
    client_metrics_configs,
    config_rules,
    group_configs,
    resource_types,
    setting_table,
    topic_config_table_4,
    topic_configs,
)
from kafka_node.configs.layered_settings import Settings
from kafka_node.outcomes import Outcome
from kafka_node.topic_names import illegal_name_reason
from kafka_wire import Body, ErrorCode, Failure

CORDONED = "cordoned.log.dirs"

CLUSTER_DEFAULT = ""
"""Name of the resource with the defaults of all brokers."""

MAX_VALUE_CHARACTERS = (1 << 15) - 1
"""Longest value of a config in Kafka's records; appending to lists would otherwise exceed every size."""

_DEFAULTS: Mapping[records.ResourceType, alterations.Configs] = {
    records.ResourceType.TOPIC: {name: row.default for name, row in topic_config_table_4.TOPIC_CONFIGS.items()},
    records.ResourceType.BROKER: {
        name: row.default for name, row in setting_table.SETTINGS.items() if row.default is not None
    },
}
"""Values to which elements are appended where a config is not set; lists of other resources cannot be appended to (KafkaRaftServer.configSchema)."""


@dataclass(frozen=True, slots=True)
class Alterations:
    """Outcome of each resource of a request, in its order, and what changes."""

    outcomes: tuple[Outcome, ...]
    changes: tuple[quorum_changes.ConfigsChanged, ...]


def alter_configs(
    image: MetadataImage,
    settings: Settings,
    resources: Sequence[Body | Failure],
    *,
    incremental: bool,
    is_forwarded: bool = False,
) -> Alterations:
    """Decide about each resource of a request; one that is refused already is a Failure.

    `settings` are those of this controller. `is_forwarded`: a broker has judged its own configs.
    """
    decided = [
        resource
        if isinstance(resource, Failure)
        else _alter(image, settings, resource, incremental=incremental, is_forwarded=is_forwarded)
        for resource in resources
    ]
    return Alterations(
        tuple(outcome if isinstance(outcome, Failure) else None for outcome in decided),
        tuple(outcome for outcome in decided if isinstance(outcome, quorum_changes.ConfigsChanged) and outcome.values),
    )


def _alter(
    image: MetadataImage, settings: Settings, resource: Body, *, incremental: bool, is_forwarded: bool
) -> quorum_changes.ConfigsChanged | Failure:
    kind, name = records.ResourceType(resource["resource_type"]), resource["resource_name"]
    current = image.config_values(kind, name)
    configs = alterations.altered(
        current, resource, _DEFAULTS.get(kind, {}), partial(_is_list, kind), incremental=incremental
    )
    if isinstance(configs, Failure):
        return configs
    changed = {key: value for key, value in configs.items() if current.get(key) != value}
    failure = _too_long(changed) or _invalid(image, settings, kind, name, current, configs, is_forwarded=is_forwarded)
    failure = failure or _unknown_resource(image, kind, name)
    if failure is not None:
        return failure
    return quorum_changes.ConfigsChanged(kind, name, {**changed, **dict.fromkeys(current.keys() - configs.keys())})


def _is_list(kind: records.ResourceType, name: str) -> bool:
    row = (
        topic_config_table_4.TOPIC_CONFIGS.get(name)
        if kind is records.ResourceType.TOPIC
        else setting_table.SETTINGS.get(name)
    )
    return kind in _DEFAULTS and row is not None and row.kind is config_rules.ConfigType.LIST


def _too_long(changed: alterations.Configs) -> Failure | None:
    """Refuse values that no record can have."""
    if all(len(value) <= MAX_VALUE_CHARACTERS for value in changed.values()):
        return None
    message = f"The configuration value cannot be added because it exceeds the maximum value size of {MAX_VALUE_CHARACTERS} bytes."
    return Failure(ErrorCode.INVALID_CONFIG, message)


def _invalid(
    image: MetadataImage,
    settings: Settings,
    kind: records.ResourceType,
    name: str,
    current: alterations.Configs,
    configs: alterations.Configs,
    *,
    is_forwarded: bool,
) -> Failure | None:
    """Return why a resource cannot have this name or these configs."""
    match kind:
        case records.ResourceType.TOPIC:
            return _invalid_topic(name, configs)
        case records.ResourceType.BROKER:
            return (
                _invalid_broker(name)
                or _refused_by_elr(image, name, current, configs)
                or _refused_cordon(image, current, configs, is_forwarded=is_forwarded)
            )
        case records.ResourceType.CLIENT_METRICS:
            return client_metrics_configs.client_metrics_failure(name, configs)
        case _:
            if not name:
                return Failure(ErrorCode.INVALID_REQUEST, "Default group resources are not allowed.")
            message = group_configs.group_config_error(configs, settings)
            return None if message is None else Failure(ErrorCode.INVALID_CONFIG, message)


def _invalid_topic(name: str, configs: alterations.Configs) -> Failure | None:
    if not name:
        return Failure(ErrorCode.INVALID_REQUEST, "Default topic resources are not allowed.")
    if (reason := illegal_name_reason(name)) is not None:
        return Failure(ErrorCode.INVALID_TOPIC_EXCEPTION, f"Topic name is invalid: {reason}")
    wrong = topic_configs.topic_config_error(configs, mode_rules.KAFKA_4_CONFIGS)
    return None if wrong is None else Failure(ErrorCode.INVALID_CONFIG, wrong.message)


def _invalid_broker(name: str) -> Failure | None:
    if name == CLUSTER_DEFAULT or resource_types.NODE_ID.fullmatch(name):
        return Failure(ErrorCode.INVALID_REQUEST, "Invalid negative broker ID.") if name.startswith("-") else None
    return Failure(ErrorCode.INVALID_REQUEST, "Unable to parse broker name as a base 10 number.")


def _refused_by_elr(
    image: MetadataImage, name: str, current: alterations.Configs, configs: alterations.Configs
) -> Failure | None:
    """Eligible leader replicas depend on min.insync.replicas, and brokers must not differ in it (KIP-966)."""
    if not image.is_elr_enabled:
        return None
    if name != CLUSTER_DEFAULT and configs.get(MIN_ISR) != current.get(MIN_ISR):
        message = f"Broker-level {MIN_ISR} cannot be altered while ELR is enabled."
        return Failure(ErrorCode.INVALID_CONFIG, message)
    if name == CLUSTER_DEFAULT and MIN_ISR in current and MIN_ISR not in configs:
        message = f"Cluster-level {MIN_ISR} cannot be removed while ELR is enabled."
        return Failure(ErrorCode.INVALID_CONFIG, message)
    return None


def _refused_cordon(
    image: MetadataImage, current: alterations.Configs, configs: alterations.Configs, *, is_forwarded: bool
) -> Failure | None:
    """Only a broker knows its directories: a change that comes to a controller directly may only uncordon (KIP-1066)."""
    if configs.get(CORDONED) == current.get(CORDONED):
        return None
    if (image.metadata_version or 0) < metadata_versions.CORDONED_SINCE:
        message = (
            f"The {CORDONED} configuration value cannot be set because it requires metadata.version >= "
            f"{metadata_versions.version_name(metadata_versions.CORDONED_SINCE)}"
        )
        return Failure(ErrorCode.INVALID_CONFIG, message)
    if is_forwarded or _cordoned(configs) <= _cordoned(current):
        return None
    message = (
        f"When updating {CORDONED} via controllers, the new value must be a subset of the current configuration value."
    )
    return Failure(ErrorCode.INVALID_CONFIG, message)


def _cordoned(configs: alterations.Configs) -> frozenset[str]:
    found = config_rules.parse(config_rules.ConfigType.LIST, configs.get(CORDONED, ""))
    assert isinstance(found, tuple), "a list is parsed into a tuple"
    return frozenset(found)


def _unknown_resource(image: MetadataImage, kind: records.ResourceType, name: str) -> Failure | None:
    """Return that there is no such topic or node; groups and subscriptions need not be there."""
    if kind is records.ResourceType.TOPIC and image.topic(name) is None:
        return Failure(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"The topic '{name}' does not exist.")
    if (
        kind is records.ResourceType.BROKER
        and name != CLUSTER_DEFAULT
        and int(name) not in {*image.brokers, *image.controllers}
    ):
        return Failure(ErrorCode.BROKER_ID_NOT_REGISTERED, f"No node with id {int(name)} found.")
    return None

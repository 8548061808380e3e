"""Changes of configs in KRaft mode: what AlterConfigs and IncrementalAlterConfigs change, from the present image.

Resources of a request are independent of each other, and a resource changes as a whole or not at all. Configs of brokers are judged by the broker
that forwards them, as in Kafka: the controller checks only that the broker, or controller, is registered. Left out: client-metrics, and
configs of groups beyond their names. Source: ConfigurationControlManager, ControllerConfigurationValidator.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from controller_core.decisions.topic_transitions import MIN_ISR
from controller_core.model.changes import ConfigsChanged
from controller_core.model.mode_rules import KAFKA_4_CONFIGS
from kafka_metadata.image import MetadataImage
from kafka_metadata.records import ResourceType
from kafka_node.configs.alterations import Configs, altered
from kafka_node.configs.config_rules import ConfigType
from kafka_node.configs.setting_table import SETTINGS
from kafka_node.configs.topic_config_table_4 import TOPIC_CONFIGS
from kafka_node.configs.topic_configs import topic_config_error
from kafka_node.outcomes import Outcome
from kafka_wire.codec import Body
from kafka_wire.errors import ErrorCode, Failure

CLUSTER_DEFAULT = ""
"""Name of the resource with the defaults of all brokers."""


@dataclass(frozen=True, slots=True)
class Alterations:
    """Outcome of each resource of a request, in its order, and what changes."""

    outcomes: tuple[Outcome, ...]
    changes: tuple[ConfigsChanged, ...]


def alter_configs(image: MetadataImage, resources: Sequence[Body | Failure], *, incremental: bool) -> Alterations:
    """Decide about each resource of a request; one that is refused already is a Failure."""
    decided = [
        each if isinstance(each, Failure) else _alter(image, each, incremental=incremental) for each in resources
    ]
    return Alterations(
        tuple(each if isinstance(each, Failure) else None for each in decided),
        tuple(each for each in decided if isinstance(each, ConfigsChanged) and each.values),
    )


def _alter(image: MetadataImage, resource: Body, *, incremental: bool) -> ConfigsChanged | Failure:
    kind, name = resource["resource_type"], resource["resource_name"]
    if (failure := _unknown_resource(image, kind, name)) is not None:
        return failure
    present = image.config_values(kind, name)
    defaults = {key: row.default for key, row in TOPIC_CONFIGS.items()} if kind == ResourceType.TOPIC else {}
    configs = altered(present, resource, defaults, _is_list, incremental=incremental)
    if isinstance(configs, Failure):
        return configs
    if (failure := _invalid(image, kind, name, present, configs)) is not None:
        return failure
    removed = dict.fromkeys(present.keys() - configs.keys())
    changed = {key: value for key, value in configs.items() if present.get(key) != value}
    return ConfigsChanged(ResourceType(kind), name, {**changed, **removed})


def _unknown_resource(image: MetadataImage, kind: int, name: str) -> Failure | None:
    """Return why a resource has no configs here (QuorumController.ConfigResourceExistenceChecker)."""
    match kind:
        case ResourceType.TOPIC:
            if image.topic(name) is None:
                return Failure(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"The topic '{name}' does not exist.")
        case ResourceType.BROKER:
            if name == CLUSTER_DEFAULT:
                return None
            if not name.isdecimal():
                return Failure(ErrorCode.INVALID_REQUEST, f"Invalid broker name {name}")
            if int(name) not in {*image.brokers, *image.controllers}:
                return Failure(ErrorCode.BROKER_ID_NOT_REGISTERED, f"No node with id {name} found.")
        case ResourceType.GROUP:
            if not name:
                return Failure(ErrorCode.INVALID_REQUEST, "Default group resources are not allowed.")
        case _:
            words = f"Configs of resources of type {kind} cannot be changed by this controller."
            return Failure(ErrorCode.INVALID_REQUEST, words)
    return None


def _is_list(name: str) -> bool:
    row = TOPIC_CONFIGS.get(name) or SETTINGS.get(name)
    return row is not None and row.kind is ConfigType.LIST


def _invalid(image: MetadataImage, kind: int, name: str, present: Configs, configs: Configs) -> Failure | None:
    """Return why a resource cannot have these configs."""
    if kind == ResourceType.TOPIC:
        wrong = topic_config_error(configs, KAFKA_4_CONFIGS)
        return None if wrong is None else Failure(ErrorCode.INVALID_CONFIG, wrong.message)
    if kind == ResourceType.BROKER and image.is_elr_enabled:
        # Eligible leader replicas depend on it, and brokers must not differ in it (KIP-966).
        if name != CLUSTER_DEFAULT and configs.get(MIN_ISR) != present.get(MIN_ISR):
            words = f"Broker-level {MIN_ISR} cannot be altered while ELR is enabled."
            return Failure(ErrorCode.INVALID_CONFIG, words)
        if name == CLUSTER_DEFAULT and MIN_ISR in present and MIN_ISR not in configs:
            words = f"Cluster-level {MIN_ISR} cannot be removed while ELR is enabled."
            return Failure(ErrorCode.INVALID_CONFIG, words)
    return None

"""Changes of dynamic configs by a standalone broker: AlterConfigs and IncrementalAlterConfigs.

Each function returns the next state and the response. Resources of a request are independent of each other, and a resource changes as a
whole or not at all. Source: ConfigurationControlManager, ConfigAdminManager.
"""

from dataclasses import replace

from kafka_node.authorization.acl import CLUSTER_NAME, Operation, ResourceType
from kafka_node.authorization.guard import Ask
from kafka_node.authorization.needs import CODES
from kafka_node.configs.alterations import Configs, altered
from kafka_node.configs.config_rules import ConfigType
from kafka_node.configs.described_configs import topic_text
from kafka_node.configs.layered_settings import Settings
from kafka_node.configs.resource_types import ConfigResourceType
from kafka_node.configs.setting_rules import SettingError
from kafka_node.configs.setting_table import SETTINGS
from kafka_node.configs.topic_config_table_4 import TOPIC_CONFIGS
from kafka_node.outcomes import duplicates, error_fields
from kafka_wire.codec import Body
from kafka_wire.errors import ErrorCode, Failure
from light_broker.control.standalone.state import State
from light_broker.control.standalone.topics import config_failure
from light_broker.core.dynamic_settings import dynamic_setting
from light_broker.core.metadata_view import CLUSTER_DEFAULT


def alter_configs(state: State, body: Body, may: Ask, settings: Settings, *, incremental: bool) -> tuple[State, Body]:
    """Change the configs of each resource, unless the request is only to be validated."""
    repeated = duplicates(f"{resource['resource_type']}:{resource['resource_name']}" for resource in body["resources"])
    made, results = state, []
    for resource in body["resources"]:
        kind, name = resource["resource_type"], resource["resource_name"]
        if f"{kind}:{name}" in repeated:
            changed: State | Failure = Failure(
                ErrorCode.INVALID_REQUEST, "Each resource must appear at most once in the request."
            )
        else:
            changed = _altered(made, resource, may, settings, incremental=incremental)
        if isinstance(changed, State):
            made = changed
        outcome = changed if isinstance(changed, Failure) else None
        results.append({**error_fields(outcome), "resource_type": kind, "resource_name": name})
    return state if body["validate_only"] else made, {"responses": results}


def _altered(state: State, resource: Body, may: Ask, settings: Settings, *, incremental: bool) -> State | Failure:
    kind, name = resource["resource_type"], resource["resource_name"]
    of = ResourceType.TOPIC if kind == ConfigResourceType.TOPIC else ResourceType.CLUSTER
    if not may(Operation.ALTER_CONFIGS, of, name if of is ResourceType.TOPIC else CLUSTER_NAME):
        return Failure(CODES[of], CODES[of].message)
    if kind == ConfigResourceType.TOPIC:
        topic = state.topics.get(name)
        if topic is None:
            return Failure(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"The topic '{name}' does not exist.")
        defaults = {name: topic_text(name, {}, settings) for name in TOPIC_CONFIGS}
        configs = altered(topic.configs, resource, defaults, _is_list, incremental=incremental)
        if not isinstance(configs, Failure) and (failure := config_failure(configs, settings)) is not None:
            return failure
        return configs if isinstance(configs, Failure) else state.with_topic(name, replace(topic, configs=configs))
    if kind != ConfigResourceType.BROKER:
        return Failure(ErrorCode.INVALID_REQUEST, f"Configs of resources of type {kind} cannot be changed here.")
    if name not in {CLUSTER_DEFAULT.name, str(state.node_id)}:
        message = f"Unexpected broker id, expected {state.node_id} or empty string, but received {name}"
        return Failure(ErrorCode.INVALID_REQUEST, message)
    defaults = {name: setting.default or "" for name, setting in SETTINGS.items()}
    configs = altered(state.broker_configs.get(name, {}), resource, defaults, _is_list, incremental=incremental)
    if not isinstance(configs, Failure) and (failure := _refused_settings(configs)) is not None:
        return failure
    if isinstance(configs, Failure):
        return configs
    return replace(state, broker_configs={**state.broker_configs, name: configs})


def _is_list(name: str) -> bool:
    key = TOPIC_CONFIGS.get(name) or SETTINGS.get(name)
    return key is not None and key.kind is ConfigType.LIST


def _refused_settings(configs: Configs) -> Failure | None:
    static = sorted(name for name in configs if name in SETTINGS and dynamic_setting(name) is None)
    if static:
        message = f"Cannot update these configs dynamically: {', '.join(static)}"
        return Failure(ErrorCode.INVALID_REQUEST, message)
    for name, text in configs.items():
        if name in SETTINGS:
            try:
                SETTINGS[name].read(text)
            except SettingError as error:
                return Failure(ErrorCode.INVALID_CONFIG, str(error))
    return None

"""Changes of dynamic configs by a standalone broker: AlterConfigs and IncrementalAlterConfigs.

Each function returns the next state and the response. Resources of a request are independent of each other, and a resource changes as a
whole or not at all. Source: ConfigurationControlManager, ConfigAdminManager.
"""

from dataclasses import replace

from kafka_node.authorization.guard import Ask
from kafka_node.configs.alterations import Configs, resource_key
from kafka_node.configs.layered_settings import Settings
from kafka_node.configs.resource_types import ConfigResourceType
from kafka_node.configs.setting_rules import SettingError
from kafka_node.configs.setting_table import SETTINGS
from kafka_node.outcomes import error_fields
from kafka_wire import Body, ErrorCode, Failure
from light_broker.control.config_alterations import (
    REPEATED,
    altered_brokers,
    altered_topic,
    refused_resource,
    repeated_resources,
)
from light_broker.control.standalone.state import State
from light_broker.control.standalone.topics import config_failure
from light_broker.core.dynamic_settings import dynamic_setting


def alter_configs(state: State, body: Body, may: Ask, settings: Settings, *, incremental: bool) -> tuple[State, Body]:
    """Change the configs of each resource, unless the request is only to be validated."""
    repeated = repeated_resources(body)
    made, results = state, []
    for resource in body["resources"]:
        if resource_key(resource) in repeated:
            changed: State | Failure = REPEATED
        else:
            changed = _altered(made, resource, may, settings, incremental=incremental)
        if isinstance(changed, State):
            made = changed
        outcome = changed if isinstance(changed, Failure) else None
        kind, name = resource["resource_type"], resource["resource_name"]
        results.append({**error_fields(outcome), "resource_type": kind, "resource_name": name})
    return state if body["validate_only"] else made, {"responses": results}


def _altered(state: State, resource: Body, may: Ask, settings: Settings, *, incremental: bool) -> State | Failure:
    refused = refused_resource(resource, may, topics=state.topics, node_id=state.node_id)
    if refused is not None:
        return refused
    name = resource["resource_name"]
    if resource["resource_type"] == ConfigResourceType.TOPIC:
        topic = state.topics[name]
        configs = altered_topic(topic.configs, resource, settings, incremental=incremental)
        if not isinstance(configs, Failure) and (failure := config_failure(configs, settings)) is not None:
            return failure
        return configs if isinstance(configs, Failure) else state.with_topic(name, replace(topic, configs=configs))
    configs = altered_brokers(state.broker_configs.get(name, {}), resource, incremental=incremental)
    if not isinstance(configs, Failure) and (failure := _refused_settings(configs)) is not None:
        return failure
    if isinstance(configs, Failure):
        return configs
    return replace(state, broker_configs={**state.broker_configs, name: configs})


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

"""Changes of dynamic configs by clients: a broker in ZooKeeper mode writes them itself, with their notification.

Each resource changes as a whole or not at all, in one transaction. Source: ZkAdminManager and AdminZkClient of Kafka 3.9.
"""

from dataclasses import dataclass

from kafka_node.authorization.guard import Ask
from kafka_node.configs.alterations import resource_key
from kafka_node.configs.layered_settings import Settings
from kafka_node.configs.resource_types import ConfigResourceType
from kafka_node.configs.setting_rules import SettingError
from kafka_node.configs.topic_config_table_4 import TOPIC_CONFIGS
from kafka_node.outcomes import error_fields
from kafka_wire import Body, ErrorCode, Failure
from kafka_zookeeper import formats, paths
from kafka_zookeeper.formats import DEFAULT_ENTITY, EntityType, FormatError
from kafka_zookeeper.session import Node, ZooKeeperError, ZooKeeperSession
from kafka_zookeeper.writes import Committed, Create, Refused, RefusedReason, SetData
from light_broker.control.config_alterations import (
    REPEATED,
    altered_brokers,
    altered_topic,
    refused_resource,
    repeated_resources,
)
from light_broker.control.standalone.topics import config_failure
from light_broker.core.dynamic_settings import dynamic_setting
from light_broker.core.metadata_view import MetadataView

MAX_ATTEMPTS = 10
"""Writes of one change, each after another process changed the znode in between."""
RACES = {RefusedReason.BAD_VERSION, RefusedReason.NODE_EXISTS, RefusedReason.NO_NODE}


@dataclass(frozen=True, slots=True)
class ConfigChanges:
    """Changes in one session."""

    session: ZooKeeperSession
    view: MetadataView
    settings: Settings

    async def alter(self, body: Body, may: Ask, *, incremental: bool) -> Body:
        """Answer AlterConfigs or IncrementalAlterConfigs."""
        repeated, results = repeated_resources(body), []
        for resource in body["resources"]:
            outcome: Failure | None
            if resource_key(resource) in repeated:
                outcome = REPEATED
            else:
                refused = refused_resource(resource, may, topics=self.view.topics, node_id=self.settings.node_id)
                outcome = refused or await self._alter(
                    resource, incremental=incremental, is_written=not body["validate_only"]
                )
            kind, name = resource["resource_type"], resource["resource_name"]
            results.append({**error_fields(outcome), "resource_type": kind, "resource_name": name})
        return {"responses": results}

    async def _alter(self, resource: Body, *, incremental: bool, is_written: bool) -> Failure | None:
        is_topic = resource["resource_type"] == ConfigResourceType.TOPIC
        kind = EntityType.TOPICS if is_topic else EntityType.BROKERS
        entity = f"{kind}/{resource['resource_name'] or DEFAULT_ENTITY}"
        wanted_of = self._topic_configs if is_topic else _broker_configs
        try:
            for _ in range(MAX_ATTEMPTS):
                path = paths.entity_config(entity)
                node = await self.session.get(path)
                wanted = wanted_of(
                    formats.decode_config(path, None if node is None else node.data), resource, incremental
                )
                if isinstance(wanted, Failure):
                    return wanted
                if not is_written:
                    return None
                ended = await self._write(entity, node, wanted)
                if isinstance(ended, Committed):
                    return None
                if isinstance(ended, Refused) and ended.reason not in RACES:
                    message = f"ZooKeeper refused the change: {ended.reason.value} {ended.detail}".strip()
                    return Failure(ErrorCode.UNKNOWN_SERVER_ERROR, message)
        except FormatError as error:
            return Failure(ErrorCode.INVALID_CONFIG, f"The stored configs are malformed: {error}")
        except ZooKeeperError as error:
            return Failure(ErrorCode.REQUEST_TIMED_OUT, f"It is unknown whether the configs were changed: {error}")
        return Failure(ErrorCode.REQUEST_TIMED_OUT, "Other processes change the same configs.")

    async def _write(self, entity: str, node: Node | None, wanted: dict[str, str]) -> object:
        path, data = paths.entity_config(entity), formats.encode_config(wanted)
        write = Create(path, data) if node is None else SetData(path, data, node.version)
        notification = Create(paths.CONFIG_CHANGE_PREFIX, formats.encode_config_change(entity), sequential=True)
        return await self.session.multi([write, notification])

    def _topic_configs(self, current: dict[str, str], resource: Body, incremental: bool) -> dict[str, str] | Failure:
        configs = altered_topic(current, resource, self.settings, incremental=incremental)
        if isinstance(configs, Failure):
            return configs
        # Names of Kafka 3.9 that Kafka 4 no longer has may be there already; a request cannot set them.
        known = {name: text for name, text in configs.items() if name in TOPIC_CONFIGS or name not in current}
        return config_failure(known, self.settings) or configs


def _broker_configs(current: dict[str, str], resource: Body, incremental: bool) -> dict[str, str] | Failure:
    configs = altered_brokers(current, resource, incremental=incremental)
    if isinstance(configs, Failure):
        return configs
    for name, text in configs.items():
        if current.get(name) == text:
            continue
        setting = dynamic_setting(name)
        if setting is None:
            return Failure(ErrorCode.INVALID_REQUEST, f"Cannot update these configs dynamically: {name}")
        try:
            setting.read(text)
        except SettingError as error:
            return Failure(ErrorCode.INVALID_CONFIG, str(error))
    return configs

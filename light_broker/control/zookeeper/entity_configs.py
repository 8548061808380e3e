"""Dynamic configs that a broker reads from ZooKeeper: of topics, of all brokers and of itself.

A changed config is named by a notification below `/config/changes`; configs of a new topic have none, and are read when the controller
names the topic. A value that the broker cannot use is left out, with a warning. Source: ZkConfigManager, ZkConfigRepository.
"""

import logging
from collections.abc import Collection, Iterable, Mapping

from kafka_node.configs.resource_types import ConfigResourceType
from kafka_zookeeper import formats, paths
from kafka_zookeeper.formats import DEFAULT_ENTITY, EntityType, FormatError
from kafka_zookeeper.session import Node, ZooKeeperSession
from light_broker.control.usable_configs import usable_configs
from light_broker.core.metadata_view import CLUSTER_DEFAULT, ConfigResource

log = logging.getLogger(__name__)

Configs = dict[ConfigResource, Mapping[str, str]]


def brokers_resources(broker_id: int) -> list[ConfigResource]:
    """Return the resources of brokers that a broker has to know."""
    return [CLUSTER_DEFAULT, ConfigResource(ConfigResourceType.BROKER, str(broker_id))]


def topic_resources(names: Iterable[str]) -> list[ConfigResource]:
    """Return the resources of topics."""
    return [ConfigResource(ConfigResourceType.TOPIC, name) for name in names]


async def read_configs(session: ZooKeeperSession, resources: Collection[ConfigResource]) -> Configs:
    """Read the configs of resources; empty for one without. Raises ZooKeeperError."""
    named = [(resource, path) for resource in resources if (path := _path(resource)) is not None]
    nodes = await session.multi_get([path for _, path in named])
    return {resource: _usable(resource, path, node) for (resource, path), node in zip(named, nodes, strict=True)}


async def read_all_topics(session: ZooKeeperSession) -> Configs:
    """Read the configs of all topics that have any. Raises ZooKeeperError."""
    names = await session.children(f"{paths.CONFIG}/{EntityType.TOPICS}")
    return await read_configs(session, topic_resources(names or ()))


def resource_of(entity: str, broker_id: int) -> ConfigResource | EntityType | None:
    """Return what a notification names: a resource of the broker, the type of other entities, or None for an unknown entity."""
    kind, _, name = entity.partition("/")
    if kind == EntityType.TOPICS:
        return ConfigResource(ConfigResourceType.TOPIC, name)
    if kind == EntityType.BROKERS:
        resource = ConfigResource(ConfigResourceType.BROKER, "" if name == DEFAULT_ENTITY else name)
        return resource if resource in brokers_resources(broker_id) else None
    return EntityType.USERS if kind == EntityType.USERS else None


def _path(resource: ConfigResource) -> str | None:
    kind = EntityType.TOPICS if resource.type is ConfigResourceType.TOPIC else EntityType.BROKERS
    try:
        return paths.config(kind, resource.name or DEFAULT_ENTITY)
    except ValueError:
        return None


def _usable(resource: ConfigResource, path: str, node: Node | None) -> Mapping[str, str]:
    """Return the configs that this broker can use."""
    try:
        given = formats.decode_config(path, None if node is None else node.data)
    except FormatError as error:
        log.error("Ignoring malformed configs", extra={"error": str(error)})
        return {}
    return usable_configs(resource, given)

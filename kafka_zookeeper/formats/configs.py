"""`/config/TYPE/NAME`: configuration of an entity, and `/config/changes/config_change_N`: its change notification.

Source: ConfigEntityZNode and ConfigEntityChangeNotificationSequenceZNode in kafka.zk.ZkData, ZkConfigManager, Sanitizer.
"""

import enum
from collections.abc import Mapping
from urllib.parse import quote as percent_encode
from urllib.parse import unquote

from kafka_zookeeper import paths
from kafka_zookeeper.formats import documents
from kafka_zookeeper.formats.documents import FormatError, quote, shown
from kafka_zookeeper.formats.key_order import properties_order

DEFAULT_ENTITY = "<default>"
"""The entity whose configuration applies to all entities of its type without their own."""


class EntityType(enum.StrEnum):
    """Types of entities, by their name in the path."""

    TOPICS = "topics"
    CLIENTS = "clients"
    USERS = "users"
    BROKERS = "brokers"
    IPS = "ips"
    CLIENT_METRICS = "client-metrics"
    GROUPS = "groups"


def encode_config(config: Mapping[str, str]) -> bytes:
    """Return the document of an entity's configuration."""
    entries = ",".join(f"{quote(name)}:{quote(config[name])}" for name in properties_order(config))
    return f'{{"version":1,"config":{{{entries}}}}}'.encode()


def decode_config(path: str, data: bytes | None) -> dict[str, str]:
    """Decode an entity's configuration by Kafka's rule.

    It is empty without data, without JSON, or without an object `config` in it. A value that is not a string is a FormatError.
    """
    if data is None:
        return {}
    try:
        document = documents.read_json(path, data)
    except FormatError:
        return {}
    config = document.get("config") if isinstance(document, dict) else None
    if not isinstance(config, dict):
        return {}
    return {
        documents.as_text(path, "a configuration's name", name): documents.as_text(path, f"config {shown(name)}", value)
        for name, value in config.items()
    }


def encode_config_change(entity_path: str) -> bytes:
    """Return a change notification of JSON version 2. `entity_path` is the path below /config: `topics/T`, `brokers/<default>`."""
    return f'{{"version":2,"entity_path":{quote(entity_path)}}}'.encode()


def decode_config_change(name: str, data: bytes | None) -> str:
    """Return the path of the changed entity below /config; `name` is the name of the notification below /config/changes.

    JSON version 1 (before Kafka 0.10.1) has the type (topics or clients) and the entity in two fields.
    """
    path = paths.child(paths.CONFIG_CHANGES, name)
    document = documents.read_object(path, data)
    version = documents.int_field(path, document, "version")
    if version == 1:
        entity_type = documents.text_field(path, document, "entity_type")
        if entity_type not in {EntityType.TOPICS, EntityType.CLIENTS}:
            raise FormatError(path, f"in version 1 entity_type must be topics or clients, found {shown(entity_type)}")
        return f"{entity_type}/{documents.text_field(path, document, 'entity_name')}"
    if version == 2:
        entity_path = documents.text_field(path, document, "entity_path")
        if "/" not in entity_path.strip("/"):
            raise FormatError(path, f"entity_path must be TYPE/NAME, found {shown(entity_path)}")
        return entity_path
    raise FormatError(path, f"version must be 1 or 2, found {version}")


def sanitize(name: str) -> str:
    """Return the path component of a user, client id or address, which may contain any character.

    >>> sanitize("CN=a b/*~")
    'CN%3Da%20b%2F%2A%7E'
    """
    return percent_encode(name, safe="").replace("~", "%7E")


def desanitize(name: str) -> str:
    """Return the name of a sanitized path component."""
    return unquote(name)

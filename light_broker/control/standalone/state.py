"""Metadata of a standalone broker, and its form in the file.

A broker epoch counts the starts of the process. A topic's leader epoch is the number of starts since its creation, so that it is higher
after each start, when records that were not on the disk may be lost.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Self
from uuid import UUID

from kafka_log.errors import UnreadableFileError
from kafka_node.authorization.acl import Binding, Entry, Operation, Pattern, PatternType, Permission, ResourceType
from kafka_node.authorization.acls import Acls
from kafka_node.configs.resource_types import ConfigResourceType
from kafka_node.topic_names import is_internal
from kafka_wire.sasl.scram_keys import ScramCredential, decode_credential
from kafka_wire.uuids import decode_uuid, encode_uuid
from light_broker.core.metadata_view import BrokerView, ConfigResource, MetadataView, PartitionView, TopicView

VERSION = 1


class StateError(UnreadableFileError):
    """The file does not have the form of this version."""


@dataclass(frozen=True, slots=True)
class TopicState:
    """A topic. Each partition has one replica."""

    id: UUID
    partitions: int
    created_at: int
    """Broker epoch of its creation."""
    configs: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class State:
    """All metadata."""

    cluster_id: str
    node_id: int
    broker_epoch: int = 0
    next_producer_id: int = 0
    topics: Mapping[str, TopicState] = field(default_factory=dict)
    deletions: Mapping[str, int] = field(default_factory=dict)
    """Number of partitions of deleted topics, by name, until their logs are deleted."""
    broker_configs: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    """Dynamic configs by broker id, and of all brokers under the empty name."""
    acls: frozenset[Binding] = frozenset()
    scram: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    """Encoded SCRAM credentials by user and mechanism."""

    def with_topic(self, name: str, topic: TopicState) -> Self:
        """Return the state with a topic added or replaced."""
        return replace(self, topics={**self.topics, name: topic})

    def with_topic_deleted(self, name: str) -> Self:
        """Return the state without a topic, whose logs are to be deleted."""
        topics = {other: topic for other, topic in self.topics.items() if other != name}
        return replace(self, topics=topics, deletions={**self.deletions, name: self.topics[name].partitions})

    def with_deletion_done(self, name: str) -> Self:
        """Return the state after the logs of a deleted topic are gone."""
        return replace(self, deletions={other: count for other, count in self.deletions.items() if other != name})

    def view(self, broker: BrokerView) -> MetadataView:
        """Return the metadata for requests: this broker leads every partition."""
        configs = {
            ConfigResource(ConfigResourceType.TOPIC, name): topic.configs
            for name, topic in self.topics.items()
            if topic.configs
        }
        configs |= {
            ConfigResource(ConfigResourceType.BROKER, name): config for name, config in self.broker_configs.items()
        }
        return MetadataView(
            self.cluster_id,
            controller_id=self.node_id,
            brokers={self.node_id: broker},
            topics={name: self._topic_view(name, topic) for name, topic in self.topics.items()},
            topic_names_by_id={topic.id: name for name, topic in self.topics.items()},
            configs=configs,
        )

    def _topic_view(self, name: str, topic: TopicState) -> TopicView:
        epoch = self.broker_epoch - topic.created_at
        partition = PartitionView((self.node_id,), (self.node_id,), self.node_id, epoch, epoch)
        return TopicView(name, topic.id, (partition,) * topic.partitions, is_internal(name))

    def known_acls(self) -> Acls:
        """Return the ACLs for the authorizer."""
        entries: dict[Pattern, set[Entry]] = {}
        for binding in self.acls:
            entries.setdefault(binding.pattern, set()).add(binding.entry)
        return Acls(entries)

    def credentials(self) -> dict[str, dict[str, ScramCredential]]:
        """Return the SCRAM credentials by mechanism and user."""
        found: dict[str, dict[str, ScramCredential]] = {}
        for user, texts in self.scram.items():
            for mechanism, text in texts.items():
                found.setdefault(mechanism, {})[user] = decode_credential(text)
        return found


def encode_state(state: State) -> bytes:
    """Return the content of the file: JSON, one line for each topic, so that a person can read it."""
    document = {
        "version": VERSION,
        "cluster_id": state.cluster_id,
        "node_id": state.node_id,
        "broker_epoch": state.broker_epoch,
        "next_producer_id": state.next_producer_id,
        "topics": {name: _encode_topic(topic) for name, topic in sorted(state.topics.items())},
        "deletions": dict(sorted(state.deletions.items())),
        "broker_configs": {name: dict(config) for name, config in sorted(state.broker_configs.items())},
        "acls": [_encode_acl(binding) for binding in sorted(state.acls)],
        "scram": {user: dict(credentials) for user, credentials in sorted(state.scram.items())},
    }
    return json.dumps(document, indent=1).encode() + b"\n"


def decode_state(content: bytes) -> State:
    """Read the content of the file. Raises StateError."""
    try:
        document = json.loads(content)
    except ValueError as error:
        raise StateError(f"it is not JSON: {error}") from error
    try:
        version = document["version"]
    except (KeyError, TypeError) as error:
        raise StateError(f"it is malformed: {error!r}") from error
    if version != VERSION:
        raise StateError(f"version {version} is not supported, only {VERSION}")
    try:
        state = State(
            cluster_id=_text(document["cluster_id"]),
            node_id=_number(document["node_id"]),
            broker_epoch=_number(document["broker_epoch"]),
            next_producer_id=_number(document["next_producer_id"]),
            topics={name: _decode_topic(topic) for name, topic in document["topics"].items()},
            deletions={name: _number(count) for name, count in document["deletions"].items()},
            broker_configs={name: _texts(config) for name, config in document["broker_configs"].items()},
            acls=frozenset(map(_decode_acl, document["acls"])),
            scram={user: _texts(credentials) for user, credentials in document["scram"].items()},
        )
        state.credentials()
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise StateError(f"it is malformed: {error!r}") from error
    return state


def _encode_topic(topic: TopicState) -> dict[str, Any]:
    return {
        "id": encode_uuid(topic.id),
        "partitions": topic.partitions,
        "created_at": topic.created_at,
        "configs": dict(sorted(topic.configs.items())),
    }


def _decode_topic(document: dict[str, Any]) -> TopicState:
    return TopicState(
        decode_uuid(document["id"]),
        _number(document["partitions"]),
        _number(document["created_at"]),
        _texts(document["configs"]),
    )


def _number(value: object) -> int:
    if not isinstance(value, int) or value < 0:
        raise ValueError(f"{value!r} is not a number of 0 or more")
    return value


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{value!r} is not a text")
    return value


def _texts(document: Mapping[str, object]) -> dict[str, str]:
    return {name: _text(value) for name, value in document.items()}


def _encode_acl(binding: Binding) -> dict[str, str]:
    return {
        "resource_type": binding.pattern.resource_type.name,
        "name": binding.pattern.name,
        "pattern_type": binding.pattern.pattern_type.name,
        "principal": binding.entry.principal,
        "host": binding.entry.host,
        "operation": binding.entry.operation.name,
        "permission": binding.entry.permission.name,
    }


def _decode_acl(document: dict[str, str]) -> Binding:
    pattern = Pattern(ResourceType[document["resource_type"]], document["name"], PatternType[document["pattern_type"]])
    operation, permission = Operation[document["operation"]], Permission[document["permission"]]
    return Binding(pattern, Entry(document["principal"], document["host"], operation, permission))

"""Drift between a Topic and its Kafka topic: list for the status, digest, and text."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence

from kafka_operator.decide.kafka.observed import KafkaTopic
from kafka_operator.decide.topics.config import config_changes
from kafka_operator.resources.topic import Drift, Topic
from reconciler.decide.listed import listed

MAX_NAMED = 5
"""Differences that a message names; the status lists them all."""

MAX_VALUE_LENGTH = 200
"""Characters of a value that are shown: enough for any number or list of policies, and 128 settings stay small."""

DIGEST_LENGTH = 12
"""Hexadecimal digits: 48 bits distinguish two states of one topic, and a user can copy them."""

MISSING = Drift("topic", "present", None)


def find_drift(topic: Topic, observed: KafkaTopic | None) -> tuple[Drift, ...]:
    """Return every difference, in a fixed order; ignored or undeclared settings are excluded."""
    if observed is None:
        return (MISSING,)
    found: list[Drift] = []
    if len(observed.partitions) != topic.partitions:
        found.append(Drift("partitions", str(topic.partitions), str(len(observed.partitions))))
    if not has_factor(observed, topic.replication_factor):
        found.append(Drift("replicationFactor", str(topic.replication_factor), str(observed.replication_factor)))
    to_set, to_reset = config_changes(dict(topic.config), topic.managed_config, observed.config)
    for name, declared in sorted([*to_set, *((name, None) for name in to_reset)]):
        current = observed.config.get(name)
        found.append(Drift(f"config.{name}", _shown(declared), _shown(None if current is None else current.value)))
    return tuple(found)


def has_factor(observed: KafkaTopic, factor: int) -> bool:
    """Return whether every partition has so many replicas, when what moves has arrived."""
    return all(len(partition.replicas) == factor for partition in observed.partitions)


def digest_of(drift: Sequence[Drift], observed: KafkaTopic) -> str:
    """Return what names these differences of this very topic; another topic of the same name has another digest."""
    text = json.dumps([observed.topic_id, *(item.to_json() for item in drift)], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:DIGEST_LENGTH]


def drift_text(drift: Sequence[Drift]) -> str:
    """Return the differences as text: "partitions 4 (declared 6), retention.ms not set (declared 1)"."""
    return listed([_difference_text(item) for item in drift], MAX_NAMED)


def _difference_text(item: Drift) -> str:
    if item == MISSING:
        return "the topic does not exist"
    actual = "not set" if item.actual is None else item.actual
    declared = "not declared" if item.declared is None else f"declared {item.declared}"
    return f"{item.field.removeprefix('config.')} {actual} ({declared})"


def _shown(value: str | None) -> str | None:
    return value if value is None or len(value) <= MAX_VALUE_LENGTH else f"{value[:MAX_VALUE_LENGTH]}..."

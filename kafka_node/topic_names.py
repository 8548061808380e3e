"""Rules for topic names, with Kafka's error messages.

Callers check whether a topic of the same name exists. Source: Kafka's org.apache.kafka.common.internals.Topic and
AdminZkClient.validateTopicCreate.
"""

import re
from collections.abc import Iterable

from kafka_wire import ErrorCode, Failure
from kafka_wire.java_hash import java_length

MAX_NAME_LENGTH = 249
"""Kafka's limit, in UTF-16 units: a log directory's name is the topic's, a hyphen, the partition and a suffix, in 255 bytes."""

LEGAL_NAME = re.compile(r"[a-zA-Z0-9._-]+")

INTERNAL_TOPICS = frozenset({"__consumer_offsets", "__transaction_state", "__share_group_state"})
"""Topics that Kafka's coordinators write."""


def topic_name_error(name: str, existing: Iterable[str] = ()) -> Failure | None:
    """Return why Kafka does not create a topic of this name in addition to the existing ones, or None.

    >>> topic_name_error("a b").message
    "Topic name is invalid: 'a b' contains one or more characters other than ASCII alphanumerics, '.', '_' and '-'"
    >>> topic_name_error("a.b", ["a_b", "c"]).message
    "Topic 'a.b' collides with existing topics: a_b"
    """
    if (reason := illegal_name_reason(name)) is not None:
        return Failure(ErrorCode.INVALID_TOPIC_EXCEPTION, f"Topic name is invalid: {reason}")
    if colliding := collisions(name, existing):
        message = f"Topic '{name}' collides with existing topics: {', '.join(colliding)}"
        return Failure(ErrorCode.INVALID_TOPIC_EXCEPTION, message)
    return None


def illegal_name_reason(name: str) -> str | None:
    """Return Kafka's reason why a name is illegal by itself, or None."""
    if not name:
        return "the empty string is not allowed"
    if name in (".", ".."):
        return f"'{name}' is not allowed"
    if java_length(name) > MAX_NAME_LENGTH:
        return f"the length of '{name}' is longer than the max allowed length {MAX_NAME_LENGTH}"
    if not LEGAL_NAME.fullmatch(name):
        return f"'{name}' contains one or more characters other than ASCII alphanumerics, '.', '_' and '-'"
    return None


def collisions(name: str, existing: Iterable[str]) -> list[str]:
    """Return, sorted, the other topics that would share this one's metric names, where '.' and '_' are the same.

    >>> collisions("a.b_c", ["a.b.c", "a_b_c", "a.b_c", "abc"])
    ['a.b.c', 'a_b_c']
    """
    if not has_collision_characters(name):
        return []
    own_metric_name = metric_name(name)
    # Only names of the same length can collide, so most names need no conversion.
    return sorted(
        other
        for other in existing
        if len(other) == len(name) and other != name and metric_name(other) == own_metric_name
    )


def has_collision_characters(name: str) -> bool:
    """Whether a name has characters that are the same in metric names."""
    return "." in name or "_" in name


def metric_name(name: str) -> str:
    """Return a name as it appears in metric names."""
    return name.replace(".", "_")


def is_internal(name: str) -> bool:
    """Whether Kafka's coordinators write this topic."""
    return name in INTERNAL_TOPICS

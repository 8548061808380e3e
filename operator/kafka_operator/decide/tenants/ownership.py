"""Ownership of Kafka topics: the oldest Topic wins, others wait until it is deleted (O5)."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

from kafka_operator.resources.topic import Topic
from reconciler.names import Key


def winner(claims: Iterable[Topic]) -> Topic:
    """Return the Topic that owns the Kafka topic which all of these name: the first created, by uid where that is equal.

    Every process comes to the same answer, whatever it saw first, since neither field ever changes.
    """
    return min(claims, key=_seniority)


def by_seniority(topics: Iterable[Topic]) -> list[Topic]:
    """Return Topics in the order in which they are served where not all can be."""
    return sorted(topics, key=_seniority)


def _seniority(topic: Topic) -> tuple[datetime, str]:
    return topic.metadata.created, topic.metadata.uid


def conflict_message(topic: str, owner: Key) -> str:
    """Return the message for the Topic that lost."""
    return (
        f"Topic {owner.namespace}/{owner.name} is older and owns the Kafka topic {topic}. "
        "Delete one of the two; after the owner is deleted, this Topic takes over."
    )

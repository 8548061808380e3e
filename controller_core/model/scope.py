"""Scopes of events: everything, whole topics, or single partitions. `shell.scheduler` orders events by them."""

from collections.abc import Iterable
from dataclasses import dataclass

from controller_core.model.ids import TopicPartition


@dataclass(frozen=True, slots=True)
class Scope:
    """Partitions and topics that an event reads and changes."""

    everything: bool = False
    topics: frozenset[str] = frozenset()
    partitions: frozenset[TopicPartition] = frozenset()


ALL = Scope(everything=True)


def topics(names: Iterable[str]) -> Scope:
    """Return the scope of whole topics."""
    return Scope(topics=frozenset(names))


def partitions(names: Iterable[TopicPartition]) -> Scope:
    """Return the scope of single partitions."""
    return Scope(partitions=frozenset(names))

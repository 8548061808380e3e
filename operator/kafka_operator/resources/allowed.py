"""Which namespaces besides its own a Cluster serves, with which topics: `spec.allowedNamespaces`."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from kafka_operator.resources.metadata import RawObject

DEFAULT_MIN_BYTES_PER_SECOND = 1_000_000
"""Floor of other namespaces' throttles where a rule names none: a megabyte a second ends a move of 80 GB within a day."""


@dataclass(frozen=True, slots=True)
class AllowedNamespaces:
    """One rule; each namespace that it names has the numbers for itself."""

    namespaces: tuple[str, ...]
    """Names, in which * stands for any characters."""
    topic_names: tuple[str, ...] = ()
    """The same of topics, in which ${namespace} stands for the namespace; none of them: every name."""
    max_topics: int | None = None
    max_partitions: int | None = None
    min_bytes_per_second: int = DEFAULT_MIN_BYTES_PER_SECOND
    max_bytes_per_second: int | None = None
    """Bounds of the throttle of their Reassignments; None for no upper bound."""


def read_allowed(raw: Iterable[RawObject]) -> tuple[AllowedNamespaces, ...]:
    """Read `spec.allowedNamespaces`."""
    return tuple(
        AllowedNamespaces(
            namespaces=tuple(rule["namespaces"]),
            topic_names=tuple(rule.get("topicNames") or ()),
            max_topics=rule.get("maxTopics"),
            max_partitions=rule.get("maxPartitions"),
            min_bytes_per_second=int(rule.get("minBytesPerSecond", DEFAULT_MIN_BYTES_PER_SECOND)),
            max_bytes_per_second=rule.get("maxBytesPerSecond"),
        )
        for rule in raw
    )

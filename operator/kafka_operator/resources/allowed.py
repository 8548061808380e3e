"""Rules of `spec.allowedNamespaces`: other namespaces that may use a Cluster, and their topics."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from reconciler.resources.metadata import RawObject

DEFAULT_MIN_BYTES_PER_SECOND = 1_000_000
"""Default minimum of other namespaces' throttles: at a megabyte a second a move of 80 GB ends within a day."""


@dataclass(frozen=True, slots=True)
class AllowedNamespaces:
    """One rule; its limits apply to each matched namespace separately."""

    namespaces: tuple[str, ...]
    """Namespace names, in which * matches any characters."""
    topic_names: tuple[str, ...] = ()
    """Patterns of topic names, in which ${namespace} is the namespace; empty for every name."""
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

"""Kinds of the Kafka operator."""

from __future__ import annotations

from reconciler.names import Kind

CLUSTER = Kind("Cluster")
TOPIC = Kind("Topic")
REASSIGNMENT = Kind("Reassignment")
ELECTION = Kind("Election")

KINDS = (CLUSTER, TOPIC, REASSIGNMENT, ELECTION)
"""All of them; Clusters first, so that the others find theirs."""


def kind_named(name: str) -> Kind:
    """Return the kind of this name; ValueError when the Kafka operator has none.

    >>> kind_named("Topic")
    Kind(name='Topic')
    """
    found = Kind(name)
    if found not in KINDS:
        raise ValueError(f"{name!r} is not one of {', '.join(kind.name for kind in KINDS)}")
    return found

"""References of Topics, Reassignments and Elections to their Cluster."""

from __future__ import annotations

from kafka_operator import kinds
from reconciler.names import Key, NamespacedName
from reconciler.resources.metadata import Metadata, RawObject

ClusterRef = NamespacedName
"""The Cluster that a resource refers to, in the resource's own namespace where it names no other."""


def cluster_key(ref: ClusterRef) -> Key:
    """Return the key of the Cluster.

    >>> str(cluster_key(ClusterRef("shop", "main")))
    'Cluster shop/main'
    """
    return Key(kinds.CLUSTER, ref.namespace, ref.name)


def read_cluster_ref(metadata: Metadata, spec: RawObject) -> ClusterRef:
    """Read `spec.clusterRef`; the namespace defaults to the resource's own."""
    ref = spec["clusterRef"]
    return ClusterRef(ref.get("namespace", metadata.key.namespace), ref["name"])

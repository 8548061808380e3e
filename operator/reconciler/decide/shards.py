"""Assignment of Clusters to shards: a stable hash of the name.

Every process watches and knows all resources, since two Clusters of different shards may reach the same Kafka cluster, and of two
Topics of one name only one may have it; it works on those of its own shard. A Topic's Reassignments name the Topic's Cluster.
"""

from __future__ import annotations

import zlib

from reconciler.names import NamespacedName

MAX_SHARDS = 32
"""A hundred thousand Topics at the size that one process is meant for is ten; each shard watches everything."""


def shard_of(ref: NamespacedName, shards: int) -> int:
    """Return the shard, from 0, that serves a queue (a Cluster's, or a single resource's); the same in every process and on every machine.

    >>> shard_of(NamespacedName("shop", "main"), 1)
    0
    >>> sorted({shard_of(NamespacedName("shop", f"kafka-{number}"), 3) for number in range(20)})
    [0, 1, 2]
    """
    return zlib.crc32(f"{ref.namespace}/{ref.name}".encode()) % shards


def lease_names(name: str, shards: int) -> tuple[str, ...]:
    """Return the Lease of each shard.

    >>> lease_names("steward-operator", 1)
    ('steward-operator',)
    >>> lease_names("steward-operator", 2)
    ('steward-operator-0-of-2', 'steward-operator-1-of-2')
    """
    if shards == 1:
        return (name,)
    return tuple(f"{name}-{index}-of-{shards}" for index in range(shards))

"""Key order of Kafka's JSON maps whose keys are data (partitions, configuration names).

The order has no meaning for readers; it makes the documents of Steward's controller equal to those of Kafka's, byte for byte. Kafka
writes such a map in the order of its hash table, so this module computes the growth and the buckets of the two tables: Scala's
mutable.HashMap (assignments) and the JDK's ConcurrentHashMap (Properties). Within one bucket of ConcurrentHashMap, where the order
depends on the table's history, the given order is kept.
"""

from collections.abc import Iterable

from kafka_wire.java_hash import java_hash

FIRST_TABLE_SIZE = 16
"""Both tables start with 16 buckets, and double when they are three quarters full."""


def _spread(text: str) -> int:
    """Mix the upper half of the hash into the lower half, as both tables do before they select a bucket."""
    value = java_hash(text)
    return value ^ (value >> 16)


def _table_size(entries: int) -> int:
    size = FIRST_TABLE_SIZE
    while entries >= size // 4 * 3:
        size *= 2
    return size


def scala_order(keys: Iterable[str]) -> list[str]:
    """Return the keys in the order of a Scala 2.13 mutable.HashMap: by bucket, then by signed hash within one.

    >>> scala_order(str(index) for index in range(12))
    ['11', '0', '1', '2', '3', '4', '5', '6', '7', '8', '9', '10']
    """
    hashes = {key: _spread(key) for key in keys}
    mask = _table_size(len(hashes)) - 1
    return sorted(hashes, key=lambda key: (hashes[key] & mask, (hashes[key] ^ 0x80000000)))


def properties_order(keys: Iterable[str]) -> list[str]:
    """Return the keys in the order of java.util.Properties.

    >>> properties_order(["retention.ms", "segment.bytes", "min.insync.replicas", "cleanup.policy"])
    ['cleanup.policy', 'min.insync.replicas', 'retention.ms', 'segment.bytes']
    """
    hashes = {key: _spread(key) for key in keys}
    mask = _table_size(len(hashes)) - 1
    return sorted(hashes, key=lambda key: hashes[key] & mask)

"""Partition of a key, by the rule of Kafka's producers: murmur2 of the key's bytes, without its sign.

Consumers that use the same rule find all samples of a topic in one partition. Source: org.apache.kafka.common.utils
Utils.murmur2, BuiltInPartitioner.partitionForKey.
"""

_SEED = 0x9747B28C
_FACTOR = 0x5BD1E995
_SHIFT = 24
_WORD = 0xFFFFFFFF


def murmur2(data: bytes) -> int:
    """Return the 32-bit hash, unsigned.

    >>> murmur2(b"21") == -973932308 % 2**32
    True
    """
    whole = len(data) & ~3
    hashed = _SEED ^ len(data)
    for at in range(0, whole, 4):
        word = int.from_bytes(data[at : at + 4], "little") * _FACTOR & _WORD
        word = (word ^ word >> _SHIFT) * _FACTOR & _WORD
        hashed = (hashed * _FACTOR & _WORD) ^ word
    if whole < len(data):
        hashed = (hashed ^ int.from_bytes(data[whole:], "little")) * _FACTOR & _WORD
    hashed = (hashed ^ hashed >> 13) * _FACTOR & _WORD
    return hashed ^ hashed >> 15


def partition_of(key: bytes, partitions: int) -> int:
    """Return the partition of a key in a topic with this number of partitions."""
    return (murmur2(key) & 0x7FFFFFFF) % partitions

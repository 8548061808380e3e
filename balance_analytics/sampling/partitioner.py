"""Which partition a key belongs to, by the rule of Kafka's own producers: murmur2 of the key's bytes, without its sign.

Any producer or reader that follows the rule finds a topic's samples where they are put here. Source: org.apache.kafka.common.utils
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
    """Return the partition of a key in a topic with so many."""
    return (murmur2(key) & 0x7FFFFFFF) % partitions

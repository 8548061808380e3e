"""The topic `__consumer_offsets`: the leader of a group's partition is the group's coordinator.

Source: GroupCoordinatorService.partitionFor.
"""

from kafka_wire.java_hash import java_hash

OFFSETS_TOPIC = "__consumer_offsets"


def partition_for(group_id: str, partitions: int) -> int:
    """Return the partition of a group: by the absolute value of Java's hash, 0 for the number that has none.

    >>> partition_for("orders", 50), partition_for("polygenelubricants", 50)
    (31, 0)
    """
    value = java_hash(group_id)
    signed = value - (1 << 32) if value >= 1 << 31 else value
    return 0 if signed == -(1 << 31) else abs(signed) % partitions

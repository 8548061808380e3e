"""The topic `__consumer_offsets`: its settings, and the partition of each group, whose leader is the group's coordinator.

Source: GroupCoordinatorService (partitionFor, groupMetadataTopicConfigs), AutoTopicCreationManager.
"""

from typing import Any

from kafka_wire.java_hash import java_hash
from light_broker.core.groups.settings import GroupSettings

OFFSETS_TOPIC = "__consumer_offsets"


def partition_for(group_id: str, partitions: int) -> int:
    """Return the partition of a group: by the absolute value of Java's hash, 0 for the number that has none.

    >>> partition_for("orders", 50), partition_for("polygenelubricants", 50)
    (31, 0)
    """
    value = java_hash(group_id)
    signed = value - (1 << 32) if value >= 1 << 31 else value
    return 0 if signed == -(1 << 31) else abs(signed) % partitions


def creation_of_offsets_topic(settings: GroupSettings) -> dict[str, Any]:
    """Return the topic as an element of a CreateTopics request: compacted, with the codec of the coordinator's batches."""
    configs = {
        "cleanup.policy": "compact",
        "compression.type": "producer",
        "segment.bytes": str(settings.offsets_topic_segment_bytes),
    }
    return {
        "name": OFFSETS_TOPIC,
        "num_partitions": settings.offsets_topic_partitions,
        "replication_factor": settings.offsets_topic_replication_factor,
        "assignments": [],
        "configs": [{"name": name, "value": value} for name, value in configs.items()],
    }

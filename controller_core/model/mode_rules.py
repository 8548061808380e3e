"""Rules of partition changes that differ between the ways to hold a cluster, as one value.

`rules.partition_change` decides by them and `rules.partition_change` checks by them. Source: Kafka 3.9's KafkaController, and
PartitionChangeBuilder of Kafka 4.3 for what KRaft does.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ModeRules:
    """What differs between modes where a partition's leader, ISR and epochs change."""

    elr: bool
    """Whether partitions have eligible leader replicas (KIP-966): members of an ISR that shrank below min.insync.replicas."""
    isr_shrink_raises_leader_epoch: bool
    """Whether the leader epoch grows when the controller takes members out of an ISR and the leader stays."""
    empty_isr_allowed: bool
    """Whether an ISR may be empty. Without eligible leader replicas its last members stay: they are the ones that may lead again."""
    move_ends_with_its_isr: bool
    """Whether a move ends in the change that brings its last target replica into the ISR, or when removed replicas are deleted."""


ZOOKEEPER_RULES = ModeRules(
    elr=False,
    # Brokers take in a LeaderAndIsr only under a higher leader epoch.
    isr_shrink_raises_leader_epoch=True,
    empty_isr_allowed=False,
    move_ends_with_its_isr=False,
)
"""Rules of a cluster in ZooKeeper mode."""

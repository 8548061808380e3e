"""Rules of partition changes that differ between ZooKeeper mode and KRaft.

`rules.partition_change` builds and checks changes by them. Source: Kafka 3.9's KafkaController, and
PartitionChangeBuilder of Kafka 4.3 for what KRaft does.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ModeRules:
    """Differences between the modes in changes of leaders, ISRs and epochs."""

    elr: bool
    """Whether partitions have eligible leader replicas (KIP-966): members of an ISR that shrank below min.insync.replicas."""
    isr_shrink_raises_leader_epoch: bool
    """Whether the leader epoch grows when the controller removes members from an ISR and the leader stays."""
    empty_isr_allowed: bool
    """Whether an ISR may be empty. Without eligible leader replicas the last members stay in it, since only they may lead again."""
    move_ends_with_its_isr: bool
    """Whether a move ends with the change that adds its last target replica to the ISR; otherwise it ends when removed replicas are deleted."""


ZOOKEEPER_RULES = ModeRules(
    elr=False,
    # Brokers accept a LeaderAndIsr only with a higher leader epoch.
    isr_shrink_raises_leader_epoch=True,
    empty_isr_allowed=False,
    move_ends_with_its_isr=False,
)
"""Rules of a cluster in ZooKeeper mode."""

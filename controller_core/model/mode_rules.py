"""Differences between the modes, and settings beyond Kafka's rules, as values.

Decisions that both modes share ask `Cluster.rules`. In KRaft mode the rules follow from the levels of features.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from kafka_metadata.metadata_versions import CORDONED_SINCE, DIRECTORIES_SINCE, ELR_VERSION, METADATA_VERSION
from kafka_node.configs.topic_config_table_4 import TOPIC_CONFIGS
from kafka_node.configs.topic_configs import ConfigContext

ZOOKEEPER_CONFIGS = ConfigContext()
"""Configs of topics in Kafka 3.9 in ZooKeeper mode."""

KAFKA_4_CONFIGS = ConfigContext(zookeeper=False, table=TOPIC_CONFIGS)
"""Configs of topics in Kafka 4.3."""


@dataclass(frozen=True, slots=True)
class ModeRules:
    """Differences between ZooKeeper mode and KRaft in changes of leaders, ISRs and epochs.

    `rules.partition_change` builds and checks changes by them. Source: Kafka 3.9's KafkaController, and PartitionChangeBuilder of
    Kafka 4.3 for what KRaft does.
    """

    elr: bool
    """Whether partitions have eligible leader replicas (KIP-966): members of an ISR that shrank below min.insync.replicas."""
    isr_shrink_raises_leader_epoch: bool
    """Whether the leader epoch grows when the controller removes members from an ISR and the leader stays."""
    empty_isr_allowed: bool
    """Whether an ISR may be empty. Without eligible leader replicas the last members stay in it, since only they may lead again."""
    move_ends_with_its_isr: bool
    """Whether a move ends with the change that adds its last replica to the ISR; otherwise it ends when removed replicas are deleted."""
    elects_completely: bool = False
    """Whether a change of leaders has everything that follows from it: eligible replicas, ended moves (`rules.complete_change`)."""
    whole_isr_must_be_live: bool = False
    """Whether all members of an ISR that a leader requests must be live; otherwise only those that join."""
    striped_placement: bool = False
    """Whether replicas are placed by StripedReplicaPlacer, on fenced brokers too; otherwise by AdminUtils on live brokers."""
    directories: bool = False
    """Whether replicas are assigned to log directories (KIP-858)."""
    cordoned_directories: bool = False
    """Whether log directories may be cordoned (KIP-1066)."""
    new_leader_at_once: bool = False
    """Whether new partitions are written together with their first leaders."""
    topic_configs: ConfigContext = ZOOKEEPER_CONFIGS
    """Rules for configs of topics."""


ZOOKEEPER_RULES = ModeRules(
    elr=False,
    # Brokers accept a LeaderAndIsr only with a higher leader epoch.
    isr_shrink_raises_leader_epoch=True,
    empty_isr_allowed=False,
    move_ends_with_its_isr=False,
)
"""Rules of a cluster in ZooKeeper mode."""

LEADER_EPOCH_STAYS_SINCE = 12
"""Metadata version 3.6-IV0: followers stop fetching of their own accord when an ISR shrinks (KAFKA-15021)."""


def kraft_rules(features: Mapping[str, int]) -> ModeRules:
    """Return the rules of a cluster in KRaft mode with these levels of features."""
    elr = features.get(ELR_VERSION, 0) >= 1
    return ModeRules(
        elr=elr,
        isr_shrink_raises_leader_epoch=features.get(METADATA_VERSION, 0) < LEADER_EPOCH_STAYS_SINCE,
        empty_isr_allowed=elr,
        move_ends_with_its_isr=True,
        elects_completely=True,
        whole_isr_must_be_live=True,
        striped_placement=True,
        directories=features.get(METADATA_VERSION, 0) >= DIRECTORIES_SINCE,
        cordoned_directories=features.get(METADATA_VERSION, 0) >= CORDONED_SINCE,
        new_leader_at_once=True,
        topic_configs=KAFKA_4_CONFIGS,
    )


@dataclass(frozen=True, slots=True)
class RestartPolicy:
    """How restarted brokers are treated beyond Kafka's own rules (ADR 57)."""

    admits_same_directories: bool = True
    """Whether a process with all log directories of its predecessor is registered although that one's session is valid."""
    admits_after_shutdown: bool = True
    """Whether a process is registered although the session of its predecessor, which was granted its shutdown, is valid."""
    elects_suspected_last: bool = True
    """Whether a broker whose connection with its heartbeats ended is elected only where no other replica can lead."""

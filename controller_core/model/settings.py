"""Settings of brokers and topics on which decisions depend: their names in Kafka, and what is known of their values."""

from enum import Enum

MIN_ISR = "min.insync.replicas"
"""Topic configuration with which the members of an ISR are eligible leader replicas when they leave it (KIP-966)."""
DEFAULT_MIN_ISR = 1
"""Kafka's default of `min.insync.replicas`."""
UNCLEAN_ELECTION = "unclean.leader.election.enable"
"""Topic configuration that allows a replica from outside the ISR to lead if the ISR has no live member."""


class BrokerDefault(Enum):
    """Source of the brokers' default of a topic configuration; the dynamic one takes precedence."""

    DYNAMIC = "dynamic"
    """For the whole cluster: `/config/brokers/<default>` in ZooKeeper, the resource BROKER without a name in the metadata log."""
    STATIC = "static"
    """In a broker's configuration file; in KRaft mode in the controller's."""


class TopicDeletion(Enum):
    """The cluster's `delete.topic.enable`, as its brokers report it (ZooKeeper mode)."""

    UNKNOWN = "unknown"
    """No broker has been queried yet in this term."""
    NOT_REPORTED = "not reported"
    """Brokers are registered, and none of the queried ones reported the setting."""
    ENABLED = "enabled"
    DISABLED = "disabled"
    """At least one broker reported false."""

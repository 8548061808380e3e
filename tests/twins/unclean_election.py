"""Plain twin of `Cluster.unclean_allowed`: a topic's setting, else the brokers' default."""

from controller_core.model import Cluster
from controller_core.model.settings import BrokerDefault


def allows_unclean(cluster: Cluster, topic: str) -> bool:
    """Whether a replica from outside the ISR may lead a topic's partitions if the ISR has no live member (C7)."""
    default = cluster.unclean_defaults.get(BrokerDefault.STATIC, False)
    return cluster.unclean_topics.get(topic, cluster.unclean_defaults.get(BrokerDefault.DYNAMIC, default))

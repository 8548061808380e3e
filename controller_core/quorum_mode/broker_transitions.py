"""Transitions of brokers, configurations and features in KRaft mode.

The contents of a broker's registration are kept once: `Cluster.brokers`; the sets `fenced` and `shutting_down` are derived from it here,
for decisions of both modes ask them.
"""

from dataclasses import replace

import numpy as np

from controller_core.model import Broker, Cluster, changes, mode_rules, quorum_changes, settings
from controller_core.model.broker import BrokerProgress
from controller_core.quorum_mode.directory_transitions import forget_offline_replicas, refresh_offline_replicas
from kafka_metadata.records import ResourceType
from kafka_node.configs.topic_configs import config_value


def register_broker(change: quorum_changes.BrokerRegistered, cluster: Cluster) -> None:
    """Add or replace a registration. A new incarnation has sent no heartbeat yet."""
    broker = change.broker
    cluster.columns.record_ids(np.array([broker.id], dtype=np.int32))
    known = cluster.brokers.get(broker.id)
    if known is None or known.epoch != broker.epoch:
        cluster.progress[broker.id] = BrokerProgress()
        cluster.suspected.discard(broker.id)
    _set_broker(cluster, broker)


def change_broker(change: quorum_changes.BrokerChanged, cluster: Cluster) -> None:
    """Change the state of a registered broker."""
    known = cluster.brokers[change.broker]
    assert known.epoch == change.broker_epoch, f"broker {known.id} is registered under another epoch"
    fields = ("fenced", "in_controlled_shutdown", "directories", "cordoned_directories")
    changed = {name: value for name in fields if (value := getattr(change, name)) is not None}
    if change.fenced and known.id in cluster.progress:
        # On its next heartbeat it may shut down at once.
        cluster.progress[known.id] = replace(cluster.progress[known.id], shutdown_offset=-1)
    _set_broker(cluster, replace(known, **changed))


def unregister_broker(change: changes.BrokerUnregistered, cluster: Cluster) -> None:
    """Remove a registration."""
    cluster.brokers.pop(change.broker, None)
    cluster.progress.pop(change.broker, None)
    for brokers in (cluster.fenced, cluster.shutting_down, cluster.suspected):
        brokers.discard(change.broker)
    forget_offline_replicas(cluster, change.broker)


def observe_heartbeat(change: quorum_changes.HeartbeatObserved, cluster: Cluster) -> None:
    """Record how far a broker has read the metadata; it is alive."""
    known = cluster.progress.get(change.broker, BrokerProgress())
    cluster.progress[change.broker] = replace(
        known, metadata_offset=change.metadata_offset, may_shut_down=change.may_shut_down
    )
    cluster.suspected.discard(change.broker)
    if not cluster.brokers[change.broker].in_controlled_shutdown:
        cluster.shutting_down.discard(change.broker)


def observe_shutdown_offset(change: quorum_changes.ShutdownOffsetObserved, cluster: Cluster) -> None:
    """Record the offset at which a controlled shutdown may end: that of the last leaders that moved."""
    known = cluster.progress.get(change.broker, BrokerProgress())
    cluster.progress[change.broker] = replace(known, shutdown_offset=change.offset)


def suspect_broker(change: quorum_changes.BrokerSuspected, cluster: Cluster) -> None:
    """Elect a broker only where no other replica can lead, until its next heartbeat."""
    cluster.suspected.add(change.broker)


def begin_leaving(change: quorum_changes.BrokerLeaving, cluster: Cluster) -> None:
    """Exclude a broker from elections and ISRs, until its registration changes or its next heartbeat."""
    cluster.shutting_down.add(change.broker)


def _set_broker(cluster: Cluster, broker: Broker) -> None:
    before = cluster.brokers.get(broker.id)
    cluster.brokers[broker.id] = broker
    for brokers, belongs in ((cluster.fenced, broker.fenced), (cluster.shutting_down, broker.in_controlled_shutdown)):
        if belongs:
            brokers.add(broker.id)
        else:
            brokers.discard(broker.id)
    if before is None or before.directories != broker.directories:
        refresh_offline_replicas(cluster, broker)


def change_configs(change: quorum_changes.ConfigsChanged, cluster: Cluster) -> None:
    """Keep the configurations on which decisions depend."""
    for name, value in change.values.items():
        if name == settings.UNCLEAN_ELECTION:
            _set_unclean(cluster, change, None if value is None else config_value(name, {name: value}) is True)
        elif name == settings.MIN_ISR and change.type is ResourceType.BROKER and not change.name:
            cluster.min_isr_default = None if value is None else int(value)
        elif name == settings.MIN_ISR and change.type is ResourceType.TOPIC:
            cluster.min_isr_topics.pop(change.name, None)
            if value is not None:
                cluster.min_isr_topics[change.name] = int(value)


def _set_unclean(cluster: Cluster, change: quorum_changes.ConfigsChanged, allowed: bool | None) -> None:
    if change.type is ResourceType.TOPIC:
        cluster.unclean_topics.pop(change.name, None)
        if allowed is not None:
            cluster.unclean_topics[change.name] = allowed
    elif change.type is ResourceType.BROKER and not change.name:
        cluster.unclean_defaults.pop(settings.BrokerDefault.DYNAMIC, None)
        if allowed is not None:
            cluster.unclean_defaults[settings.BrokerDefault.DYNAMIC] = allowed


def change_feature_level(change: quorum_changes.FeatureLevelChanged, cluster: Cluster) -> None:
    """Set a feature's level, and the rules that depend on it."""
    cluster.features.pop(change.name, None)
    if change.level:
        cluster.features[change.name] = change.level
    cluster.rules = mode_rules.kraft_rules(cluster.features)

"""State-change log: one line for each state transition, with fields to search for.

Large changes are summarised after a limit, so that the failure of a broker with 100,000 leaders does not write 100,000 lines before
anything else happens.
"""

import logging
from collections.abc import Mapping, Sequence
from itertools import islice

from controller_core.model import NO_LEADER, Cluster, TopicPartition, changes, quorum_changes, zookeeper_changes
from controller_core.model.columns import unpad
from kafka_wire import Failure

log = logging.getLogger("steward.state_change")

MAX_LINES_PER_CHANGE = 20
"""Partitions of one change with a line each, some 3 ms; the others are counted."""


def log_change(cluster: Cluster, change: changes.Change) -> None:
    """Log a committed change; to be called before the change is applied, since lines contain the former state."""
    match change:
        case changes.PartitionStates():
            _log_states(cluster, change)
        case zookeeper_changes.BrokersObserved():
            now, before = {broker.id for broker in change.brokers}, set(cluster.brokers)
            if now != before:
                log.info("Live brokers changed", extra={"joined": sorted(now - before), "left": sorted(before - now)})
            log_unreachable(cluster, change)
        case quorum_changes.BrokerRegistered() | quorum_changes.BrokerChanged():
            _log_registration(cluster, change)
        case zookeeper_changes.ControlledShutdownStarted(broker=broker):
            log.info("Controlled shutdown of a broker started", extra={"broker": broker})
        case zookeeper_changes.OfflineReplicasObserved(broker=broker, offline=offline, online=online, refused=refused):
            if refused:
                extra = {
                    "broker": broker,
                    "partitions": _named(tuple(refused)),
                    "errors": sorted(set(refused.values())),
                }
                log.warning("Broker rejected replicas", extra=extra)
            if offline or online:
                log.log(
                    logging.WARNING if offline else logging.INFO,
                    "Offline replicas changed",
                    extra={"broker": broker, "offline": _named(offline), "online": _named(online)},
                )
        case zookeeper_changes.UncleanElectionObserved(topics=topics, defaults=defaults):
            by_default = {source.value: allowed for source, allowed in defaults.items()}
            log.info("Unclean leader election settings changed", extra={"topics": dict(topics), "defaults": by_default})
        case changes.TopicAdded(name=name, origin=origin):
            log.info("Topic added", extra={"topic": name, "origin": origin.value, "partitions": len(change.partitions)})
        case zookeeper_changes.TopicIdAssigned(topic=name, topic_id=topic_id):
            log.info("Topic id assigned", extra={"topic": name, "topic_id": str(topic_id)})
        case changes.PartitionsAdded(topic=name):
            log.info("Partitions added", extra={"topic": name, "added": len(change.partitions)})
        case zookeeper_changes.MovesStarted(topic=name, moves=moves):
            log.info("Reassignment started", extra={"topic": name, "partitions": len(moves)})
        case zookeeper_changes.MovesFinished(topic=name, replicas=replicas):
            log.info("Reassignment finished", extra={"topic": name, "partitions": len(replicas)})
        case zookeeper_changes.PendingReassignmentRequestsChanged(refused=refused):
            _log_failures("Requested reassignment rejected", refused)
        case zookeeper_changes.ElectionRequestsProcessed(failed=failed):
            _log_failures("Requested preferred leader not elected", failed)
        case zookeeper_changes.DeletionQueued(topics=names):
            log.info("Topic deletion queued", extra={"topics": list(names)})
        case zookeeper_changes.DeletionStarted(topic=name):
            log.info("Topic deletion started", extra={"topic": name, "brokers": sorted(change.waiting)})
        case zookeeper_changes.DeletionBlocked(topic=name, reason=reason):
            log.info("Topic deletion is waiting", extra={"topic": name, "reason": reason})
        case zookeeper_changes.StrayReplicasObserved(broker=broker, partitions=partitions):
            log.warning("Deleting stray logs", extra={"broker": broker, "partitions": _named(partitions)})
        case changes.BrokerUnregistered(broker=broker):
            log.info("Broker unregistered; topic deletions no longer wait for its logs", extra={"broker": broker})
        case zookeeper_changes.DeletionDequeued(names=names):
            log.info("Topics removed from the deletion queue", extra={"topics": list(names)})
        case zookeeper_changes.TopicDeletionObserved(setting=setting):
            log.info("Topic deletion setting changed", extra={"delete.topic.enable": setting.value})
        case changes.TopicRemoved(topic=name):
            log.info("Topic removed", extra={"topic": name})
        case _:
            pass


def _named(partitions: Sequence[TopicPartition]) -> list[str]:
    """Name partitions, at most a limited number."""
    named = [f"{name.topic}-{name.partition}" for name in partitions[:MAX_LINES_PER_CHANGE]]
    more = len(partitions) - len(named)
    return [*named, f"and {more} more"] if more else named


def _log_registration(cluster: Cluster, change: quorum_changes.BrokerRegistered | quorum_changes.BrokerChanged) -> None:
    """Log what changes for a broker in KRaft mode."""
    match change:
        case quorum_changes.BrokerRegistered(broker=registered):
            before = cluster.brokers.get(registered.id)
            if before is None or before.epoch != registered.epoch:
                log.info("Broker registered", extra={"broker": registered.id, "broker_epoch": registered.epoch})
        case quorum_changes.BrokerChanged(broker=broker, broker_epoch=epoch):
            if change.fenced is not None:
                message = "Broker fenced" if change.fenced else "Broker unfenced"
                log.log(
                    logging.WARNING if change.fenced else logging.INFO,
                    message,
                    extra={"broker": broker, "broker_epoch": epoch},
                )
            if change.in_controlled_shutdown:
                log.info("Controlled shutdown of a broker started", extra={"broker": broker})


def _log_states(cluster: Cluster, change: changes.PartitionStates) -> None:
    columns = cluster.columns
    for index, row in enumerate(change.rows[:MAX_LINES_PER_CHANGE].tolist()):
        name = cluster.name_of(row)
        unclean = change.unclean is not None and bool(change.unclean[index])
        log.log(
            logging.WARNING if unclean or change.leader[index] == NO_LEADER else logging.INFO,
            "Partition state changed",
            extra={
                "topic": name.topic,
                "partition": name.partition,
                "leader_before": int(columns.leader[row]),
                "leader": int(change.leader[index]),
                "leader_epoch": int(change.leader_epoch[index]),
                "isr_before": columns.isr_of(row),
                "isr": unpad(change.isr[index]),
                "unclean": unclean,
            },
        )
    more = len(change.rows) - MAX_LINES_PER_CHANGE
    if more > 0:
        log.info("Further partition states changed", extra={"more": more})


def log_unreachable(cluster: Cluster, change: zookeeper_changes.BrokersObserved) -> None:
    """Log brokers without the inter-broker listener: once for each registration."""
    for broker in change.unreachable:
        known = cluster.unreachable.get(broker.id)
        if known is None or known.epoch != broker.epoch:
            log.error(
                "Broker counts as down: its registration lacks the inter-broker listener. Add the listener to the broker, "
                "or set the controller's inter-broker listener to the brokers' inter.broker.listener.name",
                extra={"broker": broker.id, "listeners": [endpoint.listener for endpoint in broker.endpoints]},
            )


def _log_failures(event: str, failures: Mapping[TopicPartition, Failure]) -> None:
    for name, failure in islice(failures.items(), MAX_LINES_PER_CHANGE):
        extra = {
            "topic": name.topic,
            "partition": name.partition,
            "error": failure.code.name,
            "reason": failure.message,
        }
        log.warning(event, extra=extra)
    more = len(failures) - MAX_LINES_PER_CHANGE
    if more > 0:
        log.warning("%s, and more", event, extra={"more": more})

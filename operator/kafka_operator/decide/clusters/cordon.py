"""Cordons of brokers that are to be emptied or stopped, so that Kafka places no new replicas on them (KIP-1066, Kafka 4.3).

A broker is cordoned by its setting `cordoned.log.dirs=*`. It is cordoned while one of these holds, and for no longer:

    removal     a Reassignment of the Cluster's namespace with the goal removeBrokers, for all topics, runs forward
    emptied     such a Reassignment is Completed, and exists; but not for a broker whose pod is declared, or that another one adds
    scale-in    fewer pods are declared than there are, and the broker's pod is to be removed
    drain       the node of the broker's pod is to be left, and the pod has to wait for its turn

So every end of a Reassignment but a success (failure, cancel, rollback, deletion) ends its cordon, without a step of its own. The last
two are left out where the other brokers are fewer than the largest replication factor: Kafka would refuse to create such topics.

A cordon is recorded in the Cluster's status, with the previous value, before it is made; the record is removed when Kafka was seen
without it (ADR 43). A value that another client has set in the meantime stays. An offline broker keeps its setting, and its record,
until it returns: only a broker itself changes its settings.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime

from kafka_operator.decide.clusters.cluster_metrics import METADATA_VERSIONS
from kafka_operator.decide.kafka.kafka_errors import message_of, passes_by_itself
from kafka_operator.decide.kafka.observed import Failure
from kafka_operator.decide.reassignments.reassignment_steps import AlterBroker
from kafka_operator.resources.cluster import Cluster, ClusterStatus, Versions
from kafka_operator.resources.cordon import Cordon
from kafka_operator.resources.reassignment import Reassignment, State
from kafka_operator.resources.reassignment_terms import Action
from reconciler.decide.conditions import FALSE, TRUE, condition_of, event_of_reasons, with_condition, without_condition
from reconciler.decide.steps import Done, ResourceEvent, Wait, WriteStatus
from reconciler.resources.metadata import Condition

SETTING, EVERY_DIRECTORY = "cordoned.log.dirs", "*"

FIRST_LEVEL = 30
"""metadata.version 4.3-IV0, the first with cordons (MetadataVersion.isCordonedLogDirsSupported)."""

POLL_INTERVAL_S = 10.0
"""Interval of checks while a cordon is recorded: the poll interval of brokers."""

CORDONED, REFUSED, LEFT = "Cordoned", "CordonRefused", "CordonLeft"
"""Condition, and its reasons that a user has to know."""


@dataclass(frozen=True, slots=True)
class Leaving:
    """Brokers whose pods are to be removed or to leave their node, and the largest replication factor of any topic."""

    scaled_in: frozenset[int] = frozenset()
    draining: frozenset[int] = frozenset()
    replication_factor: int = 0


NONE_LEAVING = Leaving()


@dataclass(frozen=True, slots=True)
class ReadCordons:
    """Read the setting of these brokers."""

    broker_ids: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class AlterCordons:
    """Change the setting of brokers."""

    changes: tuple[AlterBroker, ...]


@dataclass(frozen=True, slots=True)
class CordonView:
    """Input of the decision.

    `wanted` has the reason of each broker that is to be cordoned; `observed` the brokers' values as read, or a Failure; `refused` the brokers
    that rejected a change in this attempt; `others` the records of other Clusters of the same Kafka, by broker: their `before` is the value
    before this cordon, too.
    """

    now: datetime
    alive: frozenset[int]
    wanted: Mapping[int, str] = field(default_factory=dict)
    observed: Mapping[int, str | Failure | None] = field(default_factory=dict)
    refused: Mapping[int, Failure] = field(default_factory=dict)
    others: Mapping[int, Cordon] = field(default_factory=dict)


CordonStep = ReadCordons | AlterCordons | WriteStatus[ClusterStatus] | Wait | Done


def supports_cordons(versions: Versions | None) -> bool:
    """Return whether a cluster has cordons, by its metadata.version.

    >>> [supports_cordons(Versions(metadata_version=name)) for name in ("4.2-IV1", "4.3-IV0", "level 31", None)]
    [False, True, True, False]
    """
    older = {name for level, name in METADATA_VERSIONS if level < FIRST_LEVEL}
    return versions is not None and versions.metadata_version is not None and versions.metadata_version not in older


def brokers_to_empty(reassignment: Reassignment) -> frozenset[int]:
    """Return the brokers that a Reassignment removes for all topics: one from which only some topics move is not emptied."""
    goal = reassignment.goal
    return frozenset() if goal is None or goal.topics else frozenset(goal.remove_brokers)


def wanted_cordons(cluster: Cluster, reassignments: Iterable[Reassignment], leaving: Leaving) -> Mapping[int, str]:
    """Return the brokers that are to be cordoned, with the reason of each; `reassignments` are those of the Cluster and its namespace."""
    status = cluster.status
    # Versions are unknown while no broker reports them.
    supported = bool(status.cordons) or supports_cordons(status.versions)
    if cluster.metadata.deleted is not None or not supported:
        return {}
    items = [item for item in reassignments if item.metadata.deleted is None]
    wanted = _cordons_of_pods(cluster, leaving)
    added = {broker for item in items if item.status.begun and item.goal for broker in item.goal.add_brokers}
    for item in items:
        removed = brokers_to_empty(item)
        if item.action is not Action.EXECUTE or item.status.rollback:
            continue
        if item.status.begun:
            wanted |= dict.fromkeys(removed, f"Reassignment {item.key.name} moves its replicas away")
        elif item.status.state is State.COMPLETED:
            reason = f"Reassignment {item.key.name} has moved its replicas away; delete it to end the cordon"
            wanted |= dict.fromkeys(removed - _declared(cluster) - added - wanted.keys(), reason)
    return wanted


def decide_cordons(cluster: Cluster, view: CordonView) -> CordonStep:
    """Return the next step towards exactly the wanted cordons."""
    records = {cordon.broker_id: cordon for cordon in cluster.status.cordons}
    unread = (records.keys() | view.wanted.keys()) & view.alive - view.observed.keys()
    if unread:
        return ReadCordons(tuple(sorted(unread)))
    added = [_first_record(broker, view) for broker in view.wanted if broker not in records]
    new = tuple(cordon for cordon in added if cordon is not None)
    if new:
        ordered = tuple(sorted((*cluster.status.cordons, *new), key=lambda cordon: cordon.broker_id))
        return WriteStatus(replace(cluster.status, cordons=ordered))
    changes = [change for cordon in records.values() if (change := _change(cordon, view)) is not None]
    if changes:
        return AlterCordons(tuple(changes))
    status = _settled(cluster, view)
    if status != cluster.status:
        return WriteStatus(status, _event(cluster.status.conditions, status.conditions))
    return Wait(POLL_INTERVAL_S) if status.cordons or view.wanted else Done()


def missing_cordons(reassignment: Reassignment, cluster: Cluster | None) -> frozenset[int]:
    """Return the brokers that a Reassignment needs cordoned before its first move, and that are not; none where there will be none."""
    if (
        cluster is None
        or cluster.metadata.paused
        or cluster.key.namespace != reassignment.key.namespace
        or not supports_cordons(cluster.status.versions)
    ):
        return frozenset()
    current = condition_of(cluster.status.conditions, CORDONED)
    if current is not None and current.reason == REFUSED:
        return frozenset()
    in_force = {cordon.broker_id for cordon in cluster.status.cordons if cordon.in_force}
    return brokers_to_empty(reassignment) & frozenset(cluster.status.broker_ids or ()) - in_force


def remaining_cordons(reassignment: Reassignment, cluster: Cluster | None) -> frozenset[int]:
    """Return the live brokers that a Reassignment removed and that are still cordoned: later releases of Kafka refuse to move replicas back there."""
    if cluster is None or cluster.metadata.paused or cluster.key.namespace != reassignment.key.namespace:
        return frozenset()
    recorded = {cordon.broker_id for cordon in cluster.status.cordons}
    return brokers_to_empty(reassignment) & recorded & frozenset(cluster.status.broker_ids or ())


def cordons_left(status: ClusterStatus) -> ResourceEvent | None:
    """Return the event for a Cluster that is deleted with cordons still set, None without any."""
    if not status.cordons:
        return None
    names = ", ".join(str(cordon.broker_id) for cordon in status.cordons)
    message = (
        f"The cordon of brokers {names} could not be removed. Remove it with kafka-configs --alter --delete-config {SETTING}; "
        "for an offline broker this needs --bootstrap-controller."
    )
    return ResourceEvent(True, LEFT, message)


def _cordons_of_pods(cluster: Cluster, leaving: Leaving) -> dict[int, str]:
    """Return the cordons for pods that are to go, unless too few other brokers would take new replicas."""
    going = leaving.scaled_in | leaving.draining
    others = frozenset(cluster.status.broker_ids or ()) - going
    if not going or len(others) < max(1, leaving.replication_factor):
        return {}
    reasons = dict.fromkeys(leaving.draining, "its node is being drained")
    return reasons | dict.fromkeys(leaving.scaled_in, "its pod is to be removed")


def _declared(cluster: Cluster) -> frozenset[int]:
    """Return the ids of the brokers whose pods are declared, none if their number is not."""
    group = cluster.brokers
    if group is None or group.replicas is None:
        return frozenset()
    return frozenset(range(group.first_id, group.first_id + group.replicas))


def _first_record(broker: int, view: CordonView) -> Cordon | None:
    """Return the record of a cordon that is about to be made; None while the broker's current value is not known."""
    value = view.observed.get(broker)
    if broker not in view.alive or isinstance(value, Failure):
        return None
    other = view.others.get(broker)
    return Cordon(broker, value if other is None else other.before)


def _change(cordon: Cordon, view: CordonView) -> AlterBroker | None:
    """Return the change of a broker's setting that is due, None for none."""
    broker, value = cordon.broker_id, view.observed.get(cordon.broker_id)
    if broker not in view.alive or broker in view.refused or isinstance(value, Failure):
        return None
    if broker in view.wanted:
        return None if value == EVERY_DIRECTORY else AlterBroker(broker, ((SETTING, EVERY_DIRECTORY),))
    if value != EVERY_DIRECTORY or cordon.before == EVERY_DIRECTORY:
        return None
    return AlterBroker(broker, ((SETTING, cordon.before),))


def _settled(cluster: Cluster, view: CordonView) -> ClusterStatus:
    """Return the status after a read of all brokers that need no change."""
    kept = []
    for cordon in cluster.status.cordons:
        broker, value = cordon.broker_id, view.observed.get(cordon.broker_id)
        failed = broker in view.refused or isinstance(value, Failure)
        if broker not in view.alive or (failed and broker not in view.wanted):
            kept.append(cordon)
        elif broker in view.wanted:
            kept.append(replace(cordon, in_force=not failed and value == EVERY_DIRECTORY))
    conditions = without_condition(cluster.status.conditions, CORDONED)
    shown = _shown(tuple(kept), view)
    if shown is not None:
        status, reason, message = shown
        conditions = with_condition(
            cluster.status.conditions,
            CORDONED,
            status=status,
            reason=reason,
            message=message,
            generation=cluster.metadata.generation,
            now=view.now,
        )
    return replace(cluster.status, cordons=tuple(kept), conditions=conditions)


def _shown(kept: Collection[Cordon], view: CordonView) -> tuple[str, str, str] | None:
    """Return status, reason and message of the condition, None where no broker is cordoned or has to be."""
    found = {broker: value for broker, value in view.observed.items() if isinstance(value, Failure)} | dict(
        view.refused
    )
    failures = {broker: failure for broker, failure in found.items() if not passes_by_itself(failure)}
    recorded = {cordon.broker_id for cordon in kept}
    refused = sorted(failures.keys() & view.wanted.keys())
    left = sorted(failures.keys() & recorded - view.wanted.keys())
    if refused:
        message = f"{message_of(failures[refused[0]])} Kafka may place new replicas there."
        return FALSE, REFUSED, f"Brokers that cannot be cordoned: {_listed(refused)}. {message}"
    if left:
        message = f"{message_of(failures[left[0]])} It is retried."
        return FALSE, LEFT, f"Brokers whose cordon cannot be removed: {_listed(left)}. {message}"
    reasons = [f"broker {broker} ({view.wanted[broker]})" for broker in sorted(recorded & view.wanted.keys())]
    if reasons:
        return TRUE, CORDONED, f"Kafka places no new replicas on {', '.join(reasons)}."
    if recorded:
        return (
            TRUE,
            "BrokerOffline",
            f"Offline brokers that are cordoned until they return: {_listed(sorted(recorded))}.",
        )
    return None


def _event(before: tuple[Condition, ...], after: tuple[Condition, ...]) -> ResourceEvent | None:
    """Return the event for a cordon that was refused or left, and for the end of that."""
    return event_of_reasons(before, after, CORDONED, {REFUSED, LEFT})


def _listed(brokers: Iterable[int]) -> str:
    return ", ".join(map(str, brokers))

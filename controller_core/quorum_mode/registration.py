"""Registration of brokers in KRaft mode (KIP-631), and its end.

A registration has two steps if the broker is a new incarnation. First, its earlier one leaves its partitions: it lost unflushed records
unless it shut down cleanly, which the broker proves by the epoch that it stored then (KIP-966). Then the new one is registered, fenced,
as the first record of its own batch: its epoch is that record's offset (C16). A controller that fails in between loses nothing: the
broker registers again.

A process whose predecessor's session is still valid is a duplicate, because two processes with one id would replace each other without
end. Two kinds of restarted process are registered at once (ADR 57): the new process has all log directories of the old one, which it can only lock if
that one is gone, or the old one had been granted its shutdown.

Checks and their order: ClusterControlManager.registerBroker of Kafka 4.3.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

from controller_core.model import Broker, Cluster, changes, events, quorum_changes
from controller_core.model.broker import FeatureRange
from controller_core.model.decision import Decision, decision
from controller_core.model.ids import MAX_BROKER_ID
from controller_core.model.quorum_events import RegisterBroker
from controller_core.quorum_mode.leaving import leave_further, leave_partitions
from kafka_metadata import directory_ids, metadata_versions
from kafka_wire import ErrorCode, Failure


@dataclass(frozen=True, slots=True)
class Registered:
    """Result of a registration."""

    broker_epoch: int


def decide_register_broker(cluster: Cluster, event: RegisterBroker) -> Decision[Failure | Registered]:
    """Refuse a process, let its predecessor leave, or register it."""
    known = cluster.brokers.get(event.broker)
    for refuse in CHECKS:
        if (failure := refuse(cluster, event, known)) is not None:
            return Decision(reply=failure)
    is_same = known is not None and known.incarnation_id == event.incarnation_id
    if not is_same:
        is_clean = known is not None and event.previous_broker_epoch == known.epoch
        left = leave_partitions(cluster, event.broker, is_lost=cluster.rules.elr and not is_clean)
        if not left.is_last:
            return leave_further([left.change], event.broker, event)
        if left.change is not None:
            return Decision((left.change,), then=(event,))
    registered = Broker(
        event.broker,
        event.log_end,
        event.endpoints,
        event.rack,
        event.incarnation_id,
        fenced=True,
        directories=directory_ids.sorted_directories(event.directories) if cluster.rules.directories else (),
        features=event.features,
    )
    if known is not None and is_same:
        registered = replace(
            registered, epoch=known.epoch, fenced=known.fenced, in_controlled_shutdown=known.in_controlled_shutdown
        )
    return Decision((quorum_changes.BrokerRegistered(registered),), reply=Registered(registered.epoch))


def _refuse_cluster(cluster: Cluster, event: RegisterBroker, _known: Broker | None) -> Failure | None:
    if event.cluster_id == cluster.cluster_id:
        return None
    message = f"Expected cluster ID {cluster.cluster_id}, but got cluster ID {event.cluster_id}"
    return Failure(ErrorCode.INCONSISTENT_CLUSTER_ID, message)


def _refuse_id(_cluster: Cluster, event: RegisterBroker, _known: Broker | None) -> Failure | None:
    if 0 <= event.broker <= MAX_BROKER_ID:
        return None
    return Failure(ErrorCode.INVALID_REGISTRATION, f"Broker id {event.broker} is not between 0 and {MAX_BROKER_ID}.")


def _refuse_duplicate(cluster: Cluster, event: RegisterBroker, known: Broker | None) -> Failure | None:
    if event.broker == cluster.controller_id:
        return Failure(ErrorCode.DUPLICATE_BROKER_REGISTRATION, f"Node {event.broker} is the active controller.")
    if known is None or known.incarnation_id == event.incarnation_id or not event.session_is_valid:
        return None
    policy = cluster.restarts
    if policy.admits_same_directories and known.directories and set(known.directories) <= set(event.directories):
        return None
    progress = cluster.progress.get(known.id)
    if policy.admits_after_shutdown and known.fenced and progress is not None and progress.may_shut_down:
        return None
    message = (
        "Another broker is registered with that broker id. If the broker was recently restarted this should self-resolve "
        "once the heartbeat manager expires the broker's session."
    )
    return Failure(ErrorCode.DUPLICATE_BROKER_REGISTRATION, message)


def _refuse_migration(_cluster: Cluster, event: RegisterBroker, _known: Broker | None) -> Failure | None:
    if not event.is_migrating:
        return None
    return Failure(ErrorCode.BROKER_ID_NOT_REGISTERED, "Controller does not support registering ZK brokers.")


def _refuse_directories(cluster: Cluster, event: RegisterBroker, _known: Broker | None) -> Failure | None:
    if not cluster.rules.directories:
        return None
    message = None
    if not event.directories:
        message = "No directories specified in request"
    elif any(map(directory_ids.is_reserved, event.directories)):
        message = "Reserved directory ID in request"
    elif len(set(event.directories)) != len(event.directories):
        message = "Duplicate directory ID in request"
    else:
        message = next(
            (
                f"Broker {other.id} is already registered with directory {min(shared)}"
                for other in cluster.brokers.values()
                if other.id != event.broker and (shared := set(event.directories) & set(other.directories))
            ),
            None,
        )
    return Failure(ErrorCode.INVALID_REGISTRATION, message) if message else None


def _refuse_features(cluster: Cluster, event: RegisterBroker, _known: Broker | None) -> Failure | None:
    supported = {feature.name: feature for feature in event.features}
    levels = {**cluster.features, metadata_versions.KRAFT_VERSION: event.kraft_version}
    for name in sorted({*levels, *supported}):
        level = levels.get(name, 0)
        # A broker that does not name a feature supports only level 0 of it.
        wanted = supported.get(name, FeatureRange(name, 0, 0))
        if not wanted.minimum <= level <= wanted.maximum:
            message = (
                f"Unable to register because the broker does not support finalized version {level} of {name}. "
                f"The broker wants a version between {wanted.minimum} and {wanted.maximum}, inclusive."
            )
            return Failure(ErrorCode.UNSUPPORTED_VERSION, message)
    if metadata_versions.METADATA_VERSION not in supported:
        message = f"Request features do not contain '{metadata_versions.METADATA_VERSION}'"
        return Failure(ErrorCode.INVALID_REGISTRATION, message)
    return None


CHECKS: tuple[Callable[[Cluster, RegisterBroker, Broker | None], Failure | None], ...] = (
    _refuse_cluster,
    _refuse_id,
    _refuse_duplicate,
    _refuse_migration,
    _refuse_directories,
    _refuse_features,
)


@dataclass(frozen=True, slots=True)
class Unregistered:
    """A broker's registration has ended."""


def decide_unregister_broker(cluster: Cluster, event: events.UnregisterBroker) -> Decision[Failure | Unregistered]:
    """Remove a broker that never returns from ISRs, then its registration."""
    known = cluster.brokers.get(event.broker)
    if known is None:
        message = f"Broker ID {event.broker} is not currently registered"
        return Decision(reply=Failure(ErrorCode.BROKER_ID_NOT_REGISTERED, message))
    left = leave_partitions(cluster, event.broker)
    if not left.is_last:
        return leave_further([left.change], event.broker, event)
    made = decision(left.change, changes.BrokerUnregistered(event.broker, known.epoch))
    return Decision(made.changes, reply=Unregistered())

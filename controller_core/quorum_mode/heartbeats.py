"""Heartbeats of brokers in KRaft mode: fencing, unfencing and controlled shutdown (KIP-631).

    state               heartbeat asks for      and                                         next state
    fenced              shutdown                                                            may shut down
    fenced              service                 has read its registration                   in service: unfenced
    in service          fencing                                                             fenced
    in service          shutdown                leads nothing                               may shut down: fenced
    in service          shutdown                leads partitions                            controlled shutdown: leaders move
    controlled shutdown anything                leads nothing, and all others in service    may shut down: fenced
                                                have read of the moved leaders

Everything else changes nothing. A broker in controlled shutdown waits for the others because followers that do not know the new leader
yet would fetch from a process that is gone. A new active controller has no offsets: it starts the controlled shutdown again. The
partitions of a broker that has many are changed in steps; the heartbeat is answered after the last one.

Source: BrokerHeartbeatManager.calculateNextBrokerState and ReplicationControlManager.processBrokerHeartbeat of Kafka 4.3.
"""

from dataclasses import dataclass, replace
from enum import Enum

from controller_core.decisions.broker_requests import refuse_stale_broker
from controller_core.model import Broker, Cluster, changes, events, quorum_changes
from controller_core.model.broker import BrokerProgress
from controller_core.model.decision import Decision, decision
from controller_core.model.quorum_events import (
    ElectWaitingLeaders,
    FenceBroker,
    Heartbeat,
    HeartbeatConnectionEnded,
    NoteShutdownOffset,
    ReportDirectories,
)
from controller_core.quorum_mode.leaving import leave_further, leave_partitions, return_to_partitions
from kafka_wire import Failure


class BrokerState(Enum):
    """State of a registered broker (BrokerControlState)."""

    FENCED = "fenced"
    IN_SERVICE = "in service"
    CONTROLLED_SHUTDOWN = "controlled shutdown"
    MAY_SHUT_DOWN = "may shut down"


@dataclass(frozen=True, slots=True)
class HeartbeatAnswer:
    """What a broker learns of itself."""

    is_caught_up: bool
    """Whether it has read the metadata up to its own registration."""
    is_fenced: bool
    may_shut_down: bool


def decide_heartbeat(cluster: Cluster, event: Heartbeat) -> Decision[Failure | HeartbeatAnswer]:
    """Change the broker's state by the table, and note how far it has read."""
    if (failure := refuse_stale_broker(cluster, event.broker, event.broker_epoch)) is not None:
        return Decision(reply=failure)
    broker = cluster.brokers[event.broker]
    next_state = _next_state(cluster, broker, event)
    is_entered = event.is_continued or next_state is not _state(cluster, broker)
    entered = _enter(cluster, broker, next_state) if is_entered else Entered()
    then: list[events.Event] = []
    if is_entered and next_state is BrokerState.CONTROLLED_SHUTDOWN:
        then.append(NoteShutdownOffset(broker.id))
    may_shut_down = entered.is_whole and next_state is BrokerState.MAY_SHUT_DOWN
    observed = quorum_changes.HeartbeatObserved(broker.id, event.metadata_offset, may_shut_down)
    if not entered.is_whole:
        rest = replace(event, is_continued=next_state is BrokerState.CONTROLLED_SHUTDOWN)
        return replace(leave_further([*entered.made, observed], broker.id, rest), then=tuple(then))
    if event.offline_directories or event.cordoned_directories is not None:
        reported = ReportDirectories(broker.id, broker.epoch, event.offline_directories, event.cordoned_directories)
        then.append(reported)
    is_fenced = next_state in {BrokerState.FENCED, BrokerState.MAY_SHUT_DOWN}
    answer = HeartbeatAnswer(_is_caught_up(broker, event), is_fenced, may_shut_down)
    return Decision((*entered.made, observed), then=tuple(then), rest=entered.rest, reply=answer)


def _is_caught_up(broker: Broker, event: Heartbeat) -> bool:
    # The epoch is the offset of the registration's record (C16).
    return event.metadata_offset >= broker.epoch


def _state(cluster: Cluster, broker: Broker) -> BrokerState:
    if broker.fenced:
        return BrokerState.FENCED
    progress = cluster.progress.get(broker.id, BrokerProgress())
    return BrokerState.CONTROLLED_SHUTDOWN if progress.shutdown_offset >= 0 else BrokerState.IN_SERVICE


def _next_state(cluster: Cluster, broker: Broker, event: Heartbeat) -> BrokerState:
    state = _state(cluster, broker)
    if state is BrokerState.CONTROLLED_SHUTDOWN:
        is_done = not event.is_continued and not _leads(cluster, broker.id) and _others_have_read(cluster, broker.id)
        return BrokerState.MAY_SHUT_DOWN if is_done else state
    if event.wants_shutdown:
        is_done = state is BrokerState.FENCED or event.wants_fence or not _leads(cluster, broker.id)
        return BrokerState.MAY_SHUT_DOWN if is_done else BrokerState.CONTROLLED_SHUTDOWN
    if event.wants_fence:
        return BrokerState.FENCED
    return BrokerState.IN_SERVICE if state is BrokerState.IN_SERVICE or _is_caught_up(broker, event) else state


def _leads(cluster: Cluster, broker: int) -> bool:
    columns = cluster.columns
    return bool(len(columns.led_by(columns.flags([broker]))))


def _others_have_read(cluster: Cluster, broker: int) -> bool:
    """Whether every other broker in service has read the metadata up to the broker's shutdown offset."""
    needed = cluster.progress[broker].shutdown_offset
    others = cluster.may_lead() - {broker}
    return all(cluster.progress.get(other, BrokerProgress()).metadata_offset >= needed for other in others)


@dataclass(frozen=True, slots=True)
class Entered:
    """The changes with which a broker enters a state."""

    made: tuple[changes.Change, ...] = ()
    is_whole: bool = True
    """Whether they are all: else the same event is decided again."""
    rest: tuple[events.Event, ...] = ()
    """What can follow after the answer to the broker."""


def _enter(cluster: Cluster, broker: Broker, state: BrokerState) -> Entered:
    match state:
        case BrokerState.IN_SERVICE:
            unfenced = quorum_changes.BrokerChanged(broker.id, broker.epoch, fenced=False)
            returned = return_to_partitions(cluster, broker.id)
            rest = () if returned.is_last else (ElectWaitingLeaders(),)
            return Entered(decision(unfenced, returned.change).changes, rest=rest)
        case BrokerState.CONTROLLED_SHUTDOWN:
            left = leave_partitions(cluster, broker.id)
            begun = quorum_changes.BrokerChanged(broker.id, broker.epoch, in_controlled_shutdown=True)
            made = decision(begun if left.is_last and not broker.in_controlled_shutdown else None, left.change)
            return Entered(made.changes, left.is_last)
        case BrokerState.FENCED | BrokerState.MAY_SHUT_DOWN:
            return _fence(cluster, broker)


def _fence(cluster: Cluster, broker: Broker) -> Entered:
    if broker.fenced:
        return Entered()
    left = leave_partitions(cluster, broker.id)
    fenced = quorum_changes.BrokerChanged(broker.id, broker.epoch, fenced=True)
    return Entered(decision(left.change, fenced if left.is_last else None).changes, left.is_last)


def decide_fence_broker(cluster: Cluster, event: FenceBroker) -> Decision[None]:
    """Fence the incarnation whose session expired. Another one may already be registered."""
    broker = cluster.brokers.get(event.broker)
    if broker is None or broker.epoch != event.broker_epoch:
        return decision()
    fenced = _fence(cluster, broker)
    if fenced.is_whole:
        return decision(*fenced.made)
    return leave_further(fenced.made, broker.id, event)


def decide_note_shutdown_offset(_cluster: Cluster, event: NoteShutdownOffset) -> Decision[None]:
    """Note the offset of the last record that moved leaders."""
    return decision(quorum_changes.ShutdownOffsetObserved(event.broker, event.log_end - 1))


def decide_heartbeat_connection_ended(cluster: Cluster, event: HeartbeatConnectionEnded) -> Decision[None]:
    """Suspect a broker in service: elections prefer others until its next heartbeat (ADR 57)."""
    broker = cluster.brokers.get(event.broker)
    is_registered = broker is not None and broker.epoch == event.broker_epoch and not broker.fenced
    if not is_registered or not cluster.restarts.elects_suspected_last:
        return decision()
    return decision(quorum_changes.BrokerSuspected(event.broker))


def decide_report_directories(cluster: Cluster, event: ReportDirectories) -> Decision[None]:
    """Move leaders and ISRs off directories that failed, and note failed and cordoned directories.

    A broker without any directory left keeps its registration: no record can contain that (an empty list means unchanged),
    and the broker stops.
    """
    broker = cluster.brokers.get(event.broker)
    if broker is None or broker.epoch != event.broker_epoch or not cluster.rules.directories:
        return decision()
    online = tuple(directory for directory in broker.directories if directory not in event.offline)
    failed = len(online) < len(broker.directories)
    left = None
    if failed:
        rows = cluster.rows_in_directories(broker.id, set(broker.directories) - set(online))
        left, is_last = leave_partitions(cluster, broker.id, rows)
        if not is_last:
            return Decision(() if left is None else (left,), rest=(event,))
    cordons = event.cordoned if cluster.rules.cordoned_directories else None
    is_cordoned = cordons is not None and (
        broker.cordoned_directories is None or set(cordons) != set(broker.cordoned_directories)
    )
    is_shorter = failed and bool(online)
    if not is_shorter and not is_cordoned:
        return decision(left)
    changed = quorum_changes.BrokerChanged(
        broker.id,
        broker.epoch,
        directories=online if is_shorter else None,
        cordoned_directories=cordons if is_cordoned else None,
    )
    return decision(left, changed)

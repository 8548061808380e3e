"""ControlledShutdown (KIP-143): a broker's leaders move to other brokers before it exits.

Afterwards the broker leads no partition that another live ISR member can lead (C8), is in no ISR that has another member, and is sent
requests to stop following, so that no leader waits for its fetches. It repeats the request until it leads no partition.
"""

from dataclasses import dataclass

import numpy as np

from controller_core import model
from controller_core.decisions.broker_requests import stale_epoch
from controller_core.model import changes, zookeeper_changes, zookeeper_events
from controller_core.model.decision import Decision, SendStopReplica, decision
from controller_core.rules import election, election_columns, partition_change
from kafka_wire import ErrorCode, Failure


@dataclass(frozen=True, slots=True)
class Remaining:
    """Partitions that the broker still leads because no other replica can."""

    partitions: tuple[model.TopicPartition, ...]


def decide_controlled_shutdown(
    cluster: model.Cluster, event: zookeeper_events.ControlledShutdown
) -> Decision[Failure | Remaining]:
    """Move leaders off a broker and remove it from ISRs."""
    known = cluster.brokers.get(event.broker)
    if known is None:
        return Decision(reply=Failure(ErrorCode.BROKER_NOT_AVAILABLE, f"Broker id {event.broker} does not exist."))
    if event.broker_epoch != model.NO_EPOCH and event.broker_epoch < known.epoch:
        return Decision(reply=stale_epoch(event.broker, known.epoch, event.broker_epoch))
    leaving = cluster.columns.flags({*cluster.shutting_down, event.broker})
    led = _led_with_other_replicas(cluster, event.broker)
    moved, kept = _elect_new_leaders(cluster, led, leaving)
    following = _leave_isrs(cluster, event.broker)
    stop = _stop_following(cluster, event.broker)
    remaining = Remaining(tuple(cluster.names_of(kept)))
    written = decision(
        zookeeper_changes.ControlledShutdownStarted(event.broker), moved, following, sends=[stop] if stop else []
    )
    return Decision(written.changes, written.sends, reply=remaining)


def _led_with_other_replicas(cluster: model.Cluster, broker: int) -> model.IntArray:
    """Return the rows that the broker leads and that have another replica: without one there is no candidate."""
    columns = cluster.columns
    rows = cluster.without_pending_deletion(columns.led_by(columns.flags([broker])))
    # A used second slot means more than one replica: replica lists have no gaps.
    shared: model.IntArray = rows[columns.replicas[rows, 1] != model.NO_BROKER]
    return shared


def _elect_new_leaders(
    cluster: model.Cluster, rows: model.IntArray, leaving: model.BoolArray
) -> tuple[changes.PartitionStates | None, model.IntArray]:
    """Elect new leaders; also return the rows without a candidate."""
    columns = cluster.columns
    elections = election_columns.elect_shutdown(
        columns.replicas[rows], columns.isr[rows], columns.flags(cluster.unfenced()), leaving
    )
    unfenced, shutting_down = cluster.unfenced(), set(np.flatnonzero(leaving).tolist())

    def elect(_position: int, row: int) -> election.Election:
        online = unfenced - cluster.offline_at(row)
        return election.elect_shutdown(columns.replicas_of(row), columns.isr_of(row), online, shutting_down)

    elections = election_columns.elect_rows_with_offline_replicas(cluster, rows, elections, elect)
    return partition_change.change_leaders(cluster, rows, elections), rows[~elections.elected]


def _leave_isrs(cluster: model.Cluster, broker: int) -> changes.PartitionStates | None:
    """Remove the broker from the ISRs in which it follows and another member stays.

    Without a leader the ISR stays: only its members may lead again.
    """
    columns = cluster.columns
    rows = cluster.without_pending_deletion(columns.with_in_isr(columns.flags([broker])))
    isr = columns.isr[rows]
    led_by_another = (columns.leader[rows] != broker) & (columns.leader[rows] != model.NO_LEADER)
    follows = led_by_another & ((isr != model.NO_BROKER).sum(axis=1) > 1)
    return partition_change.shrink_isr(cluster, rows[follows], isr[follows] != broker)


def _stop_following(cluster: model.Cluster, broker: int) -> SendStopReplica | None:
    """Return the request to stop following, without deleting logs; it is harmless if ISRs still contain the broker."""
    columns = cluster.columns
    rows = cluster.without_pending_deletion(columns.hosted_by(columns.flags([broker])))
    rows = rows[(columns.leader[rows] != broker) & (columns.partition_epoch[rows] != model.NO_EPOCH)]
    if not len(rows):
        return None
    # The leader epoch of the shrunk ISR; a broker accepts a StopReplica whose epoch is not below its own.
    epochs = tuple(partition_change.shrunk_leader_epochs(cluster, rows).tolist())
    return SendStopReplica(broker, tuple(cluster.names_of(rows)), epochs, delete=False)

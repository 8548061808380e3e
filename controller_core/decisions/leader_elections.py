"""Leader elections while brokers stay live: as requested (ElectLeaders), and periodic for the balance of leaders (C14).

ElectLeaders elects preferred leaders, or unclean leaders where the ISR has no live member and the caller accepts that. Results per
partition are Kafka's (KIP-183, KIP-460). If a write is refused in part, or its result is lost, the event is decided
again. Partitions that the earlier attempt elected are reported as elected: the event carries the attempt's leader epochs, and a
state that this controller wrote with such an epoch can only be the result of that attempt.

Balance: a broker that restarts finds its partitions led by other brokers. The controller periodically computes for each broker:

    imbalance = partitions that prefer the broker and are not led by it / partitions that prefer it

Where the imbalance exceeds the percentage of the event (`leader.imbalance.per.broker.percentage`), the preferred replicas become
leaders again if they are live, not in a failed log directory, in the ISR and not shutting down. Other partitions wait for the next
check.

Worked example: ten partitions prefer broker 1, and it leads eight of them. The imbalance of 20 percent exceeds 10, so broker 1 gets
the other two. If it led nine, 10 percent would not exceed 10 and nothing would change.

As in Kafka, topics that are queued for deletion do not count, and partitions that never had a leader count as preferred but not as
led by another broker. Moving partitions count but are not elected: the end of the move elects their leader (Kafka 3.9 elects for them
as well; earlier versions elect for no partition while any partition moves). If a write is refused in part, the event is decided
again, and brokers that are then within the percentage keep the rest of their imbalance.

Source of the balance: KafkaController.checkAndTriggerAutoLeaderRebalance (protocol notes, Z65).
"""

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from controller_core import model
from controller_core.model import changes, events
from controller_core.model.decision import Decision, decision
from controller_core.rules import election_columns, partition_change
from controller_core.rules.complete_change import Electing, complete_change, current_target
from controller_core.rules.election import Election, ElectionReason, elect_offline, elect_preferred, no_leader
from kafka_wire import ErrorCode, Failure

FAILURES: Mapping[ElectionReason, Failure] = {
    ElectionReason.ELECTION_NOT_NEEDED: Failure(
        ErrorCode.ELECTION_NOT_NEEDED, "Leader election not needed for topic partition."
    ),
    ElectionReason.PREFERRED_LEADER_NOT_AVAILABLE: Failure(
        ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE, "The preferred leader was not available."
    ),
    ElectionReason.NO_REPLICA_ONLINE: Failure(
        ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE, "Eligible topic partition leaders are not available."
    ),
}


def election_candidates(cluster: model.Cluster, after_row: int, count: int, *, unclean: bool) -> list[int]:
    """Return the next rows, at most `count`, whose partitions may need an election; a superset of those that do.

    For requests that cover all partitions: of hundreds of thousands only few lack their intended leader.
    """
    columns = cluster.columns
    rows = columns.used()
    rows = rows[rows > after_row]
    leaders = columns.leader[rows]
    if unclean:
        has_leader = np.isin(leaders, np.array(list(cluster.may_lead()), dtype=leaders.dtype))
        has_leader &= ~np.isin(rows, np.fromiter(cluster.offline_replicas, dtype=rows.dtype))
    else:
        has_leader = leaders == columns.replicas[rows, 0]
    candidates: list[int] = rows[~has_leader][:count].tolist()
    return candidates


def decide_elect_leaders(
    cluster: model.Cluster, event: events.ElectLeaders
) -> Decision[dict[model.TopicPartition, Failure | None]]:
    """Elect for each partition independently. A request for all partitions returns no result for those that need no election."""
    requested = event.partitions
    if requested is None:
        requested = tuple(cluster.names_of(cluster.columns.used()))
    live = frozenset(cluster.may_lead())
    results: dict[model.TopicPartition, Failure | None] = {}
    asked: dict[int, Election] = {}
    for partition in dict.fromkeys(requested):
        row = cluster.row_of(*partition)
        if row is None:
            results[partition] = Failure(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "The partition does not exist.")
            continue
        if partition.topic in cluster.deletions:
            results[partition] = Failure(ErrorCode.INVALID_TOPIC_EXCEPTION, "The topic is being deleted.")
            continue
        if _was_elected(cluster, row, event.elected.get(partition)):
            results[partition] = None
            continue
        online = live - cluster.offline_at(row) - (frozenset() if event.unclean else cluster.suspected)
        election = asked[row] = _elect(cluster, row, online, unclean=event.unclean)
        if event.partitions is not None or election.reason is not ElectionReason.ELECTION_NOT_NEEDED:
            results[partition] = FAILURES.get(election.reason)
    written = _change_elected(cluster, asked, unclean=event.unclean)
    if written is None:
        return Decision(reply=results, retry_event=event)
    elected = cluster.names_of(written.rows)
    results |= dict.fromkeys(elected)
    epochs = {**event.elected, **dict(zip(elected, written.leader_epoch.tolist(), strict=True))}
    return Decision((written,), reply=results, retry_event=replace(event, elected=epochs))


def _change_elected(
    cluster: model.Cluster, asked: Mapping[int, Election], *, unclean: bool
) -> changes.PartitionStates | None:
    """Return the change with the elected leaders.

    In KRaft mode a preferred election also finds another leader for a partition without one, and an unclean one takes an eligible replica
    first.
    """
    if not cluster.rules.elects_completely:
        states = [
            partition_change.NewState(row, election.leader, election.isr, unclean=election.unclean)
            for row, election in asked.items()
            if election.elected
        ]
        return partition_change.change_states(cluster, states)
    needed = [row for row, election in asked.items() if election.reason is not ElectionReason.ELECTION_NOT_NEEDED]
    rows = np.array(needed, dtype=np.int32)
    who = Electing(cluster.may_lead(), np.full(len(rows), unclean), preferred=not unclean)
    return complete_change(cluster, rows, current_target(cluster, rows), who)


def _was_elected(cluster: model.Cluster, row: int, leader_epoch: int | None) -> bool:
    """Whether an earlier attempt wrote the current state."""
    columns = cluster.columns
    return leader_epoch is not None and (leader_epoch, cluster.controller_epoch) == (
        int(columns.leader_epoch[row]),
        int(columns.controller_epoch[row]),
    )


def _elect(cluster: model.Cluster, row: int, live: frozenset[int], *, unclean: bool) -> Election:
    columns = cluster.columns
    if columns.partition_epoch[row] == model.NO_EPOCH:
        # It never had a live replica; `RepairPartitions` elects the first leader.
        return no_leader(
            (), ElectionReason.NO_REPLICA_ONLINE if unclean else ElectionReason.PREFERRED_LEADER_NOT_AVAILABLE
        )
    leader, replicas, isr = int(columns.leader[row]), columns.replicas_of(row), columns.isr_of(row)
    if not unclean:
        return elect_preferred(leader, replicas, isr, live)
    if leader in live or (leader != model.NO_LEADER and cluster.rules.elects_completely):
        return Election(leader, isr, False, ElectionReason.ELECTION_NOT_NEEDED)
    return elect_offline(replicas, isr, live, unclean_allowed=True)


PERCENT = 100
MAX_BALANCED = 1_000
"""Leaders elected by one balancing in KRaft mode, as in Kafka (`MAX_ELECTIONS_PER_IMBALANCE`): the rest follows with the next one."""


def decide_balance_leaders(cluster: model.Cluster, event: events.BalanceLeaders) -> Decision[None]:
    """Elect preferred leaders for the brokers whose imbalance exceeds the event's percentage."""
    columns = cluster.columns
    rows = _counted(cluster)
    preferred = columns.replicas[rows, 0]
    elsewhere = (columns.leader[rows] != preferred) & (columns.partition_epoch[rows] != model.NO_EPOCH)
    over = brokers_over_limit(preferred, elsewhere, event.imbalance_percentage)
    available = ~election_columns.offline_flags(cluster, rows, preferred)
    candidates = _not_moving(cluster, rows[elsewhere & over[preferred] & available])
    elections = election_columns.elect_preferred(
        columns.leader[candidates],
        columns.replicas[candidates],
        columns.isr[candidates],
        columns.flags(cluster.may_lead()),
    )
    if cluster.rules.elects_completely:
        candidates = candidates[elections.elected][:MAX_BALANCED]
        who = Electing(cluster.may_lead(), np.zeros(len(candidates), dtype=np.bool_), preferred=True)
        return decision(complete_change(cluster, candidates, current_target(cluster, candidates), who))
    return decision(partition_change.change_leaders(cluster, candidates, elections))


def brokers_over_limit(preferred: model.IntArray, elsewhere: model.BoolArray, percentage: int) -> model.BoolArray:
    """Return flags by broker id: whether a broker does not lead more than a percentage of the partitions that prefer it.

    Takes each partition's preferred replica and whether it is not led by it.

    >>> brokers_over_limit(np.array([1, 1, 2, 2]), np.array([True, False, False, False]), 49).tolist()
    [False, True, False]
    """
    preferring = np.bincount(preferred)
    not_led = np.bincount(preferred[elsewhere], minlength=len(preferring))
    # Compared without dividing: the result is that of Kafka's doubles, without rounding.
    over: model.BoolArray = not_led * PERCENT > preferring * percentage
    return over


def _counted(cluster: model.Cluster) -> model.IntArray:
    """Return the rows of all partitions that have replicas and whose topic is not queued for deletion."""
    columns = cluster.columns
    rows = columns.used()
    queued = [cluster.topics[name].index for name in cluster.deletions if name in cluster.topics]
    counted: model.IntArray = rows[columns.replicas[rows, 0] != model.NO_BROKER]
    return counted[~np.isin(columns.topic[counted], queued)] if queued else counted


def _not_moving(cluster: model.Cluster, rows: model.IntArray) -> model.IntArray:
    """Drop the rows of partitions that are moving."""
    if not cluster.moves:
        return rows
    not_moving: model.IntArray = rows[~np.isin(rows, list(cluster.moves))]
    return not_moving

"""AlterPartition: ISR changes requested by leaders (KIP-497, KIP-841).

The checks and their order are those of KafkaController.alterPartitions. The leader epoch stays, so replicas are sent nothing; the leader
gets the new ISR with the response, all other brokers by UpdateMetadata. The shell resolves topic ids to names.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from controller_core.model import Cluster, Replicas, TopicPartition, events
from controller_core.model.decision import Decision
from controller_core.rules.partition_change import change_isr, next_partition_epoch
from kafka_wire.errors import ErrorCode, Failure


@dataclass(frozen=True, slots=True)
class PartitionAnswer:
    """A partition's state after the change."""

    leader: int
    leader_epoch: int
    isr: Replicas
    partition_epoch: int


IsrAnswer = Failure | Mapping[TopicPartition, Failure | PartitionAnswer]
"""One error for the whole request, or a result for each partition."""


def refuse_stale_broker(
    cluster: Cluster, broker: int, broker_epoch: int, unknown: ErrorCode = ErrorCode.STALE_BROKER_EPOCH
) -> Failure | None:
    """Refuse a request of an unregistered broker or of another incarnation of the broker (KIP-380).

    As in Kafka, a request without an epoch is refused as well: every broker that has these APIs knows its epoch.
    """
    known = cluster.brokers.get(broker)
    if known is None:
        return Failure(unknown, f"Broker {broker} is not registered.")
    if broker_epoch != known.epoch:
        words = f"Broker {broker} is registered under epoch {known.epoch}, the request carries {broker_epoch}."
        return Failure(ErrorCode.STALE_BROKER_EPOCH, words)
    return None


def decide_alter_partition(cluster: Cluster, event: events.AlterPartition) -> Decision[IsrAnswer]:
    """Check each partition independently; write the valid ISRs."""
    if (failure := refuse_stale_broker(cluster, event.broker, event.broker_epoch)) is not None:
        return Decision(reply=failure)
    answers: dict[TopicPartition, Failure | PartitionAnswer] = {}
    changed: list[int] = []
    changes: list[events.IsrChange] = []
    granted: list[int] = []
    for change in event.changes:
        row = cluster.row_of(*change.partition)
        failure = _refuse(cluster, event.broker, change, row)
        if failure is not None or row is None:
            answers[change.partition] = failure or _unknown()
            continue
        granted.append(row)
        if _is_done_already(cluster, change, row):
            answers[change.partition] = _answer(change, int(cluster.columns.partition_epoch[row]), event.broker)
        else:
            changed.append(row)
            changes.append(change)
            answers[change.partition] = _answer(change, next_partition_epoch(change.partition_epoch), event.broker)
    written = change_isr(
        cluster, changed, [change.isr for change in changes], [change.is_recovering for change in changes]
    )
    # Also for ISRs that are already set: an earlier write may have succeeded while its response was lost.
    moving = frozenset(cluster.topic_at(row).name for row in granted if row in cluster.moves)
    later = (events.AdvanceMoves(moving),) if moving else ()
    return Decision(() if written is None else (written,), later=later, reply=answers)


def _answer(change: events.IsrChange, partition_epoch: int, leader: int) -> PartitionAnswer:
    return PartitionAnswer(leader, change.leader_epoch, change.isr, partition_epoch)


def _unknown() -> Failure:
    return Failure(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "The partition does not exist.")


def _is_done_already(cluster: Cluster, change: events.IsrChange, row: int) -> bool:
    """Whether the requested state is the present one: a leader that lost the response sends the old partition epoch again."""
    if row in cluster.corrected_rows:
        return False  # The known state is not written yet.
    columns = cluster.columns
    return (
        change.partition_epoch <= columns.partition_epoch[row]
        and change.isr == columns.isr_of(row)
        and change.is_recovering == columns.recovering[row]
    )


def _refuse(cluster: Cluster, broker: int, change: events.IsrChange, row: int | None) -> Failure | None:
    if row is None or cluster.is_pending_deletion(change.partition.topic):
        return _unknown()
    columns = cluster.columns
    leader_epoch, partition_epoch = int(columns.leader_epoch[row]), int(columns.partition_epoch[row])
    if change.leader_epoch > leader_epoch or change.partition_epoch > partition_epoch:
        # Another controller has written a newer state: this one lost controllership.
        return Failure(ErrorCode.NOT_CONTROLLER, "The leader knows a newer state than this controller.")
    if change.leader_epoch < leader_epoch:
        return Failure(ErrorCode.FENCED_LEADER_EPOCH, f"The leader epoch is now {leader_epoch}.")
    if columns.leader[row] != broker:
        return Failure(ErrorCode.INVALID_REQUEST, f"Broker {broker} does not lead the partition.")
    if _is_done_already(cluster, change, row):
        return None
    if change.partition_epoch != partition_epoch:
        return Failure(ErrorCode.INVALID_UPDATE_VERSION, f"The partition epoch is now {partition_epoch}.")
    return _refuse_isr(cluster, broker, change, row)


def _refuse_isr(cluster: Cluster, broker: int, change: events.IsrChange, row: int) -> Failure | None:
    if not change.isr or broker not in change.isr or len(set(change.isr)) != len(change.isr):
        return Failure(
            ErrorCode.INVALID_REQUEST, f"An ISR without its leader, or with a replica twice: {list(change.isr)}."
        )
    if others := set(change.isr) - set(cluster.columns.replicas_of(row)):
        return Failure(ErrorCode.INVALID_REQUEST, f"Not replicas of the partition: {sorted(others)}.")
    if change.is_recovering and len(change.isr) > 1:
        return Failure(ErrorCode.INVALID_REQUEST, "A recovering leader must be the only member of the ISR (KIP-704).")
    if change.is_recovering and not cluster.columns.recovering[row]:
        return Failure(ErrorCode.INVALID_REQUEST, "The leader has recovered; it cannot recover again (KIP-704).")
    joining = set(change.isr) - set(cluster.columns.isr_of(row))
    if dead := sorted(joining - cluster.may_lead()):
        return Failure(
            ErrorCode.INELIGIBLE_REPLICA, f"Brokers that are not live cannot join the ISR: {dead} (KIP-841)."
        )
    if offline := sorted(joining & {*cluster.offline_at(row), *cluster.refused_at(row)}):
        words = f"Offline replicas of live brokers cannot join the ISR: {offline} (KIP-112)."
        return Failure(ErrorCode.INELIGIBLE_REPLICA, words)
    return None

"""Requests of brokers: new ISRs (AlterPartition), and blocks of producer ids.

AlterPartition (KIP-497, KIP-841, KIP-903): the checks and their order are those of KafkaController.alterPartitions and
ReplicationControlManager.validateAlterPartitionData. The leader epoch stays, so replicas are sent nothing; the leader gets the new ISR
with the response. In KRaft mode the same change may end a move, and then elect another leader (NEW_LEADER_ELECTED). The shell resolves
topic ids to names. A leader that lost the response and repeats its request is answered with the current state (Kafka's KRaft controller
answers INVALID_UPDATE_VERSION, after which the leader waits for the metadata).

AllocateProducerIds (KIP-730): each id is allocated once, to one broker.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from controller_core import model
from controller_core.model import changes, events
from controller_core.model.columns import pad, unpad
from controller_core.model.decision import Decision
from controller_core.rules import partition_change
from controller_core.rules.complete_change import Target, complete_change, electing
from kafka_wire import ErrorCode, Failure


@dataclass(frozen=True, slots=True)
class PartitionAnswer:
    """A partition's state after the change."""

    leader: int
    leader_epoch: int
    isr: model.Replicas
    partition_epoch: int


IsrAnswer = Failure | Mapping[model.TopicPartition, Failure | PartitionAnswer]
"""One error for the whole request, or a result for each partition."""


def refuse_stale_broker(
    cluster: model.Cluster, broker: int, broker_epoch: int, unknown: ErrorCode = ErrorCode.STALE_BROKER_EPOCH
) -> Failure | None:
    """Refuse a request of an unregistered broker or of another incarnation of the broker (KIP-380).

    As in Kafka, a request without an epoch is refused as well: every broker that has these APIs knows its epoch.
    """
    known = cluster.brokers.get(broker)
    if known is None:
        return Failure(unknown, f"Broker {broker} is not registered.")
    return None if broker_epoch == known.epoch else stale_epoch(broker, known.epoch, broker_epoch)


def stale_epoch(broker: int, known: int, carried: int) -> Failure:
    """Return the error for a request of another incarnation of a broker."""
    message = f"Broker {broker} is registered under epoch {known}, the request carries {carried}."
    return Failure(ErrorCode.STALE_BROKER_EPOCH, message)


def decide_alter_partition(cluster: model.Cluster, event: events.AlterPartition) -> Decision[IsrAnswer]:
    """Check each partition independently; write the valid ISRs."""
    if (failure := refuse_stale_broker(cluster, event.broker, event.broker_epoch)) is not None:
        return Decision(reply=failure)
    answers: dict[model.TopicPartition, Failure | PartitionAnswer] = {}
    wanted: dict[int, events.IsrChange] = {}
    granted: list[int] = []
    for change in event.changes:
        row = cluster.row_of(*change.partition)
        failure = _refuse_change(cluster, event.broker, change, row)
        if failure is not None or row is None:
            answers[change.partition] = failure or _unknown()
            continue
        granted.append(row)
        answers[change.partition] = _current_state(cluster, row)
        if not _is_done_already(cluster, change, row):
            wanted[row] = change
    written = _change_isrs(cluster, wanted)
    for position, row in enumerate([] if written is None else written.rows.tolist()):
        assert written is not None
        answers[wanted[row].partition] = _state_after(cluster, written, position, event.broker)
    if cluster.rules.move_ends_with_its_isr:
        return Decision(() if written is None else (written,), reply=answers)
    # Also for ISRs that are already set: an earlier write may have succeeded while its response was lost.
    moving = frozenset(cluster.topic_at(row).name for row in granted if row in cluster.moves)
    later = (events.AdvanceMoves(moving),) if moving else ()
    return Decision(() if written is None else (written,), later=later, reply=answers)


def _change_isrs(cluster: model.Cluster, wanted: Mapping[int, events.IsrChange]) -> changes.PartitionStates | None:
    isr = [change.isr for change in wanted.values()]
    recovering = [change.is_recovering for change in wanted.values()]
    if not cluster.rules.elects_completely:
        return partition_change.change_isr(cluster, list(wanted), isr, recovering)
    rows = np.array(list(wanted), dtype=np.int32)
    target = Target(pad(isr), recovering=np.array(recovering, dtype=np.bool_))
    return complete_change(cluster, rows, target, electing(cluster, rows))


def _current_state(cluster: model.Cluster, row: int) -> PartitionAnswer:
    columns = cluster.columns
    leader, leader_epoch = int(columns.leader[row]), int(columns.leader_epoch[row])
    return PartitionAnswer(leader, leader_epoch, columns.isr_of(row), int(columns.partition_epoch[row]))


def _state_after(
    cluster: model.Cluster, written: changes.PartitionStates, position: int, broker: int
) -> Failure | PartitionAnswer:
    leader, row = int(written.leader[position]), int(written.rows[position])
    if leader != broker:
        return Failure(ErrorCode.NEW_LEADER_ELECTED, f"The move of the partition ended; its leader is now {leader}.")
    partition_epoch = partition_change.next_partition_epoch(int(cluster.columns.partition_epoch[row]))
    return PartitionAnswer(leader, int(written.leader_epoch[position]), unpad(written.isr[position]), partition_epoch)


def _unknown() -> Failure:
    return Failure(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "The partition does not exist.")


def _is_done_already(cluster: model.Cluster, change: events.IsrChange, row: int) -> bool:
    """Whether the requested state is the current one: a leader that lost the response sends the old partition epoch again."""
    if row in cluster.corrected_rows:
        return False  # The known state is not written yet.
    columns = cluster.columns
    return (
        change.partition_epoch <= columns.partition_epoch[row]
        and change.isr == columns.isr_of(row)
        and change.is_recovering == columns.recovering[row]
    )


def _refuse_change(cluster: model.Cluster, broker: int, change: events.IsrChange, row: int | None) -> Failure | None:
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


def _refuse_isr(cluster: model.Cluster, broker: int, change: events.IsrChange, row: int) -> Failure | None:
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
    members = set(change.isr) if cluster.rules.whole_isr_must_be_live else joining
    if dead := sorted(members - cluster.may_lead()):
        return Failure(
            ErrorCode.INELIGIBLE_REPLICA, f"Brokers that are not live cannot join the ISR: {dead} (KIP-841)."
        )
    if restarted := [
        member
        for member, epoch in zip(change.isr, change.isr_epochs, strict=False)
        if epoch not in {model.NO_EPOCH, cluster.brokers[member].epoch}
    ]:
        message = f"Brokers that restarted since they caught up cannot join the ISR: {restarted} (KIP-903)."
        return Failure(ErrorCode.INELIGIBLE_REPLICA, message)
    if offline := sorted(joining & {*cluster.offline_at(row), *cluster.refused_at(row)}):
        message = f"Offline replicas of live brokers cannot join the ISR: {offline} (KIP-112)."
        return Failure(ErrorCode.INELIGIBLE_REPLICA, message)
    return None


BLOCK_SIZE = 1000
"""Ids in a block: Kafka's own size (ProducerIdsBlock.PRODUCER_ID_BLOCK_SIZE)."""
LAST_PRODUCER_ID = 2**63 - 1
"""Producer ids are 64 bits wide and not negative."""


@dataclass(frozen=True, slots=True)
class ProducerIdBlock:
    """Ids from `first` on."""

    first: int
    size: int


def decide_allocate_producer_ids(
    cluster: model.Cluster, event: events.AllocateProducerIds
) -> Decision[Failure | ProducerIdBlock]:
    """Allocate the block after the last one."""
    unknown = ErrorCode.BROKER_ID_NOT_REGISTERED
    if (failure := refuse_stale_broker(cluster, event.broker, event.broker_epoch, unknown)) is not None:
        return Decision(reply=failure)
    first = cluster.last_producer_id + 1
    last = first + BLOCK_SIZE - 1
    if last > LAST_PRODUCER_ID:
        return Decision(reply=Failure(ErrorCode.UNKNOWN_SERVER_ERROR, "All producer ids have been allocated."))
    return Decision(
        (changes.ProducerIdsAllocated(event.broker, first, last, event.broker_epoch),),
        reply=ProducerIdBlock(first, BLOCK_SIZE),
    )

"""Checks of one committed record, and of one batch, against the image before it: C1 to C4, C7 to C9, C16, C17, C19 to C21."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from controller_core.model import NO_LEADER
from controller_core.model.settings import MIN_ISR
from kafka_metadata import records
from kafka_metadata.directory_ids import LOST_DIRECTORY, MIGRATING_DIRECTORY, UNASSIGNED_DIRECTORY
from kafka_metadata.image import MetadataImage
from kafka_metadata.metadata_log import MetadataLog
from kafka_metadata.records import LeaderRecoveryState, MetadataRecord, PartitionRecord, ResourceType

Changed = records.PartitionRecord | records.PartitionChangeRecord


def check_record(before: MetadataLog, after: MetadataLog, record: MetadataRecord, offset: int) -> None:
    """Check a record. A broken invariant is an AssertionError that names it."""
    old, new = before.newest_image, after.newest_image
    match record:
        case records.RegisterBrokerRecord():
            known = old.brokers.get(record.broker_id)
            is_same = known is not None and known.incarnation_id == record.incarnation_id
            assert record.broker_epoch == (known.broker_epoch if known and is_same else offset), ("C16", record, offset)
            _leads_nothing_while_fenced(new, record.broker_id, was_fenced=is_same)
        case records.BrokerRegistrationChangeRecord():
            _leads_nothing_while_fenced(new, record.broker_id, was_fenced=old.brokers[record.broker_id].fenced)
        case records.UnregisterBrokerRecord():
            led = [partition for partition in _partitions(new) if partition.leader == record.broker_id]
            assert led == [], ("C17", record, led)
        case records.ProducerIdsRecord():
            first = 0 if old.producer_ids is None else old.producer_ids.next_producer_id
            assert record.next_producer_id > first, ("C19", record, first)
        case records.PartitionRecord() | records.PartitionChangeRecord():
            _check_partition(old, new, record)
        case records.AbortTransactionRecord():
            assert after.image == before.image, ("C21", offset)
            assert after.transaction is None, ("C21", offset)
        case _:
            assert before.transaction is None or after.image == before.image or after.transaction is None, (
                "C21",
                offset,
            )


def _partitions(image: MetadataImage) -> list[PartitionRecord]:
    return [partition for topic in image.topics.values() for partition in topic.partitions.values()]


def _leads_nothing_while_fenced(image: MetadataImage, broker: int, *, was_fenced: bool) -> None:
    """C17; C2: a broker that is fenced stays only in ISRs of which it is the last member, and with eligible replicas in none."""
    known = image.brokers[broker]
    if not known.fenced:
        return
    for partition in _partitions(image):
        assert partition.leader != broker, ("C17", partition)
        stays = partition.isr == (broker,) and (was_fenced or not image.is_elr_enabled)
        assert broker not in partition.isr or stays, ("C17", partition)


def _check_partition(old: MetadataImage, new: MetadataImage, record: Changed) -> None:
    topic = new.topics[record.topic_id]
    one = topic.partitions[record.partition_id]
    known = old.topics[record.topic_id].partitions.get(record.partition_id)
    eligible = one.eligible_leader_replicas or ()
    assert one.leader == NO_LEADER or one.leader in one.isr, ("C1", one)
    assert set(one.isr) <= set(one.replicas), ("C2", one)
    assert one.isr or new.is_elr_enabled, ("C2", one)
    assert len(set(one.isr)) == len(one.isr), ("C3", one)
    assert len(set(one.replicas)) == len(one.replicas), ("C3", one)
    assert set(eligible).isdisjoint(one.isr), ("C20", one)
    assert set(eligible) <= set(one.replicas), ("C20", one)
    minimum = min(min_isr(new, topic.name), len(one.replicas))
    assert not eligible or len(one.isr) < minimum, ("C20", one, minimum)
    if one.leader != NO_LEADER and (known is None or one.leader != known.leader):
        leader = new.brokers.get(one.leader)
        assert leader is not None, ("C17", one)
        assert not leader.fenced, ("C17", one)
    if known is not None:
        _check_change(new, known, one)


def _check_change(new: MetadataImage, known: PartitionRecord, one: PartitionRecord) -> None:
    assert one.partition_epoch == known.partition_epoch + 1, ("C4", known, one)
    assert one.leader_epoch >= known.leader_epoch + (one.leader != known.leader), ("C4", known, one)
    joining = set(one.isr) - set(known.isr) - {one.leader}
    fenced = [member for member in joining if member not in new.brokers or new.brokers[member].fenced]
    assert fenced == [], ("C17", known, one)
    _check_move(known, one)
    if is_unclean(known, one):
        assert one.isr == (one.leader,), ("C1", known, one)
        assert one.leader_recovery_state == LeaderRecoveryState.RECOVERING, ("C1", known, one)


class Move(NamedTuple):
    """Replicas at the begin and at the end of a move."""

    origin: frozenset[int]
    target: frozenset[int]


def move_of(partition: PartitionRecord) -> Move:
    """Return the move of a partition; without one, both are its replicas."""
    replicas = frozenset(partition.replicas)
    return Move(replicas - set(partition.adding_replicas), replicas - set(partition.removing_replicas))


def moves(partition: PartitionRecord) -> bool:
    """Whether a partition is being moved."""
    return bool(partition.adding_replicas or partition.removing_replicas)


def _check_move(known: PartitionRecord, one: PartitionRecord) -> None:
    """C9: replicas are added until each of them is in the ISR, and only then others are removed.

    A changed move keeps what the one before has added, and an unclean election may end a move whose replicas were in sync: as in Kafka
    (PartitionReassignmentReplicas, PartitionChangeBuilder).
    """
    if moves(one):
        assert set(known.replicas) <= set(one.replicas), ("C9", known, one)
        return
    replicas, origin = frozenset(one.replicas), move_of(known).origin
    is_cancelled = moves(known) and replicas == origin
    if not is_cancelled and not is_unclean(known, one):
        assert replicas - origin <= set(one.isr), ("C9", known, one)
    keeps_records = not known.isr or bool((set(known.isr) | set(one.isr)) & replicas)
    assert keeps_records or is_unclean(known, one), ("C9", known, one)


def is_unclean(known: PartitionRecord, one: PartitionRecord) -> bool:
    """Whether a change elects a leader that may lack records: none of the ISR, the eligible ones, or those that just caught up."""
    if one.leader in {NO_LEADER, known.leader} or one.leader in known.isr:
        return False
    if one.leader in (known.eligible_leader_replicas or ()):
        return False
    # The request of a leader that ends a move also brings its members into the ISR: they have caught up.
    ends = known.leader != NO_LEADER and moves(known) and not moves(one)
    return not ends and not (known.leader != NO_LEADER and len(one.isr) > 1)


def check_batch(
    old: MetadataImage, new: MetadataImage, found: Sequence[MetadataRecord], *, may_lose: bool, max_leaving: int
) -> set[int]:
    """C7, C8: check the elections of a batch, which has all records of its decision, with who may lead after it.

    Return the members of ISRs that were passed over although they could lead: only brokers that leave, at most `max_leaving` of them.
    """
    _check_shutdowns(new, found)
    passed_over: set[int] = set()
    for known, partition in _changed_once(old, new, found):
        if is_unclean(known, partition):
            assert may_lose or known.last_known_elr == (partition.leader,), ("C7", known, partition)
            serving = known.isr or known.eligible_leader_replicas or ()
            passed_over |= {member for member in serving if may_lead(new, partition, member)}
            assert len(passed_over) <= max_leaving, ("C7", known, partition, passed_over)
        if partition.leader != NO_LEADER and new.brokers[partition.leader].in_controlled_shutdown:
            _has_no_successor(new, partition)
    return passed_over


def _check_shutdowns(new: MetadataImage, found: Sequence[MetadataRecord]) -> None:
    """C8: a broker whose controlled shutdown begins leads only what no other can."""
    begun = {
        record.broker_id
        for record in found
        if isinstance(record, records.BrokerRegistrationChangeRecord) and record.in_controlled_shutdown
    }
    for partition in _partitions(new) if begun else ():
        if partition.leader in begun:
            _has_no_successor(new, partition)


def _has_no_successor(image: MetadataImage, partition: PartitionRecord) -> None:
    others = [member for member in partition.isr if may_lead(image, partition, member)]
    assert others == [], ("C8", partition, others)


def _changed_once(
    old: MetadataImage, new: MetadataImage, found: Sequence[MetadataRecord]
) -> Iterator[tuple[PartitionRecord, PartitionRecord]]:
    """Yield the partitions that one record of a batch changes, before and after it."""
    for record in found:
        if not isinstance(record, records.PartitionChangeRecord):
            continue
        if record.topic_id in old.topics and record.topic_id in new.topics:
            known = old.topics[record.topic_id].partitions.get(record.partition_id)
            one = new.topics[record.topic_id].partitions[record.partition_id]
            if known is not None and one.partition_epoch == known.partition_epoch + 1:
                yield known, one


def may_lead(image: MetadataImage, partition: PartitionRecord, broker: int) -> bool:
    """Whether a replica could lead: its broker is in service and stays, and its directory is online."""
    known = image.brokers.get(broker)
    if known is None or known.fenced or known.in_controlled_shutdown or broker not in partition.replicas:
        return False
    if not partition.directories:
        return True
    directory = partition.directories[partition.replicas.index(broker)]
    if directory in {UNASSIGNED_DIRECTORY, MIGRATING_DIRECTORY}:
        return True
    return directory != LOST_DIRECTORY and (not known.log_dirs or directory in known.log_dirs)


def min_isr(image: MetadataImage, topic: str) -> int:
    """Return min.insync.replicas of a topic."""
    of_topic = image.config_values(ResourceType.TOPIC, topic)
    of_brokers = image.config_values(ResourceType.BROKER, "")
    return int(of_topic.get(MIN_ISR, of_brokers.get(MIN_ISR, "1")))

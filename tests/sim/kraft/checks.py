"""Invariants of the controller in KRaft mode, checked on the committed records and on what controllers and brokers are answered.

The checks follow the committed log themselves: each record is checked against the image before it (`record_checks`). Each controller is
compared with that image whenever it has applied something (C15), and each answer with what is committed (C18).
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple
from uuid import UUID

from controller_core.decisions.broker_requests import ProducerIdBlock
from controller_core.metadata.change_records import broker_record
from controller_core.metadata.replayed_records import partition_record, replay_records
from controller_core.model import Cluster
from controller_core.model.cluster import STEP_ROWS
from controller_core.model.mode_rules import kraft_rules
from controller_core.model.settings import BrokerDefault
from controller_core.quorum.batches import Batch
from controller_core.shell.kraft.active_term import ActiveTerm
from controller_core.shell.quorum.wire_batches import encode_log
from kafka_metadata.image import MetadataImage
from kafka_metadata.metadata_log import MetadataLog, apply_records
from kafka_metadata.record_codec import decode_record
from kafka_metadata.records import (
    MetadataRecord,
    PartitionChangeRecord,
    PartitionRecord,
    RegisterBrokerRecord,
)
from kafka_metadata.snapshot import snapshot_records
from kafka_wire import ErrorCode, Failure
from kafka_wire.records import decode_batches
from tests.controller_core.quorum_mode.checked import state_of
from tests.sim.kraft.record_checks import check_batch, check_record

if TYPE_CHECKING:
    from tests.sim.kraft.cluster import KRaftCluster
    from tests.sim.kraft.controller_host import ControllerHost


class DecidedAppend(NamedTuple):
    """The records of one decision in the log, in one batch or several."""

    end_offset: int
    leaving: frozenset[int]
    """Brokers that the decision elected nowhere: they shut down, or a part of their partitions had moved off them."""


class MetadataChecks:
    """Record of a run. A broken invariant is an AssertionError that names it."""

    def __init__(self, cluster: "KRaftCluster") -> None:
        self._cluster = cluster
        self.log = MetadataLog()
        """What is committed."""
        self._at: dict[int, MetadataLog] = {0: self.log}
        """What is committed by the end of each batch."""
        self.clean_epochs: dict[UUID, int] = {}
        """Epoch in the clean-shutdown file that a process found, by its incarnation."""
        self._passed_over: set[int] = set()
        """Members of ISRs that an unclean election passed over: they leave, with the next batch or after further steps."""
        self._decisions: dict[tuple[int, int], DecidedAppend] = {}
        """By epoch, and the offset of the first record."""
        self._terms: dict[int, int] = {}
        """Epoch of each active term -> controller."""
        self._blocks: list[tuple[int, int]] = []
        """First and last id of each block of producer ids that a broker got."""
        self.records: dict[str, int] = {}
        """Committed records by type: what a run has done."""
        self.handed_over_moves = 0
        """Moves that were running when an active term began."""
        self.rises = 0
        """Rises of metadata.version in mid-run."""

    @property
    def image(self) -> MetadataImage:
        """The committed image."""
        return self.log.image

    @property
    def terms(self) -> int:
        """Number of active terms."""
        return len(self._terms)

    # The log

    def committed_batches(self, batches: Sequence[Batch]) -> None:
        """Follow committed batches that one of the controllers gets: the first that gets them, for all."""
        for batch in batches:
            if batch.base_offset < self.log.end_offset:
                continue
            assert batch.base_offset == self.log.end_offset, batch
            assert batch.epoch >= self.log.epoch, ("C5", batch, self.log.epoch)
            (decoded,) = decode_batches(encode_log(batch, 0))
            found = (
                []
                if batch.control
                else [decode_record(record.value or b"", record.offset) for record in decoded.records]
            )
            self._follow(batch, found)

    def _follow(self, batch: Batch, found: Sequence[MetadataRecord]) -> None:
        begin = after = self.log
        decided = self._decisions.get((batch.epoch, batch.base_offset))
        for offset, record in enumerate(found, batch.base_offset):
            before, after = after, apply_records(after, offset, [record])
            check_record(before, after, record, offset)
            if isinstance(record, RegisterBrokerRecord):
                self._check_restart(before.newest_image, after.newest_image, record)
            name = type(record).__name__
            self.records[name] = self.records.get(name, 0) + 1
        self._check_passed_over(batch, found, decided)
        if decided is not None and decided.end_offset == batch.end_offset and found:
            may_lose = self._cluster.wishes.unclean or not self._cluster.faults.is_on
            passed_over = check_batch(
                begin.newest_image, after.newest_image, found, may_lose=may_lose, max_leaving=self._max_leaving
            )
            # A broker whose last directory fails keeps its registration, and stops.
            registered = after.newest_image.brokers
            stopped = {
                broker
                for broker in passed_over
                if registered[broker].broker_epoch in self._cluster.brokers[broker].stopped
            }
            self._passed_over |= passed_over - stopped
        versions = (begin.image.metadata_version, after.image.metadata_version)
        self.rises += None not in versions and versions[0] != versions[1]
        timestamp = self.log.last_timestamp_ms
        self.log = MetadataLog(after.image, batch.end_offset, batch.epoch, timestamp, after.transaction)
        self._at[batch.end_offset] = self.log
        self._cluster.scheduler.trace("committed", batch.base_offset, batch.epoch, *map(type, found))

    @property
    def _max_leaving(self) -> int:
        """Brokers that may leave at the same time: all, if that has steps."""
        wishes = self._cluster.wishes
        return 1 if wishes.step_rows == STEP_ROWS else wishes.brokers

    def appended(self, term: ActiveTerm, begin: int) -> None:
        """Note that an active term has appended the records of a decision, from an offset on; its state is that before them."""
        leaving = frozenset(term.cluster.shutting_down)
        self._decisions[term.epoch, begin] = DecidedAppend(term.end_offset, leaving)

    def _check_passed_over(
        self, batch: Batch, found: Sequence[MetadataRecord], decided: "DecidedAppend | None"
    ) -> None:
        """C7: who was passed over leads nothing before it registers again. With steps, it may also leave, or a heartbeat lets it stay."""
        if batch.epoch != self.log.epoch:
            self._passed_over = set()
        if self._max_leaving > 1 and decided is not None:
            self._passed_over &= decided.leaving
        if not self._passed_over or not found:
            return
        restarted = {record.broker_id for record in found if isinstance(record, RegisterBrokerRecord)}
        if self._max_leaving == 1:
            assert restarted == self._passed_over, ("C7", self._passed_over, batch)
        elected = {record.leader for record in found if isinstance(record, PartitionChangeRecord)}
        assert not elected & self._passed_over, ("C7", self._passed_over, batch)
        self._passed_over -= restarted

    def _check_restart(self, old: MetadataImage, new: MetadataImage, record: RegisterBrokerRecord) -> None:
        """C20: a broker that lost unflushed records is not eligible any longer."""
        known = old.brokers.get(record.broker_id)
        if known is None or known.incarnation_id == record.incarnation_id or not new.is_elr_enabled:
            return
        if self.clean_epochs[record.incarnation_id] != known.broker_epoch:
            for partition in partitions(new):
                assert record.broker_id not in (partition.eligible_leader_replicas or ()), ("C20", record, partition)

    # Controllers

    def applied(self, host: "ControllerHost") -> None:
        """C5, C6, C15, C18: what a controller has applied is what is committed up to there, and its state is that image's."""
        controller = host.controller
        assert controller is not None, host.id
        found = controller.committed
        expected = self._at.get(found.end_offset)
        assert expected is not None, ("C18", host.id, found.end_offset)
        assert found.image == expected.image, ("C15", host.id, found.end_offset)
        assert found.epoch == expected.epoch, ("C15", host.id, found.epoch, expected.epoch)
        assert (found.transaction is None) == (expected.transaction is None), ("C21", host.id)
        term = controller._term
        if term is None:
            check_image(expected.image, controller.cluster, host.id)
        elif term.epoch not in self._terms:
            self._terms[term.epoch] = host.id
            assert controller.cluster.controller_epoch == term.epoch, ("C5", host.id, term.epoch)
            moves = controller.cluster.moves
            self.handed_over_moves += len(moves) if len(self._terms) > 1 else 0
        assert term is None or self._terms[term.epoch] == host.id, ("C6", host.id, term.epoch)

    def decided(self, host: "ControllerHost") -> None:
        """C15: the state of an active controller is that of its records, once all of them are committed."""
        controller = host.controller
        if controller is None or controller._term is None or not controller.is_active:
            return
        is_newest = (controller._term.epoch, controller._term.end_offset) == (self.log.epoch, self.log.end_offset)
        if is_newest and self.log.transaction is None:
            check_image(self.image, controller.cluster, host.id)

    def answers(self, host: "ControllerHost", decided_at: int) -> None:
        """C18: an answer is given only when everything up to its decision is committed."""
        checks = self._cluster.checks
        assert decided_at <= checks.committed_end, ("C18", host.id, decided_at, checks.committed_end)
        known = host.disk.chain_at(decided_at)
        if known is not None and decided_at in checks.committed:
            assert known == checks.committed[decided_at][1], ("C18", host.id, decided_at)

    # Brokers

    def answers_broker(self, broker: int, epoch: int, *, is_registered: bool, answer: Any) -> None:
        """C13, C19: an incarnation that is not registered is refused; no block of producer ids is given twice."""
        is_served = not isinstance(answer, Failure)
        if isinstance(answer, dict) and "error_code" in answer:
            is_served = answer["error_code"] == ErrorCode.NONE
        assert is_registered or not is_served, ("C13", broker, epoch, answer)
        if isinstance(answer, ProducerIdBlock):
            first, last = answer.first, answer.first + answer.size - 1
            assert all(last < one or other < first for one, other in self._blocks), ("C19", broker, answer)
            self._blocks.append((first, last))

    # The end

    def is_whole(self) -> bool:
        """Whether all brokers are in service, all partitions have a leader and all replicas in the ISR, and no move runs."""
        image, brokers = self.image, self._cluster.brokers
        for broker_id, broker in brokers.items():
            known, process = image.brokers.get(broker_id), broker.process
            if known is None or process is None or known.fenced or known.in_controlled_shutdown:
                return False
            if known.broker_epoch != process.epoch:
                return False
        return all(
            partition.leader >= 0
            and set(partition.isr) == set(partition.replicas)
            and not partition.adding_replicas
            and not partition.removing_replicas
            for partition in partitions(image)
        )

    def settled(self) -> None:
        """C7, C12, C15: all controllers have one state, also that of one that loads a snapshot; all brokers have read it."""
        assert not self._passed_over, ("C7", self._passed_over)
        loaded = empty_cluster()
        replay_records(loaded, snapshot_records(self.image))
        expected = state_of(loaded)
        for host in self._cluster.controllers:
            assert host.controller is not None, host.id
            found = state_of(host.controller.cluster)
            assert found == expected, (
                "C15",
                host.id,
                {key: (found[key], expected[key]) for key in found if found[key] != expected[key]},
            )
        for broker in self._cluster.brokers.values():
            assert broker.view.image == self.image, ("C12", broker.id)


def partitions(image: MetadataImage) -> Iterable[PartitionRecord]:
    """Yield all partitions of an image."""
    for topic in image.topics.values():
        yield from topic.partitions.values()


def empty_cluster() -> Cluster:
    """Return the state of a controller that has read nothing."""
    cluster = Cluster(0, 0, kraft_rules({}))
    cluster.unclean_defaults[BrokerDefault.STATIC] = False
    return cluster


def check_image(image: MetadataImage, cluster: Cluster, host: int) -> None:
    """C15: compare what an image and a controller's state both have."""
    brokers = {broker.id: broker_record(broker) for broker in cluster.brokers.values()}
    assert image.brokers == brokers, ("C15", host, image.brokers, brokers)
    levels = {name: record.feature_level for name, record in image.features.items()}
    assert levels == cluster.features, ("C15", host, levels, cluster.features)
    names = {topic.name for topic in image.topics.values()}
    assert names == set(cluster.topics), ("C15", host, names, set(cluster.topics))
    for topic in image.topics.values():
        rows = cluster.topics[topic.name].rows.tolist()
        found = {state.partition_id: state for state in (partition_record(cluster, row) for row in rows)}
        expected = {number: normal(state) for number, state in topic.partitions.items()}
        assert {number: normal(state) for number, state in found.items()} == expected, ("C15", host, found, expected)
    if image.producer_ids is not None:
        assert image.producer_ids.next_producer_id == cluster.last_producer_id + 1, ("C15", host)


def normal(partition: PartitionRecord) -> PartitionRecord:
    """Return a partition with empty lists in place of those that its record leaves out."""
    return replace(
        partition,
        eligible_leader_replicas=partition.eligible_leader_replicas or (),
        last_known_elr=partition.last_known_elr or (),
    )

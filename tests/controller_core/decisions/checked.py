"""A driver that checks every change and every message against the invariants (C1 to C10, C12), and that records survive.

Each check compares the next change or message with the state before it, in simpler terms than the core's: sets of brokers, and
lists as they are written. The events are in `test_cluster_machine`.
"""

from collections.abc import Sequence

from controller_core.model import NO_EPOCH, NO_LEADER, MoveStage, Origin, TopicPartition, events
from controller_core.model.changes import Change, PartitionStates, TopicRemoved
from controller_core.model.columns import unpad
from controller_core.model.ids import EPOCH_DURING_DELETE
from controller_core.model.settings import TopicDeletion
from controller_core.model.zookeeper_changes import MovesStarted
from tests.controller_core.decisions.driver import CONTROLLER, Driver
from tests.controller_core.decisions.fake_broker import FakeBroker
from tests.controller_core.decisions.messages import Addressed, LeaderAndIsr, Message, StopReplica
from tests.controller_core.decisions.written import WrittenState


class CheckedDriver(Driver):
    """A cluster that is checked at every step."""

    def __init__(self) -> None:
        super().__init__()
        self.acked: dict[TopicPartition, int] = {}
        """Acknowledged records, by partition."""
        self.lossy: set[TopicPartition] = set()
        """Partitions that had an unclean leader: records may be lost."""
        self.origins: dict[TopicPartition, frozenset[int]] = {}
        """Origins of the running moves."""
        self.excused: set[tuple[int, TopicPartition]] = set()
        """Logs that cannot be deleted: a disk failed, or the controller that knew of them is no longer active."""
        self.late: set[tuple[int, TopicPartition]] = set()
        """Logs whose brokers were offline when they were to be deleted; the requests are sent when the brokers are back."""
        self.unclean_asked = False
        self._seen: dict[TopicPartition, WrittenState] = {}

    def kill(self, *broker_ids: int) -> None:
        """Kill brokers; they may keep logs whose deletion is not confirmed."""
        for row, move in self.cluster.moves.items():
            for broker_id in set(broker_ids).intersection(move.waiting):
                self.late.add((broker_id, self.cluster.name_of(row)))
        super().kill(*broker_ids)

    def excuse_late(self, broker_id: int) -> None:
        """Excuse the logs of an offline broker that was unregistered."""
        if broker_id not in self.cluster.brokers:
            self.excused |= {(broker, name) for broker, name in self.late if broker == broker_id}

    def begin_again(self, topic: str) -> None:
        """Clear the records of an earlier topic of a name, except the logs that brokers may still have."""
        for noted in (self.acked, self.origins, self._seen):
            for name in [name for name in noted if name.topic == topic]:
                noted.pop(name)
        self.lossy = {name for name in self.lossy if name.topic != topic}

    def refusing(self, name: TopicPartition) -> set[int]:
        """Return the replicas whose brokers have a log of another topic of that name."""
        topic_id = self.written.topics[name.topic].topic_id
        replicas = self.written.topics[name.topic].replicas[name.partition]
        known = [self.brokers[replica] for replica in replicas if replica in self.brokers]
        return {broker.id for broker in known if broker.log_ids.get(name, topic_id) != topic_id}

    def take_over(self) -> None:
        """Clear the state that was only in memory."""
        self.excused |= self.late
        self.late.clear()
        super().take_over()

    def _commit(self, changes: Sequence[Change], event: events.Event) -> bool:
        """Check changes before they are written: a controller that fails right after a write reports nothing."""
        for change in changes:
            self._check_change(change)
        begun = {name: self._origin_of(name) for change in changes for name in _moved_by(change)}
        versions = {name: topic.version for name, topic in self.written.topics.items()}
        try:
            return super()._commit(changes, event)
        finally:
            for name, origin in begun.items():
                written = self.written.topics.get(name.topic)
                if written is not None and written.version > versions[name.topic]:
                    self.origins[name] = origin

    def _check_change(self, change: Change) -> None:
        match change:
            case PartitionStates():
                for place in range(len(change.rows)):
                    self._check_election(change, place)
            case TopicRemoved(origin=Origin.REQUESTED):
                self._check_removal(change.topic)

    def _check_election(self, change: PartitionStates, place: int) -> None:
        """Check C7, C8, C9: new leaders, ISRs, and dropped replicas."""
        cluster, row = self.cluster, int(change.rows[place])
        name, columns, leader = cluster.name_of(row), cluster.columns, int(change.leader[place])
        isr_before, leader_before = set(columns.isr_of(row)), int(columns.leader[row])
        live = set(cluster.brokers) - cluster.shutting_down
        is_first = columns.partition_epoch[row] == NO_EPOCH
        isr = set(unpad(change.isr[place]))
        assert isr - isr_before <= live, f"KIP-841: {name}'s ISR adds {isr - isr_before}, not all of them live"
        assert leader != NO_LEADER or isr == isr_before, f"{name} has no leader, and its ISR changes to {isr}"
        if leader not in {NO_LEADER, leader_before}:
            assert leader in live, f"C8: {name} is led by {leader}, which is not live"
            assert leader not in cluster.offline_at(row), f"C8: {name} is led by {leader}, whose log directory failed"
        is_unclean = change.unclean is not None and bool(change.unclean[place])
        if is_unclean:
            assert self.written.allows_unclean(name.topic) or self.unclean_asked, f"C7: {name} does not allow it"
            assert not isr_before & (live - cluster.offline_at(row)), f"C7: {name} has live members of its ISR"
            self.lossy.add(name)
        else:
            assert is_first or leader == NO_LEADER or leader in isr_before, (
                f"C7: {name} has an unflagged unclean leader"
            )
        if change.replicas is not None:
            self._check_completed_move(name, set(unpad(change.replicas[place])), isr_before)
            gone = set(cluster.moves[row].removing) - set(cluster.brokers)
            self.late |= {(broker_id, name) for broker_id in gone}

    def _check_completed_move(self, name: TopicPartition, target: set[int], isr_before: set[int]) -> None:
        """Check C9: every target replica was in sync, or the move returns to its origin."""
        if target >= set(self.cluster.columns.replicas_of(self.row(f"{name.topic}-{name.partition}"))):
            return  # Only the order changes: no replica is dropped.
        assert target <= isr_before or target == self.origins[name], (
            f"C9: {name} leaves replicas before {target} is in sync"
        )

    def _origin_of(self, name: TopicPartition) -> frozenset[int]:
        """Return the origin of a move that is requested now: that of a running move, or the current replicas."""
        row = self.cluster.row_of(*name)
        assert row is not None
        running = self.cluster.moves.get(row)
        if running is None or running.stage is MoveStage.REMOVING or name not in self.origins:
            return frozenset(self.cluster.columns.replicas_of(row))
        return self.origins[name]

    def _check_removal(self, topic: str) -> None:
        """Check C10: all logs are deleted, also those on brokers that were offline when a partition moved; except `excused` ones."""
        for broker in self.brokers.values():
            left = {name for name in broker.logs if name.topic == topic and (broker.id, name) not in self.excused}
            assert not left, f"C10: {topic} is removed and broker {broker.id} still has {left}"

    def note_message(self, addressed: Addressed) -> None:
        """Check C9, C10: the receivers of requests to delete, lead and follow."""
        brokers, message = addressed
        match message:
            case LeaderAndIsr():
                pending = {name for name in message.partitions if self.cluster.is_pending_deletion(name.topic)}
                assert not pending, f"C10: {pending} are resurrected"
            case StopReplica(delete=True):
                for name, epoch in message.partitions.items():
                    if epoch == EPOCH_DURING_DELETE:
                        is_pending_deletion = name.topic in self.written.deletions
                        assert is_pending_deletion or name.topic in self.cluster.deleted_topics, (
                            f"C10: the deletion of {name} was not requested"
                        )
                        state = self.written.states.get(name)
                        assert is_pending_deletion or state is None or not set(brokers).intersection(state.isr), (
                            f"C9: {name} is deleted where it is in sync"
                        )
                        if is_pending_deletion:
                            setting = self.cluster.topic_deletion
                            assert setting is TopicDeletion.ENABLED, f"C10: {name} is deleted with {setting}"
                            self.lossy.add(name)  # Should its deletion be withdrawn, it resumes with what is left.
                    else:
                        state = self.written.states[name]
                        assert not set(brokers).intersection(state.isr), f"C9: {name} is deleted where it is in sync"
        super().note_message(addressed)

    def _deliver_one(self, broker: FakeBroker, message: Message) -> None:
        """Deliver a message; a log in a failed directory cannot be deleted: a move continues without, a deletion waits."""
        if isinstance(message, StopReplica) and message.delete:
            lost = {name for name, epoch in message.partitions.items() if epoch != EPOCH_DURING_DELETE}
            self.excused |= {(broker.id, name) for name in lost & broker.offline}
        super()._deliver_one(broker, message)

    def check(self) -> None:
        """Check the written state, and what brokers know if all requests are delivered."""
        for name, state in self.written.states.items():
            self._check_state(name, state)
        self._seen = dict(self.written.states)
        for topic, written in self.written.topics.items():
            for partition, replicas in written.replicas.items():
                assert len(set(replicas)) == len(replicas), f"C3: {topic}-{partition} has a replica twice"
        if not any(self.queues.values()) and not self.refused:
            self._check_metadata_of_brokers()
            self._check_offline()

    def _check_state(self, name: TopicPartition, state: WrittenState) -> None:
        isr, replicas = set(state.isr), set(self.written.topics[name.topic].replicas[name.partition])
        assert state.leader == NO_LEADER or state.leader in isr, f"C1: {name}'s leader is not in sync"
        assert isr, f"C1: {name} has no replica in sync"
        assert isr <= replicas, f"C2: {name}'s ISR is not within its replicas"
        assert len(isr) == len(state.isr), f"C3: {name} has a replica twice in its ISR"
        assert CONTROLLER not in isr, f"protocol notes, Z22: {name} has the controller in its ISR"
        before = self._seen.get(name)
        if before is not None and before != state:
            assert state.version > before.version, f"C4: {name}'s partition epoch does not grow"
            assert state.leader_epoch >= before.leader_epoch, f"C4: {name}'s leader epoch decreases"
            if state.leader != before.leader:
                assert state.leader_epoch > before.leader_epoch, f"C4: {name} changes leaders with one epoch"
            assert state.controller_epoch >= before.controller_epoch, f"C5: {name} was written by a deposed controller"
        leader = self.brokers.get(state.leader)
        if leader is not None and name not in self.lossy and name.topic not in self.written.deletions:
            assert leader.logs.get(name, 0) >= self.acked.get(name, 0), f"{name}: acknowledged records are lost"

    def _check_metadata_of_brokers(self) -> None:
        """Check C12: every live broker knows the cluster's state if no request is queued."""
        cluster = self.cluster
        rows = cluster.without_pending_deletion(cluster.columns.used()).tolist()
        known = {
            cluster.name_of(row): (int(cluster.columns.leader[row]), int(cluster.columns.leader_epoch[row]))
            for row in rows
            if cluster.columns.partition_epoch[row] != NO_EPOCH
        }
        for broker_id, registration in cluster.brokers.items():
            broker = self.brokers[broker_id]
            if not broker.is_up or broker.epoch != registration.epoch:
                continue
            serving = {
                name: sent for name, sent in broker.metadata.items() if not cluster.is_pending_deletion(name.topic)
            }
            assert known == serving, f"C12: broker {broker_id} knows other leaders"
            assert tuple(sorted(cluster.brokers)) == broker.live, f"C12: broker {broker_id} knows other brokers"
            self._check_logs(broker)
            for row in rows:
                name, replicas = cluster.name_of(row), cluster.columns.replicas_of(row)
                if name in known and broker_id in self.refusing(name):
                    assert broker_id in cluster.refused_at(row), f"{broker_id} refuses {name}, which is not known"
                elif broker_id in replicas and name in known and name not in broker.offline:
                    sent = broker.states[name]
                    assert known[name] == (sent.leader, sent.leader_epoch), (
                        f"C12: {broker_id} leads or follows {name} wrongly"
                    )
                    assert name not in broker.half_made or sent.leader not in cluster.brokers, (
                        f"C12: {broker_id} threw at {name} and did not get it again"
                    )
                    # Their order matters only to clients, which get it by Metadata.
                    assert set(replicas) == set(sent.replicas), (
                        f"C12: broker {broker_id} knows other replicas of {name}"
                    )

    def _check_offline(self) -> None:
        """Check KIP-112: once requests are delivered, no replica in a failed log directory leads or is in another leader's ISR."""
        for row, brokers in self.cluster.offline_replicas.items():
            name, leader = self.cluster.name_of(row), int(self.cluster.columns.leader[row])
            if self.cluster.is_pending_deletion(name.topic):
                continue
            assert leader not in brokers, f"KIP-112: {name} is led by {leader}, whose log directory failed"
            in_sync = brokers.intersection(self.cluster.columns.isr_of(row))
            assert leader not in self.cluster.brokers or not in_sync, f"KIP-112: {in_sync} stay in the ISR of {name}"

    def _check_logs(self, broker: FakeBroker) -> None:
        """Check that no broker with all requests delivered has a non-replica, of which it might act as leader."""
        for name in broker.logs:
            row = self.cluster.row_of(*name)
            if row is None or (broker.id, name) in self.excused or name.topic in self.cluster.deletions:
                continue
            replicas = set(self.cluster.columns.replicas_of(row))
            assert broker.id in replicas, f"C12: broker {broker.id} still has {name}, which moved to {replicas}"

    def submit_unclean(self, event: events.ElectLeaders) -> None:
        """Submit an election whose caller accepts lost records."""
        self.unclean_asked = True
        try:
            self.submit(event)
        finally:
            self.unclean_asked = False


def _moved_by(change: Change) -> list[TopicPartition]:
    """Return the names of the partitions whose move a change starts."""
    if not isinstance(change, MovesStarted):
        return []
    return [TopicPartition(change.topic, partition) for partition in change.moves]

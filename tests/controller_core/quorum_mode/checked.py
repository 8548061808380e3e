"""Driver of KRaft mode that checks the invariants of each change (`docs/invariants.md`), and keeps a second cluster that follows the log."""

from collections.abc import Iterable

import numpy as np

from controller_core.metadata.replayed_records import partition_record
from controller_core.model import NO_LEADER, Cluster, TopicPartition, changes, quorum_changes
from controller_core.model.columns import unpad
from controller_core.model.mode_rules import kraft_rules
from controller_core.quorum_mode.transitions import apply
from tests.controller_core.quorum_mode.driver import IN_MEMORY, QuorumDriver

Epochs = tuple[int, int, int]


class CheckedDriver(QuorumDriver):
    """One cluster, the logs of its brokers, and the checks."""

    def __init__(self, *, elr: bool, version: int = 30) -> None:
        self.standby = Cluster(3001, 1, kraft_rules({}))
        self.logs: dict[tuple[int, TopicPartition], int] = {}
        """Records of each replica."""
        self.acked: dict[TopicPartition, int] = {}
        """Records that producers know to be written."""
        self.lossy: set[TopicPartition] = set()
        """Partitions that had an unclean leader, or whose last member lost records without eligible replicas: records may be lost."""
        self.unclean_asked = False
        self.producer_ids = 0
        self._before: dict[int, Epochs] = {}
        super().__init__(elr=elr, version=version)

    def launch(self, broker: int, directories: Iterable[int] = (), rack: str | None = None) -> object:  # type: ignore[override]
        """Start a process: without a clean shutdown before, it has lost its last records."""
        known = self.processes.get(broker)
        if known is not None and known.clean_epoch < 0:
            for (holder, name), end in list(self.logs.items()):
                if holder == broker and end:
                    self.logs[holder, name] = end - 1
        return super().launch(broker, directories, rack)

    def produce(self) -> None:
        """Write a record to every partition whose leader is alive, acknowledged by all members of its ISR."""
        columns = self.cluster.columns
        for name in self.names():
            row = self.cluster.row_of(*name)
            assert row is not None
            leader, isr = int(columns.leader[row]), columns.isr_of(row)
            minimum = self.cluster.min_isr_topics.get(name.topic, 1)
            alive = [self.processes[broker] for broker in isr if self.processes[broker].is_up]
            registered = [
                process for process in alive if self.cluster.brokers.get(process.id, process).epoch == process.epoch
            ]
            if (
                leader == NO_LEADER
                or len(registered) < len(isr)
                or len(isr) < min(minimum, len(columns.replicas_of(row)))
            ):
                continue
            end = self.logs.get((leader, name), 0) + 1
            self.logs |= {(member, name): end for member in isr}
            self.acked[name] = max(self.acked.get(name, 0), end)

    def check_before(self, change: changes.Change) -> None:
        """Check a change against the state that it changes."""
        match change:
            case quorum_changes.BrokerRegistered(broker=broker):
                known = self.cluster.brokers.get(broker.id)
                is_same = known is not None and known.incarnation_id == broker.incarnation_id
                assert is_same or broker.epoch == self.log_end, "C16: an epoch that is not its record's offset"
            case changes.ProducerIdsAllocated(first=first, last=last):
                assert first >= self.producer_ids, "C19: producer ids twice"
                self.producer_ids = last + 1
            case changes.PartitionStates():
                for position in range(len(change.rows)):
                    self._check_state(change, position)
            case changes.TopicRemoved(topic=topic):
                for name in [name for name in self.acked if name.topic == topic]:
                    del self.acked[name]
                self.logs = {key: end for key, end in self.logs.items() if key[1].topic != topic}
                self.lossy = {name for name in self.lossy if name.topic != topic}

    def _check_state(self, change: changes.PartitionStates, position: int) -> None:
        cluster, row = self.cluster, int(change.rows[position])
        columns, name, leader = cluster.columns, cluster.name_of(row), int(change.leader[position])
        before, isr = set(columns.isr_of(row)), set(unpad(change.isr[position]))
        one = np.array([row], dtype=np.int32)
        eligible, last = unpad(columns.elr_in(one)[0]), unpad(columns.last_known_elr_in(one)[0])
        self._before[row] = int(columns.leader[row]), int(columns.leader_epoch[row]), int(columns.partition_epoch[row])
        is_unclean = change.unclean is not None and bool(change.unclean[position])
        if leader not in {NO_LEADER, int(columns.leader[row])}:
            assert leader in cluster.may_lead(), f"C8: {name} is led by {leader}, which may not lead"
            assert leader not in cluster.offline_at(row), f"KIP-112: {name} is led by {leader}, whose directory failed"
            # The leader's request that ends a move also brings its members into the ISR: they have caught up.
            ends = change.moves is not None and row in change.moves and change.moves[row] is None
            assert is_unclean or ends or leader in before | set(eligible), f"C7: {name} has an unflagged unclean leader"
        if is_unclean:
            allowed = bool(cluster.unclean_allowed(one)[0]) or self.unclean_asked or last == (leader,)
            assert allowed, f"C7: {name} does not allow an unclean leader"
            serving = (before or set(eligible)) - {leader}
            live = serving & (cluster.may_lead() - cluster.offline_at(row)) & set(self._live())
            assert not live & isr, f"C7: {name} has live members"
            self.lossy.add(name)
        joining = isr - before - {leader}
        assert joining <= cluster.may_lead(), f"KIP-841: {name}'s ISR adds {joining}"
        move = cluster.moves.get(row)
        if change.moves is not None and row in change.moves and change.moves[row] is None and move is not None:
            target = set(unpad(change.replicas[position])) if change.replicas is not None else set()
            assert isr & target or not before, f"C9: {name} moves away from its records"
            added = target - set(move.origin)
            assert added <= isr or is_unclean or not before, f"C9: {name} ends too early"

    def _live(self) -> list[int]:
        return [process.id for process in self.processes.values() if process.is_up]

    def check_after(self, change: changes.Change) -> None:
        """Check the state after a change, and let the standby follow."""
        if not isinstance(change, IN_MEMORY):
            apply(self.standby, change)
        columns = self.cluster.columns
        if isinstance(change, quorum_changes.BrokerRegistered | quorum_changes.BrokerChanged):
            for row in columns.led_by(columns.flags(self.cluster.fenced)).tolist():
                raise AssertionError(f"C17: {self.cluster.name_of(row)} is led by a fenced broker")
            for row in columns.with_in_isr(columns.flags(self.cluster.fenced)).tolist():
                assert len(columns.isr_of(row)) == 1, f"C17: a fenced broker in the ISR of {self.cluster.name_of(row)}"
                assert not self.cluster.rules.elr, "C17: with eligible replicas an ISR has no fenced broker"
        if isinstance(change, changes.PartitionStates):
            for row in change.rows.tolist():
                self._check_row(row)

    def _check_row(self, row: int) -> None:
        columns, name = self.cluster.columns, self.cluster.name_of(row)
        leader, isr, replicas = int(columns.leader[row]), columns.isr_of(row), columns.replicas_of(row)
        one = np.array([row], dtype=np.int32)
        elr = unpad(columns.elr_in(one)[0])
        leader_before, leader_epoch, partition_epoch = self._before[row]
        assert leader == NO_LEADER or leader in isr, f"C1: {name}'s leader is not in sync"
        assert set(isr) <= set(replicas), f"C2: {name}'s ISR is not within its replicas"
        assert isr or self.cluster.rules.elr, f"C2: {name} has an empty ISR"
        assert len(set(isr)) == len(isr), f"C3: {name} has a member twice"
        assert len(set(replicas)) == len(replicas), f"C3: {name} has a replica twice"
        assert columns.partition_epoch[row] == partition_epoch + 1, f"C4: {name}'s partition epoch"
        assert columns.leader_epoch[row] >= leader_epoch + (leader != leader_before), f"C4: {name}'s leader epoch"
        minimum = min(self.cluster.min_isr_topics.get(name.topic, 1), len(replicas))
        assert set(elr).isdisjoint(isr), f"C20: {name} has an eligible replica in its ISR"
        assert set(elr) <= set(replicas), f"C20: {name} has an eligible replica outside its replicas"
        assert not elr or len(isr) < minimum, f"C20: {name} has eligible replicas with a whole ISR"
        if leader != NO_LEADER and name not in self.lossy:
            assert self.logs.get((leader, name), 0) >= self.acked.get(name, 0), f"{name}: acknowledged records are lost"

    def check_idle(self) -> None:
        """Check what holds between events."""
        cluster, columns = self.cluster, self.cluster.columns
        for row in columns.led_by(columns.flags(cluster.shutting_down)).tolist():
            others = (cluster.may_lead() - cluster.offline_at(row)) & set(columns.isr_of(row))
            assert not others, f"C8: {cluster.name_of(row)} is led by a broker in shutdown"
        for name, ids in (("registered", cluster.brokers), ("suspected", cluster.suspected)):
            assert set(ids) <= set(self.processes), f"{name} brokers that are unknown"

    def note_losses(self, broker: int) -> None:
        """Note the partitions whose only member lost records: without eligible replicas it may lead again."""
        columns = self.cluster.columns
        for row in columns.with_in_isr(columns.flags([broker])).tolist():
            if not self.cluster.rules.elr and len(columns.isr_of(row)) == 1:
                self.lossy.add(self.cluster.name_of(row))

    def check_standby(self) -> None:
        """Check C15: a standby that applied the same changes has the same state."""
        assert state_of(self.standby) == state_of(self.cluster)


def state_of(cluster: Cluster) -> dict[str, object]:
    """Return everything that outlives a controller, whatever rows its partitions have."""
    rows = dict(zip(cluster.columns.used().tolist(), cluster.names_of(cluster.columns.used()), strict=True))
    return {
        "brokers": cluster.brokers,
        "fenced": cluster.fenced,
        "shutting down": cluster.shutting_down,
        "features": cluster.features,
        "rules": cluster.rules,
        "topics": {name: topic.topic_id for name, topic in cluster.topics.items()},
        "partitions": {name: partition_record(cluster, row) for row, name in rows.items()},
        "moves": {rows[row]: move for row, move in cluster.moves.items()},
        "offline replicas": {rows[row]: brokers for row, brokers in cluster.offline_replicas.items()},
        "unclean leaders": (cluster.unclean_topics, cluster.unclean_defaults),
        "min.insync.replicas": (cluster.min_isr_topics, cluster.min_isr_default),
        "last producer id": cluster.last_producer_id,
    }

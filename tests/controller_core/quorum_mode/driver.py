"""Driver of a cluster in KRaft mode: model brokers, sessions and a log of which only the length is kept.

    event ──► decide ──► append (records counted) ──► apply at once ──► then … ──► reply, later …

A process registers, sends heartbeats and reads the log; a test stops it with or without a goodbye, and moves the clock.
"""

from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any
from uuid import UUID

from controller_core.model import (
    NO_EPOCH,
    Cluster,
    Endpoint,
    Replicas,
    TopicPartition,
    changes,
    events,
    quorum_changes,
    quorum_events,
)
from controller_core.model.broker import FeatureRange
from controller_core.model.mode_rules import kraft_rules
from controller_core.quorum_mode.decide import decide
from controller_core.quorum_mode.sessions import Sessions
from controller_core.quorum_mode.transitions import apply
from kafka_metadata.metadata_versions import ELR_VERSION, METADATA_VERSION
from kafka_metadata.records import ResourceType
from tests.controller_core.decisions.loop import tp
from tests.controller_core.decisions.render import change_lines, reply_lines

CONTROLLER = 3000
CLUSTER_ID = "quorum"
SESSION_MS = 9_000
MAX_EVENTS = 1_000
"""Events that may follow from one event before it counts as endless."""
IN_MEMORY = (
    quorum_changes.HeartbeatObserved,
    quorum_changes.ShutdownOffsetObserved,
    quorum_changes.BrokerSuspected,
    quorum_changes.BrokerLeaving,
)

FEATURES = (
    FeatureRange(METADATA_VERSION, 7, 30),
    FeatureRange(ELR_VERSION, 0, 1),
)


def directory(number: int) -> UUID:
    """Return the directory that scripts call d and the number."""
    return UUID(int=(1 << 64) + number)


@dataclass
class Process:
    """A broker process; the files that outlive it are those of its id."""

    id: int
    incarnation_id: UUID
    directories: tuple[UUID, ...]
    rack: str | None = None
    epoch: int = NO_EPOCH
    is_up: bool = True
    offline: tuple[UUID, ...] = ()
    clean_epoch: int = NO_EPOCH
    """Epoch in the clean-shutdown file of the process before."""


def records_of(change: changes.Change) -> int:
    """Return the number of records that a change has in the log."""
    match change:
        case changes.PartitionStates(rows=rows):
            return len(rows)
        case changes.TopicAdded(partitions=partitions):
            return 1 + len(partitions)
        case changes.PartitionsAdded(partitions=partitions):
            return len(partitions)
        case _ if isinstance(change, IN_MEMORY):
            return 0
        case _:
            return 1


class QuorumDriver:
    """One cluster: its active controller and its broker processes."""

    def __init__(self, *, elr: bool = True, version: int = 30) -> None:
        self.cluster = Cluster(CONTROLLER, 1, kraft_rules({}))
        self.cluster.cluster_id = CLUSTER_ID
        self.log_end = 0
        self.now_ms = 0
        self.sessions = Sessions(SESSION_MS, SESSION_MS)
        self.processes: dict[int, Process] = {}
        self.lines: list[str] = []
        self.changes: list[changes.Change] = []
        self._incarnations = 0
        self._topics = 0
        self.append(quorum_changes.FeatureLevelChanged(METADATA_VERSION, version))
        if elr:
            self.append(quorum_changes.FeatureLevelChanged(ELR_VERSION, 1))
        self.forget()

    # The loop.

    def submit(self, event: events.Event) -> Any:
        """Decide about an event and everything that follows; return the reply."""
        reply = self._run(event)
        self.lines += reply_lines(reply)
        return reply

    def _run(self, event: events.Event) -> Any:
        reply, waiting = None, deque([event])
        for _ in range(MAX_EVENTS):
            if not waiting:
                return reply
            following = waiting.popleft()
            if isinstance(following, quorum_events.RegisterBroker | quorum_events.NoteShutdownOffset):
                following = replace(following, log_end=self.log_end)
            made = decide(self.cluster, following)
            for change in made.changes:
                self.append(change)
            waiting.extendleft(reversed(made.then))
            waiting.extend((*made.later, *made.rest))
            reply = made.reply if made.reply is not None else reply
        raise AssertionError(f"{type(event).__name__} causes more than {MAX_EVENTS} events")

    def append(self, change: changes.Change) -> None:
        """Append a change's records, and apply it."""
        self.check_before(change)
        self.lines += change_lines(self.cluster, change, NO_EPOCH)
        self.changes.append(change)
        apply(self.cluster, change)
        self.log_end += records_of(change)
        self.check_after(change)

    def check_before(self, change: changes.Change) -> None:
        """Check a change before it is applied; see `checked`."""

    def check_after(self, change: changes.Change) -> None:
        """Check the cluster after a change; see `checked`."""

    def forget(self) -> None:
        """Forget what happened so far."""
        self.lines, self.changes = [], []

    # Processes.

    def launch(self, broker: int, directories: Iterable[int] = (), rack: str | None = None) -> Process:
        """Start a process, with the directories of the one before or (the first one) with one of its own; it is not registered yet."""
        before = self.processes.get(broker)
        self._incarnations += 1
        given = tuple(map(directory, directories)) or ((directory(broker),) if before is None else before.directories)
        process = Process(broker, UUID(int=self._incarnations), given, rack)
        if before is not None:
            process.clean_epoch = before.clean_epoch
            process.rack = before.rack if rack is None else rack
        self.processes[broker] = process
        return process

    def register(self, broker: int, **claims: Any) -> Any:
        """Register a process, with its own values unless `claims` differ."""
        process = self.processes[broker]
        known = self.cluster.brokers.get(broker)
        asked = quorum_events.RegisterBroker(
            broker,
            CLUSTER_ID,
            process.incarnation_id,
            (Endpoint("PLAINTEXT", f"host{broker}", 9092, "PLAINTEXT"),),
            process.rack,
            FEATURES,
            process.directories,
            process.clean_epoch,
            session_is_valid=known is not None and self.sessions.is_valid(broker, known.epoch, self.now_ms),
        )
        answer = self.submit(replace(asked, **claims))
        registered = self.cluster.brokers.get(broker)
        if registered is not None and registered.incarnation_id == process.incarnation_id:
            if known is not None and known.epoch != registered.epoch:
                self.sessions.end(broker, known.epoch)
            process.epoch, process.clean_epoch = registered.epoch, NO_EPOCH
        return answer

    def heartbeat(self, broker: int, *, lag: int = 0, **wishes: Any) -> Any:
        """Send a heartbeat of a process that has read the log to its end, or to `lag` records before it."""
        process = self.processes[broker]
        known = self.cluster.brokers.get(broker)
        if known is not None and known.epoch == process.epoch:
            self.sessions.hear(broker, process.epoch, self.now_ms)
        beat = quorum_events.Heartbeat(
            broker, process.epoch, self.log_end - 1 - lag, offline_directories=process.offline, **wishes
        )
        answer = self.submit(beat)
        if known is not None and broker in self.cluster.fenced:
            self.sessions.end(broker, process.epoch)
        return answer

    def start(self, *brokers: int, directories: Iterable[int] = (), rack: str | None = None) -> None:
        """Start processes and bring them into service."""
        for broker in brokers:
            self.launch(broker, directories, rack)
            self.register(broker)
            if self.processes[broker].epoch != NO_EPOCH:
                self.heartbeat(broker)

    def kill(self, *brokers: int) -> None:
        """Kill processes: nothing is noticed yet."""
        for broker in brokers:
            self.processes[broker].is_up = False

    def disconnect(self, broker: int) -> None:
        """End the connection over which a process sent its heartbeats."""
        self.submit(quorum_events.HeartbeatConnectionEnded(broker, self.processes[broker].epoch))

    def beat_all(self) -> None:
        """Let all live processes send a heartbeat; those in controlled shutdown ask for it again."""
        for process in self.processes.values():
            if process.is_up and process.epoch != NO_EPOCH:
                self.heartbeat(process.id, wants_shutdown=process.id in self.cluster.shutting_down)

    def expire(self) -> None:
        """Let a session pass in which only live processes send heartbeats, and fence the others."""
        self.now_ms += SESSION_MS + 1
        for process in self.processes.values():
            if process.is_up and process.epoch != NO_EPOCH:
                self.sessions.hear(process.id, process.epoch, self.now_ms)
        for broker, epoch in self.sessions.expired(self.now_ms):
            self.submit(quorum_events.FenceBroker(broker, epoch))

    def shut_down(self, broker: int) -> Any:
        """Send a heartbeat that asks for a shutdown; a process that may shut down ends, and leaves its clean-shutdown file."""
        answer = self.heartbeat(broker, wants_shutdown=True)
        if getattr(answer, "may_shut_down", False):
            process = self.processes[broker]
            process.is_up, process.clean_epoch = False, process.epoch
        return answer

    def fail_directory(self, broker: int, number: int) -> None:
        """Fail a directory of a process, which it reports with its next heartbeat."""
        process = self.processes[broker]
        process.offline = (*process.offline, directory(number))
        self.heartbeat(broker)

    # Requests.

    def create(self, topic: str, assignment: Sequence[Sequence[int]] = (), **request: Any) -> Any:
        """Create a topic, with given replicas or placed by the controller."""
        self._topics += 1
        given = {partition: tuple(replicas) for partition, replicas in enumerate(assignment)}
        new = events.NewTopic(topic, UUID(int=1_000 + self._topics), assignment=given, **request)
        return self.submit(events.CreateTopics((new,)))[topic]

    def configure(self, topic: str, values: Mapping[str, str | None]) -> None:
        """Change configurations of a topic, or (an empty name) of all brokers."""
        kind = ResourceType.TOPIC if topic else ResourceType.BROKER
        self.submit(quorum_events.ChangeConfigs((quorum_changes.ConfigsChanged(kind, topic, values),)))

    def alter_isr(self, partition: str, isr: Sequence[int], **claims: Any) -> Any:
        """Request an ISR as the leader, with its knowledge of the partition unless `claims` differ."""
        name = tp(partition)
        row = self.row(partition)
        columns = self.cluster.columns
        broker = claims.pop("broker", int(columns.leader[row]))
        epoch = claims.pop("broker_epoch", self.processes[broker].epoch if broker in self.processes else NO_EPOCH)
        known = {"leader_epoch": int(columns.leader_epoch[row]), "partition_epoch": int(columns.partition_epoch[row])}
        wish = events.IsrChange(name, isr=tuple(isr), **(known | claims))
        answers = self.submit(events.AlterPartition(broker, epoch, (wish,)))
        return answers[name] if isinstance(answers, dict) else answers

    def reassign(self, targets: Mapping[str, Sequence[int] | None]) -> Any:
        """Start, change or (None) cancel moves."""
        requested = {tp(partition): None if target is None else tuple(target) for partition, target in targets.items()}
        return self.submit(events.AlterReassignments(requested))

    def assign_directory(self, broker: int, partition: str, number: int) -> Any:
        """Say in which directory a replica is."""
        assigned = {tp(partition): directory(number)}
        return self.submit(quorum_events.AssignReplicasToDirs(broker, self.processes[broker].epoch, assigned))

    # State.

    def row(self, partition: str) -> int:
        """Return the row of a partition."""
        row = self.cluster.row_of(*tp(partition))
        assert row is not None, f"{partition} does not exist"
        return row

    def isr(self, partition: str) -> Replicas:
        """Return the ISR of a partition."""
        return self.cluster.columns.isr_of(self.row(partition))

    def leader(self, partition: str) -> int:
        """Return the leader of a partition."""
        return int(self.cluster.columns.leader[self.row(partition)])

    def names(self) -> list[TopicPartition]:
        """Return all partitions."""
        return self.cluster.names_of(self.cluster.columns.used())

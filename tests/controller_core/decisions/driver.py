"""Driver of a cluster: external events and requests of callers, in one line each, over the synchronous loop (`loop`).

A test builds a cluster, calls actions, and compares what was written, sent and returned with `state` and `sent`.
"""

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple
from uuid import UUID

from controller_core.decisions.broker_requests import PartitionAnswer
from controller_core.model import NO_EPOCH, Replicas, events, zookeeper_events
from controller_core.model.settings import BrokerDefault, TopicDeletion
from kafka_wire import ErrorCode, Failure
from tests.controller_core.decisions.fake_broker import FakeBroker
from tests.controller_core.decisions.loop import CONTROLLER, CrashError, Loop, tp
from tests.controller_core.decisions.messages import Message
from tests.controller_core.decisions.written import UNCLEAN, WrittenTopic

__all__ = ["CONTROLLER", "CrashError", "Driver", "State", "cluster_with", "tp"]


class State(NamedTuple):
    """State of a partition as tests compare it."""

    leader: int
    leader_epoch: int
    isr: Replicas


class Driver(Loop):
    """One cluster: its controller, the written state, its brokers."""

    def __init__(self) -> None:
        super().__init__()
        self._zxid = 100

    # External events.

    def start(self, *broker_ids: int, rack: str | None = None) -> None:
        """Register brokers, for the first time or again."""
        for broker_id in broker_ids:
            self._register_incarnation(broker_id, rack)
        self.read_brokers()

    def kill(self, *broker_ids: int) -> None:
        """Remove brokers' registrations."""
        for broker_id in broker_ids:
            self.brokers[broker_id].is_up = False
            self.queues[broker_id].clear()
        self.read_brokers()

    def bounce(self, *broker_ids: int) -> None:
        """Register brokers again before their absence is read."""
        self.start(*broker_ids)

    def refuse(self, broker_id: int, times: int = 1) -> None:
        """Let a broker throw at its next LeaderAndIsr requests, after applying half of them."""
        self.brokers[broker_id].refusals = times

    def fail_dir(self, broker_id: int, *partitions: str, is_notified: bool = True) -> None:
        """Fail a log directory of a broker and, with `is_notified`, notify the controller."""
        for partition in partitions:
            self.brokers[broker_id].fail_dir(tp(partition))
        if is_notified:
            self.submit(zookeeper_events.LogDirsFailed((broker_id,), ("/log_dir_event_notification/log_dir_event_0",)))

    def read_brokers(self) -> None:
        """Read the registered brokers."""
        up = tuple(broker.registration for broker in self.brokers.values() if broker.is_up)
        self.submit(zookeeper_events.BrokersRead(up))
        self.report_topic_deletion_if_unknown()

    def take_over(self) -> None:
        """Make another controller active; queued requests and answers of the earlier one are lost."""
        self.crash = self.lost_answer = None
        self.cluster = self.written.take_place(CONTROLLER)
        self.written.load(self.cluster, (broker.registration for broker in self.brokers.values() if broker.is_up))
        self._later.clear()
        self._intrusions.clear()
        self.answers.clear()
        self.refused.clear()
        self.replica_answers.clear()
        for queue in self.queues.values():
            queue.clear()
        self.submit(zookeeper_events.Activated())
        self.read_requests()
        self.report_topic_deletion_if_unknown()

    def report_topic_deletion_if_unknown(self) -> None:
        """Report the setting to a controller that has taken over, if any broker is registered."""
        if self.cluster.brokers and self.cluster.topic_deletion is TopicDeletion.UNKNOWN:
            self.report_topic_deletion()

    def report_topic_deletion(self, setting: TopicDeletion | None = None) -> None:
        """Report `delete.topic.enable`: another setting, or the current one."""
        if setting is not None:
            self.written.topic_deletion = setting
        self.submit(zookeeper_events.TopicDeletionRead(self.written.topic_deletion))

    def queue_deletion(self, *topics: str) -> None:
        """Write names into the deletion queue as another process, and read it."""
        self.written.deletions += [name for name in topics if name not in self.written.deletions]
        self.read_deletions()

    def read_deletions(self) -> None:
        """Read unknown names in the deletion queue, as the shell's watch does."""
        strange = tuple(name for name in self.written.deletions if name not in self.cluster.deletions)
        if strange:
            self.submit(zookeeper_events.DeletionsRead(strange))

    def read_requests(self) -> None:
        """Read the requests in ZooKeeper, as after a watch event or a takeover."""
        if self.written.reassignment_requests is not None:
            self.submit(self.written.reassignment_requests)
        elif self.cluster.reassignment_requests:
            self.submit(zookeeper_events.ReassignmentRequestsRead({}, NO_EPOCH))
        if self.written.election_requests is not None:
            self.submit(self.written.election_requests)

    def request_moves(self, targets: Mapping[str, Sequence[int]]) -> None:
        """Write the list of requested moves as another process, and read it."""
        requested = {tp(partition): tuple(target) for partition, target in targets.items()}
        current = self.written.reassignment_requests
        self.written.reassignment_requests = zookeeper_events.ReassignmentRequestsRead(
            requested, 0 if current is None else current.version + 1
        )
        self.read_requests()

    def request_elections(self, *partitions: str) -> None:
        """Write the list of requested elections as another process, and read it."""
        self.written.election_requests = zookeeper_events.ElectionRequestsRead(tuple(map(tp, partitions)), 0)
        self.read_requests()

    def requested(self) -> dict[str, Replicas] | None:
        """Return the list of requested moves; None if it does not exist."""
        if self.written.reassignment_requests is None:
            return None
        return {
            f"{name.topic}-{name.partition}": target
            for name, target in self.written.reassignment_requests.targets.items()
        }

    def write_isr(self, partition: str, isr: Sequence[int]) -> None:
        """Write an ISR as its leader, as brokers below 2.7 do: the controller's known version of the znode is stale from now on."""
        key = tp(partition)
        current = self.written.states[key]
        self.written.states[key] = replace(current, isr=tuple(isr), version=current.version + 1)

    def write_topic(
        self, topic: str, assignment: Sequence[Sequence[int]], topic_id: UUID | None = None, **lists: Any
    ) -> None:
        """Write a topic's znode as another process."""
        replicas = {partition: tuple(given) for partition, given in enumerate(assignment)}
        current = self.written.topics.get(topic)
        found = WrittenTopic(topic_id or self.new_topic_id(), replicas, **lists)
        if current is not None:
            found = replace(found, topic_id=current.topic_id, configs=current.configs, version=current.version + 1)
        self.written.topics[topic] = found

    def write_partition(self, topic: str, partition: int, replicas: Sequence[int]) -> None:
        """Write one partition into a topic's assignment, or its replicas in another order, as another process."""
        current = self.written.topics[topic]
        assignment = current.replicas | {partition: tuple(replicas)}
        self.written.topics[topic] = replace(current, replicas=assignment, version=current.version + 1)

    def read_assignments(self) -> None:
        """Read the assignments of known topics that another process wrote."""
        known, versions = self.cluster.topics, self.written.versions
        changed = [
            name
            for name, found in self.written.topics.items()
            if name in known and versions.known(name) != found.version
        ]
        self.submit(zookeeper_events.TopicsChanged(tuple(map(self.written.record, changed))))

    def allow_unclean(self, topic: str, allowed: bool | None) -> None:
        """Set or (None) remove a topic's `unclean.leader.election.enable`, and read it."""
        current = self.written.topics[topic]
        others = {name: value for name, value in current.configs.items() if name != UNCLEAN}
        own = {} if allowed is None else {UNCLEAN: str(allowed).lower()}
        self.written.topics[topic] = replace(current, configs=others | own)
        self.submit(zookeeper_events.UncleanElectionRead({topic: allowed}))

    def allow_unclean_by_default(self, allowed: bool | None) -> None:
        """Set or (None) remove the brokers' dynamic default, and read it."""
        self.written.unclean_default = allowed
        self.submit(zookeeper_events.UncleanElectionRead(defaults={BrokerDefault.DYNAMIC: allowed}))

    def notify_isrs(self, *partitions: str) -> None:
        """Notify the controller of ISRs, as brokers below 2.7 do after writing them."""
        rows = [row for partition in partitions if (row := self.cluster.row_of(*tp(partition))) is not None]
        states = self.written.states_of(self.cluster, rows)
        self.submit(zookeeper_events.IsrChangesRead(states, ("/isr_change_notification/isr_change_0",)))

    def crashing(self, doing: Callable[[], object]) -> None:
        """Run an action in which the controller fails."""
        try:
            doing()
        except CrashError:
            return
        raise AssertionError("the controller did not fail")

    # Requests of callers.

    def create(self, topic: str, assignment: Sequence[Sequence[int]] = (), **request: Any) -> Any:
        """Create a topic, with given replicas or placed by the controller."""
        given = {partition: tuple(replicas) for partition, replicas in enumerate(assignment)}
        validate_only = request.pop("validate_only", False)
        new = events.NewTopic(topic, self.new_topic_id(), assignment=given, **request)
        return self.submit(events.CreateTopics((new,), validate_only))[topic]

    def find(self, topic: str, assignment: Sequence[Sequence[int]]) -> None:
        """Write a topic as a broker (auto-creation), and read it."""
        self.write_topic(topic, assignment)
        self.submit(zookeeper_events.TopicsRead((self.written.record(topic),), ()))

    def change(self, topic: str, assignment: Sequence[Sequence[int]], **lists: Any) -> None:
        """Write a topic's assignment manually, and read it."""
        self.write_topic(topic, assignment, **lists)
        self.submit(zookeeper_events.TopicsChanged((self.written.record(topic),)))

    def delete(self, *topics: str) -> Any:
        """Request the deletion of topics."""
        return self.submit(events.DeleteTopics(topics))

    def reassign(self, targets: Mapping[str, Sequence[int] | None]) -> Any:
        """Start, change or (None) cancel moves."""
        requested = {tp(partition): None if target is None else tuple(target) for partition, target in targets.items()}
        results = self.submit(events.AlterReassignments(requested))
        return {f"{partition.topic}-{partition.partition}": failure for partition, failure in results.items()}

    def unregister(self, broker_id: int) -> Any:
        """Declare that a broker never returns."""
        return self.submit(events.UnregisterBroker(broker_id))

    def find_strays(self, broker_id: int, *partitions: str) -> None:
        """List a broker's logs twice, some of them without an assignment."""
        found = zookeeper_events.StrayLogsFound(broker_id, self.brokers[broker_id].epoch, tuple(map(tp, partitions)))
        self.submit(found)

    def shut_down(self, broker_id: int) -> Any:
        """Request the controlled shutdown of a broker."""
        return self.submit(zookeeper_events.ControlledShutdown(broker_id, self.brokers[broker_id].epoch))

    def alter_isr(self, partition: str, isr: Sequence[int], **claims: Any) -> Any:
        """Request an ISR as the leader, with its knowledge of the partition unless `claims` differ."""
        key = tp(partition)
        row = self.cluster.row_of(*key)
        assert row is not None
        columns = self.cluster.columns
        broker_id = claims.pop("broker", int(columns.leader[row]))
        broker_epoch = claims.pop("broker_epoch", self.brokers[broker_id].epoch)
        known = {
            "leader_epoch": int(columns.leader_epoch[row]),
            "partition_epoch": int(columns.partition_epoch[row]),
        }
        wish = events.IsrChange(key, isr=tuple(isr), **(known | claims))
        return self.alter_partition(events.AlterPartition(broker_id, broker_epoch, (wish,)))

    def alter_partition(self, event: events.AlterPartition) -> Any:
        """Submit an AlterPartition of one partition; the leader, if it is still live, processes the response.

        As in Kafka, a refused ISR may be written nevertheless and stays pending, unless a replica was ineligible.
        """
        wish, leader = event.changes[0], self.brokers[event.broker]
        leader.pending[wish.partition] = wish.isr
        answers = self.submit(event)
        if not isinstance(answers, Mapping):
            return answers
        answer, sent = answers[wish.partition], leader.states.get(wish.partition)
        if isinstance(answer, PartitionAnswer) and sent is not None and sent.leader_epoch == answer.leader_epoch:
            leader.states[wish.partition] = replace(sent, isr=answer.isr, partition_epoch=answer.partition_epoch)
            leader.pending.pop(wish.partition, None)
        if isinstance(answer, Failure) and answer.code is ErrorCode.INELIGIBLE_REPLICA:
            leader.pending.pop(wish.partition, None)
        return answer

    # State and messages.

    def state(self, partition: str) -> State:
        """Return a partition's leader, leader epoch and ISR; memory and the written state must agree."""
        row = self.row(partition)
        columns = self.cluster.columns
        known = State(int(columns.leader[row]), int(columns.leader_epoch[row]), columns.isr_of(row))
        assert known == self.state_written(partition), "memory and the written state differ"
        version = self.written.states[tp(partition)].version
        assert columns.partition_epoch[row] == version, "memory has another version than the written state"
        return known

    def state_written(self, partition: str) -> State:
        """Return the written state of a partition."""
        written = self.written.states[tp(partition)]
        return State(written.leader, written.leader_epoch, written.isr)

    def replicas(self, partition: str) -> Replicas:
        """Return the replicas that brokers are sent."""
        return self.cluster.columns.replicas_of(self.row(partition))

    def row(self, partition: str) -> int:
        """Return a partition's row."""
        row = self.cluster.row_of(*tp(partition))
        assert row is not None, f"no partition {partition}"
        return row

    def forget(self) -> None:
        """Clear the record of lines, changes and messages."""
        self.lines, self.changes, self.messages = [], [], []

    def sent(self, kind: type[Message], broker_id: int | None = None) -> list[Any]:
        """Return messages of one kind, to all brokers or to one."""
        of_kind = [(to, message) for to, message in self.messages if isinstance(message, kind)]
        return [message for to, message in of_kind if broker_id is None or broker_id in to]

    def new_topic_id(self) -> UUID:
        """Generate a topic id."""
        self._zxid += 1
        return UUID(int=self._zxid)

    def _register_incarnation(self, broker_id: int, rack: str | None) -> None:
        self._zxid += 1
        broker = self.brokers.setdefault(broker_id, FakeBroker(broker_id, self._zxid, rack))
        broker.start(self._zxid)
        self.queues[broker_id] = deque()


def cluster_with(
    brokers: Sequence[int],
    topics: Mapping[str, Sequence[Sequence[int]]] | None = None,
    unclean: Sequence[str] = (),
    *,
    holds_answers: bool = False,
) -> Driver:
    """Build a cluster with registered brokers and online topics: `cluster_with([1, 2], {"orders": [[1, 2], [2, 1]]})`.

    With `holds_answers`, brokers answer nothing from then on.
    """
    driver = Driver()
    driver.start(*brokers)
    for topic, assignment in (topics or {}).items():
        configs = {"unclean.leader.election.enable": "true"} if topic in unclean else {}
        creation = driver.create(topic, assignment, configs=configs)
        assert creation.failure is None, creation.failure
    driver.forget()
    driver.holds_answers = holds_answers
    return driver

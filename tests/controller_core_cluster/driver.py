"""The shell's loop in plain and synchronous form, over a model of what is written and brokers that do as they are told.

    event ──► decide ──► commit to `written` ──► carry_out ──► queues of the brokers ──► then … ──► reply, later …

So a test says what happens in the world and looks at what was written, told and answered. Faults: somebody else writes just
before a commit (`intrude`), or the controller dies before or after one (`crash`), and another takes over. By itself the
driver delivers every message and hands every answer back; a test that is about their order holds them.

Leaves out clocks, sockets and waiting for turns. Its limits are the shell's own.
"""

from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple
from uuid import UUID

from controller_core.cluster.controller import decide
from controller_core.cluster.isr import PartitionAnswer
from controller_core.cluster.propagation import carry_out
from controller_core.model import events
from controller_core.model.changes import Change, PartitionStates
from controller_core.model.cluster import Cluster
from controller_core.model.ids import TopicPartition
from controller_core.model.move import Replicas
from controller_core.model.scope import Scope
from controller_core.model.sends import Send
from tests.controller_core_cluster.fake_broker import FakeBroker
from tests.controller_core_cluster.messages import Addressed, Message, StopReplica, message_of
from tests.controller_core_cluster.render import change_lines, message_line, reply_lines
from tests.controller_core_cluster.written import Outcome, Written, WrittenTopic

CONTROLLER = 1000
MAX_ATTEMPTS = 8
"""As the shell: an event that is refused so often is given up."""
MAX_TURNS = 1000
"""Turns that may follow from one event before it counts as going round in circles."""


class CrashError(Exception):
    """The controller died."""


class State(NamedTuple):
    """What a test says of a partition."""

    leader: int
    leader_epoch: int
    isr: Replicas


@dataclass
class Answer:
    """A broker's answer to a StopReplica that deletes, on its way back."""

    broker: int
    broker_epoch: int
    done: tuple[TopicPartition, ...]
    failed: Mapping[TopicPartition, str]


@dataclass
class Crash:
    """Die at a commit: so many commits from now, before it is written or after it was."""

    commits: int
    after: bool


class Driver:
    """One cluster: its controller, what is written, its brokers."""

    def __init__(self) -> None:
        self.written = Written()
        self.cluster: Cluster = self.written.take_place(CONTROLLER)
        self.brokers: dict[int, FakeBroker] = {}
        self.queues: dict[int, deque[Message]] = {}
        self.answers: list[Answer] = []
        self.holds_messages = False
        self.holds_answers = False
        self.crash: Crash | None = None
        self.lines: list[str] = []
        self.changes: list[Change] = []
        self.messages: list[Addressed] = []
        self.reply: Any = None
        self._intrusions: list[Callable[[], None]] = []
        self._scope = Scope()
        self._later: deque[events.Event] = deque()
        self._zxid = 100

    # What happens in the world.

    def start(self, *broker_ids: int, rack: str | None = None) -> None:
        """Brokers register, for the first time or anew."""
        for broker_id in broker_ids:
            self._begin_life(broker_id, rack)
        self.read_brokers()

    def kill(self, *broker_ids: int) -> None:
        """Brokers' registrations go."""
        for broker_id in broker_ids:
            self.brokers[broker_id].is_up = False
            self.queues[broker_id].clear()
        self.read_brokers()

    def bounce(self, *broker_ids: int) -> None:
        """Brokers register anew before anybody saw them gone."""
        self.start(*broker_ids)

    def read_brokers(self) -> None:
        """The controller reads who is registered."""
        up = tuple(broker.registration for broker in self.brokers.values() if broker.is_up)
        self.submit(events.BrokersRead(up))

    def take_over(self) -> None:
        """Another controller takes the place; the earlier one's requests and answers are lost with it."""
        self.crash = None
        self.cluster = self.written.take_place(CONTROLLER)
        self.written.load(self.cluster, (broker.registration for broker in self.brokers.values() if broker.is_up))
        self._later.clear()
        self._intrusions.clear()
        self.answers.clear()
        for queue in self.queues.values():
            queue.clear()
        self.submit(events.Activated())

    def intrude(self, writing: Callable[[], None]) -> None:
        """Let somebody else write just before the next commit."""
        self._intrusions.append(writing)

    def write_isr(self, partition: str, isr: Sequence[int]) -> None:
        """A leader writes its ISR by itself, as brokers below 2.7 do: our version of the znode is stale from now on."""
        key = tp(partition)
        present = self.written.states[key]
        self.written.states[key] = replace(present, isr=tuple(isr), version=present.version + 1)

    def write_topic(
        self, topic: str, assignment: Sequence[Sequence[int]], topic_id: UUID | None = None, **lists: Any
    ) -> None:
        """Somebody else writes a topic's znode."""
        replicas = {partition: tuple(given) for partition, given in enumerate(assignment)}
        present = self.written.topics.get(topic)
        found = WrittenTopic(topic_id or self.new_topic_id(), replicas, **lists)
        if present is not None:
            found = replace(found, topic_id=present.topic_id, configs=present.configs, version=present.version + 1)
        self.written.topics[topic] = found

    def die_at(self, *, commits: int, after: bool) -> None:
        """Let the controller die at a commit: so many commits from now, before it is written or after it was."""
        self.crash = Crash(commits, after)

    def crashing(self, doing: Callable[[], object]) -> None:
        """Do something in which the controller dies."""
        try:
            doing()
        except CrashError:
            return
        raise AssertionError("the controller did not die")

    # What callers ask.

    def submit(self, event: events.Event) -> Any:
        """Run an event, and all that follows from it; returns the reply."""
        self.reply = self._turn(event)
        reply = self.reply
        self.lines += reply_lines(reply)
        self.settle()
        return reply

    def create(self, topic: str, assignment: Sequence[Sequence[int]] = (), **request: Any) -> Any:
        """Create a topic, with replicas given or placed."""
        given = {partition: tuple(replicas) for partition, replicas in enumerate(assignment)}
        validate_only = request.pop("validate_only", False)
        new = events.NewTopic(topic, self.new_topic_id(), assignment=given, **request)
        return self.submit(events.CreateTopics((new,), validate_only))[topic]

    def find(self, topic: str, assignment: Sequence[Sequence[int]]) -> None:
        """A broker writes a topic by itself (auto-creation), and the controller finds it."""
        self.write_topic(topic, assignment)
        self.submit(events.TopicsRead((self.written.record(topic),), ()))

    def delete(self, *topics: str) -> Any:
        """Ask to delete topics."""
        return self.submit(events.DeleteTopics(topics))

    def reassign(self, targets: Mapping[str, Sequence[int] | None]) -> Any:
        """Start, change or (None) cancel moves."""
        asked = {tp(partition): None if target is None else tuple(target) for partition, target in targets.items()}
        results = self.submit(events.AlterReassignments(asked))
        return {f"{partition.topic}-{partition.partition}": failure for partition, failure in results.items()}

    def shut_down(self, broker_id: int) -> Any:
        """A broker asks to have its leaderships taken."""
        return self.submit(events.ControlledShutdown(broker_id, self.brokers[broker_id].epoch))

    def alter_isr(self, partition: str, isr: Sequence[int], **claims: Any) -> Any:
        """The leader asks for another ISR, as it knows the partition unless `claims` say otherwise."""
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
        """Submit an AlterPartition of one partition; the leader takes the answer in."""
        answers = self.submit(event)
        if not isinstance(answers, Mapping):
            return answers
        answer = answers[event.changes[0].partition]
        leader = self.brokers[event.broker]
        if isinstance(answer, PartitionAnswer) and (told := leader.states.get(event.changes[0].partition)) is not None:
            leader.states[event.changes[0].partition] = replace(
                told, isr=answer.isr, partition_epoch=answer.partition_epoch
            )
        return answer

    # What brokers do.

    def settle(self) -> None:
        """Deliver and answer, unless a test holds the messages or the answers."""
        for _ in range(MAX_TURNS):
            if not self.holds_messages:
                self.deliver()
            if self.holds_answers or not self.answers:
                return
            self.answer()
        raise AssertionError(f"{MAX_TURNS} rounds of answers, and no end")

    def deliver(self, broker_id: int | None = None, count: int | None = None) -> None:
        """Let brokers (or one) take what waits for them (or the first few), in order."""
        for broker in self.brokers.values():
            if broker_id in {None, broker.id}:
                queue = self.queues[broker.id]
                for _ in range(len(queue) if count is None else min(count, len(queue))):
                    self._deliver_one(broker, queue.popleft())

    def answer(self, broker_id: int | None = None, failing: Mapping[str, str] | None = None) -> None:
        """Hand back what brokers (or one) answered; `failing` names partitions with their errors."""
        errors = {tp(partition): error for partition, error in (failing or {}).items()}
        for answer in [answer for answer in self.answers if broker_id in {None, answer.broker}]:
            self.answers.remove(answer)
            if answer.broker_epoch != self.brokers[answer.broker].epoch or not self.brokers[answer.broker].is_up:
                continue  # The connection went with that life.
            failed = dict(answer.failed) | {name: errors[name] for name in answer.done if name in errors}
            done = tuple(name for name in answer.done if name not in failed)
            self._turn(events.StopReplicaAnswered(answer.broker, done, failed))
        if not self.holds_messages:
            self.deliver()

    # What a test looks at.

    def state(self, partition: str) -> State:
        """Tell a partition's leader, leader epoch and ISR; memory and writing must agree."""
        written = self.written.states[tp(partition)]
        row = self.row(partition)
        columns = self.cluster.columns
        known = State(int(columns.leader[row]), int(columns.leader_epoch[row]), columns.isr_of(row))
        assert known == State(written.leader, written.leader_epoch, written.isr), "memory and writing differ"
        assert columns.partition_epoch[row] == written.version, "memory knows another version than is written"
        return known

    def replicas(self, partition: str) -> Replicas:
        """Tell which replicas brokers are told of."""
        return self.cluster.columns.replicas_of(self.row(partition))

    def row(self, partition: str) -> int:
        """Find a partition's row."""
        row = self.cluster.row_of(*tp(partition))
        assert row is not None, f"no partition {partition}"
        return row

    def forget(self) -> None:
        """Begin the record of lines, changes and messages anew."""
        self.lines, self.changes, self.messages = [], [], []

    def told(self, kind: type[Message], broker_id: int | None = None) -> list[Any]:
        """List messages of one kind, to all brokers or to one."""
        of_kind = [(to, message) for to, message in self.messages if isinstance(message, kind)]
        return [message for to, message in of_kind if broker_id is None or broker_id in to]

    def new_topic_id(self) -> UUID:
        """Draw a topic id."""
        self._zxid += 1
        return UUID(int=self._zxid)

    # The loop.

    def _turn(self, event: events.Event) -> Any:
        reply = self._run_turn(event)
        for _ in range(MAX_TURNS):
            if not self._later:
                return reply
            self._run_turn(self._later.popleft())
        raise AssertionError(f"{type(event).__name__} brings {MAX_TURNS} turns, and no end")

    def _run_turn(self, event: events.Event) -> Any:
        self._scope = event.scope
        return self._run(event)

    def _run(self, event: events.Event) -> Any:
        assert covers(self._scope, event.scope), f"{event} touches more than its turn holds: {self._scope}"
        for _ in range(MAX_ATTEMPTS):
            decision = decide(self.cluster, event)
            if self._commit(decision.changes):
                break
        else:
            raise AssertionError(f"{event} was refused {MAX_ATTEMPTS} times")
        self._send(decision.sends)
        for following in decision.then:
            self._run(following)
        self._later += decision.later
        return decision.reply

    def _commit(self, changes: Sequence[Change]) -> bool:
        """Write changes, apply what was written, read again what was not; True when all was written."""
        if changes:
            self._die_or_not(after=False)
            while self._intrusions:
                self._intrusions.pop(0)()
        outcomes = [self.written.commit(self.cluster, change) for change in changes]
        if changes:
            self._die_or_not(after=True)
        for outcome in outcomes:
            if outcome.committed is not None:
                self._carry_out(outcome.committed)
        refused = [outcome for outcome in outcomes if not outcome.is_whole]
        for outcome in refused:
            self._catch_up(outcome)
        return not refused

    def _die_or_not(self, *, after: bool) -> None:
        if self.crash is None or self.crash.after != after:
            return
        self.crash.commits -= 1
        if self.crash.commits < 0:
            self.lines.append("the controller dies")
            raise CrashError

    def _carry_out(self, change: Change) -> None:
        for name in _topics_of(self.cluster, change):
            assert covers(self._scope, Scope(partitions=frozenset([name]))), f"{name} is not this turn's to change"
        self.changes.append(change)
        self.lines += change_lines(self.cluster, change)
        self._send(carry_out(self.cluster, change))

    def _catch_up(self, outcome: Outcome) -> None:
        self.lines.append("refused: somebody else wrote")
        for change in self.written.found(self.cluster, outcome):
            self._carry_out(change)
        if outcome.stale_topic in self.written.topics and outcome.stale_topic not in self.cluster.topics:
            self._run_stranger(outcome.stale_topic)

    def _run_stranger(self, topic: str) -> None:
        scope, self._scope = self._scope, Scope(everything=True)
        self._run(events.TopicsRead((self.written.record(topic),), ()))
        self._scope = scope

    def _send(self, sends: Iterable[Send]) -> None:
        grouped: list[tuple[list[int], Message]] = []
        for send in sends:
            brokers, message = message_of(self.cluster, send)
            self.messages.append((brokers, message))
            for broker_id in brokers:
                if self.brokers[broker_id].is_up:
                    self.queues[broker_id].append(message)
            if grouped and grouped[-1][1] == message:
                grouped[-1][0].extend(brokers)
            elif brokers:
                grouped.append((list(brokers), message))
        self.lines += [message_line(brokers, message) for brokers, message in grouped]

    def _deliver_one(self, broker: FakeBroker, message: Message) -> None:
        errors = broker.take(message)
        if isinstance(message, StopReplica) and message.delete:
            done = tuple(name for name in message.partitions if name not in errors)
            self.answers.append(Answer(broker.id, broker.epoch, done, errors))

    def _begin_life(self, broker_id: int, rack: str | None) -> None:
        self._zxid += 1
        broker = self.brokers.setdefault(broker_id, FakeBroker(broker_id, self._zxid, rack))
        broker.start(self._zxid)
        self.queues[broker_id] = deque()


def cluster_with(
    brokers: Sequence[int], topics: Mapping[str, Sequence[Sequence[int]]] | None = None, unclean: Sequence[str] = ()
) -> Driver:
    """Build a cluster with brokers up and topics online: `cluster_with([1, 2], {"orders": [[1, 2], [2, 1]]})`."""
    driver = Driver()
    driver.start(*brokers)
    for topic, assignment in (topics or {}).items():
        configs = {"unclean.leader.election.enable": "true"} if topic in unclean else {}
        creation = driver.create(topic, assignment, configs=configs)
        assert creation.failure is None, creation.failure
    driver.forget()
    return driver


def tp(partition: str) -> TopicPartition:
    """Read a partition's name: `orders-0`."""
    topic, _, number = partition.rpartition("-")
    return TopicPartition(topic, int(number))


def covers(outer: Scope, inner: Scope) -> bool:
    """Whether all that one scope names is within another."""
    if outer.everything:
        return True
    return (
        not inner.everything
        and inner.topics <= outer.topics
        and all(name in outer.partitions or name.topic in outer.topics for name in inner.partitions)
    )


def _topics_of(cluster: Cluster, change: Change) -> list[TopicPartition]:
    """Name the partitions whose states a change writes."""
    return [cluster.name_of(row) for row in change.rows.tolist()] if isinstance(change, PartitionStates) else []

"""Synchronous form of the shell's loop, over a model of the written state and fake brokers.

    event ──► decide ──► commit to `written` ──► apply_and_build_requests ──► queues of the brokers ──► then … ──► reply, later …

Faults: another process writes just before a commit (`intrude`), or the controller fails before or after one (`die_at`). By default
the loop delivers every message and processes every answer; tests of their order hold them.

There are no clocks and sockets, and no waiting for scheduled events. The limits are those of the shell.
"""

from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from controller_core.model import Cluster, TopicPartition, events, zookeeper_events
from controller_core.model.changes import Change, PartitionStates
from controller_core.model.decision import Send, SendStopReplica
from controller_core.model.scope import Scope
from controller_core.shell.brokers.answers import RefusedPartitions, interpret_answer
from controller_core.shell.brokers.requests import stop_replica
from controller_core.zookeeper_mode.decide import decide
from controller_core.zookeeper_mode.propagation import apply_and_build_requests
from controller_core.zookeeper_mode.znode_versions import versions_read
from kafka_wire import ApiKey, ErrorCode
from tests.controller_core.decisions.fake_broker import FakeBroker
from tests.controller_core.decisions.messages import Addressed, LeaderAndIsr, Message, StopReplica, message_of
from tests.controller_core.decisions.render import change_lines, message_line, reply_lines
from tests.controller_core.decisions.written import Outcome, Written

CONTROLLER = 1000
MAX_ATTEMPTS = 8
"""As in the shell: an event that is refused this often is given up."""
MAX_EVENTS = 1000
"""Events that may follow from one event before the loop counts as endless."""


class CrashError(Exception):
    """The controller failed."""


@dataclass
class Answer:
    """A broker's response to a StopReplica that deletes, not processed yet."""

    broker: int
    broker_epoch: int
    done: tuple[TopicPartition, ...]
    failed: Mapping[TopicPartition, str]
    leader_epochs: Mapping[TopicPartition, int]


@dataclass
class Crash:
    """Failure at a commit: after this number of commits, before or after the commit is written."""

    commits: int
    after: bool


class Loop:
    """One controller's loop, the written state, and the brokers."""

    def __init__(self) -> None:
        self.written = Written()
        self.cluster: Cluster = self.written.take_place(CONTROLLER)
        self.cluster.topic_deletion = self.written.topic_deletion
        self.brokers: dict[int, FakeBroker] = {}
        self.queues: dict[int, deque[Message]] = {}
        self.answers: list[Answer] = []
        self.refused: list[zookeeper_events.LeaderAndIsrRejected] = []
        self.replica_answers: list[zookeeper_events.LeaderAndIsrAnswered] = []
        """Responses to LeaderAndIsr that report failed log directories, not processed yet."""
        self.refusals = RefusedPartitions()
        self.holds_messages = False
        self.holds_answers = False
        self.crash: Crash | None = None
        self.lost_answer: int | None = None
        self.lines: list[str] = []
        self.changes: list[Change] = []
        self.messages: list[Addressed] = []
        self.reply: Any = None
        self._intrusions: list[tuple[int, Callable[[], None]]] = []
        self._scope = Scope()
        self._later: deque[events.Event] = deque()

    def submit(self, event: events.Event) -> Any:
        """Run an event and its follow-up events; return the reply."""
        self.reply = self._run_scheduled(event)
        reply = self.reply
        self.lines += reply_lines(reply)
        self.settle()
        return reply

    def intrude(self, writing: Callable[[], None], commits: int = 0) -> None:
        """Let another process write just before a commit, after this number of commits."""
        self._intrusions.append((commits, writing))

    def lose_answer(self, commits: int = 0) -> None:
        """Lose the result of a commit, after this number of commits: it is written, and the controller does not get the result."""
        self.lost_answer = commits

    def die_at(self, *, commits: int, after: bool) -> None:
        """Let the controller fail at a commit, after this number of commits, before or after the commit is written."""
        self.crash = Crash(commits, after)

    # Brokers.

    def settle(self) -> None:
        """Deliver messages and process answers, unless a test holds them."""
        for _ in range(MAX_EVENTS):
            if not self.holds_messages:
                self.deliver()
            if self.holds_answers or not (self.answers or self.refused or self.replica_answers):
                return
            self.answer()
        raise AssertionError(f"{MAX_EVENTS} rounds of answers, and no end")

    def deliver(self, broker_id: int | None = None, count: int | None = None) -> None:
        """Let brokers (or one) process their queued messages (or the first few), in order."""
        for broker in self.brokers.values():
            if broker_id in {None, broker.id}:
                queue = self.queues[broker.id]
                for _ in range(len(queue) if count is None else min(count, len(queue))):
                    self._deliver_one(broker, queue.popleft())

    def answer(self, broker_id: int | None = None, failing: Mapping[str, str] | None = None) -> None:
        """Process the answers of brokers (or one); `failing` contains partitions with their errors."""
        errors = {tp(partition): error for partition, error in (failing or {}).items()}
        for answer in [answer for answer in self.answers if broker_id in {None, answer.broker}]:
            self.answers.remove(answer)
            if answer.broker_epoch != self.brokers[answer.broker].epoch or not self.brokers[answer.broker].is_up:
                continue  # The connection was closed with that incarnation.
            failed = dict(answer.failed) | {name: errors[name] for name in answer.done if name in errors}
            done = tuple(name for name in answer.done if name not in failed)
            self._run_scheduled(zookeeper_events.StopReplicaAnswered(answer.broker, done, failed, answer.leader_epochs))
        for event in [event for event in self.refused if broker_id in {None, event.broker}]:
            self.refused.remove(event)
            self._run_scheduled(event)
        for event in [event for event in self.replica_answers if broker_id in {None, event.broker}]:
            self.replica_answers.remove(event)
            self._run_scheduled(event)
        if not self.holds_messages:
            self.deliver()

    # The loop.

    def _run_scheduled(self, event: events.Event) -> Any:
        reply = self._run_event(event)
        for _ in range(MAX_EVENTS):
            if not self._later:
                return reply
            self._run_event(self._later.popleft())
        raise AssertionError(f"{type(event).__name__} causes more than {MAX_EVENTS} events")

    def _run_event(self, event: events.Event) -> Any:
        self._scope = event.scope
        return self._run(event)

    def _run(self, event: events.Event) -> Any:
        assert covers(self._scope, event.scope), f"{event} exceeds the scope of its scheduled event: {self._scope}"
        then: list[events.Event] = []
        later: list[events.Event] = []
        for _ in range(MAX_ATTEMPTS):
            decision = decide(self.cluster, event)
            is_whole = self._commit(decision.changes, event)
            self._send(decision.sends)
            then += [following for following in decision.then if following not in then]
            later += [another for another in decision.later if another not in later]
            if is_whole:
                break
            event = decision.retry_event or event
        else:
            raise AssertionError(f"{event} was refused {MAX_ATTEMPTS} times")
        for following in then:
            self._run(following)
        self._later += later
        return decision.reply

    def _commit(self, changes: Sequence[Change], event: events.Event) -> bool:
        """Write changes, apply the written ones, and read the refused ones again; return whether all were written."""
        versions, read = self.written.versions, versions_read(event)
        expected = [versions.expected(change, read) for change in changes]
        if changes:
            self._die_or_not([], after=False)
            due = [writing for commits, writing in self._intrusions if commits == 0]
            self._intrusions = [(commits - 1, writing) for commits, writing in self._intrusions if commits > 0]
            for writing in due:
                writing()
        outcomes = [self.written.commit(self.cluster, *based) for based in zip(changes, expected, strict=True)]
        if changes:
            self._die_or_not(_committed(outcomes, expected), after=True)
        if changes and self.lost_answer is not None:
            if self.lost_answer == 0:
                outcomes = [outcome.lost() for outcome in outcomes]
            self.lost_answer = None if self.lost_answer == 0 else self.lost_answer - 1
        for change, version in _committed(outcomes, expected):
            self._carry_out(change, version)
        refused = [outcome for outcome in outcomes if not outcome.is_whole]
        for outcome in refused:
            self._catch_up(outcome)
        return not refused

    def _die_or_not(self, written: Sequence[tuple[Change, int]], *, after: bool) -> None:
        if self.crash is None or self.crash.after != after:
            return
        self.crash.commits -= 1
        if self.crash.commits < 0:
            self.lines += [line for based in written for line in change_lines(self.cluster, *based)]
            self.lines.append("the controller fails")
            raise CrashError

    def _carry_out(self, change: Change, expected: int) -> None:
        for name in _topics_of(self.cluster, change):
            assert covers(self._scope, Scope(partitions=frozenset([name]))), (
                f"{name} is outside the scope of the scheduled event"
            )
        self.changes.append(change)
        self.lines += change_lines(self.cluster, change, expected)
        self._send(apply_and_build_requests(self.cluster, change))
        self.written.versions.note(change, expected)

    def _catch_up(self, outcome: Outcome) -> None:
        self.lines.append("the result is lost" if outcome.is_unknown else "refused: another process wrote")
        for change, version in self.written.found(self.cluster, outcome):
            self._carry_out(change, version)
        if outcome.stale_topic in self.written.topics and outcome.stale_topic not in self.cluster.topics:
            self._run_intruder(outcome.stale_topic)

    def _run_intruder(self, topic: str) -> None:
        scope, self._scope = self._scope, Scope(everything=True)
        self._run(zookeeper_events.TopicsRead((self.written.record(topic),), ()))
        self._scope = scope

    def _send(self, sends: Iterable[Send]) -> None:
        grouped: list[tuple[list[int], Message]] = []
        for send in sends:
            brokers, message = message_of(self.cluster, send)
            self.note_message((brokers, message))
            for broker_id in brokers:
                if self.brokers[broker_id].is_up:
                    self.queues[broker_id].append(message)
            if grouped and grouped[-1][1] == message:
                grouped[-1][0].extend(brokers)
            elif brokers:
                grouped.append((list(brokers), message))
        self.lines += [message_line(brokers, message) for brokers, message in grouped]

    def note_message(self, addressed: Addressed) -> None:
        """Record a message."""
        self.messages.append(addressed)

    def _deliver_one(self, broker: FakeBroker, message: Message) -> None:
        if isinstance(message, LeaderAndIsr):
            leader_epochs = {name: state.leader_epoch for name, state in message.partitions.items()}
            if broker.refuses(message):
                broker.refuse(message)
                self.refused += [retry.event for retry in self.refusals.retries(broker.id, leader_epochs)]
                return
            self.refusals.accepted(broker.id, leader_epochs)
        errors = broker.take(message)
        is_answered = errors or self.cluster.offline_replicas or self.cluster.refused_replicas
        if isinstance(message, LeaderAndIsr) and is_answered:
            online = tuple(name for name in message.partitions if name not in errors)
            offline = tuple(name for name, error in errors.items() if error == "KAFKA_STORAGE_ERROR")
            refused = {name: error for name, error in errors.items() if name not in offline}
            ids = {topic: topic_id for topic, topic_id in message.topic_ids.items() if topic_id is not None}
            answered = zookeeper_events.LeaderAndIsrAnswered(
                broker.id, broker.epoch, offline, online, refused, ids, online
            )
            self.replica_answers.append(answered)
        if isinstance(message, StopReplica) and message.delete:
            self.answers.append(self._stopped(broker, message, errors))

    def _stopped(self, broker: FakeBroker, message: StopReplica, errors: Mapping[TopicPartition, str]) -> Answer:
        """Parse a broker's response as the shell does, from the bodies of request and response."""
        send = SendStopReplica(broker.id, tuple(message.partitions), tuple(message.partitions.values()), delete=True)
        codes = [
            {"topic_name": topic, "partition_index": partition, "error_code": ErrorCode[error]}
            for (topic, partition), error in errors.items()
        ]
        response = {"error_code": ErrorCode.NONE, "partition_errors": codes}
        event = interpret_answer(broker.id, ApiKey.STOP_REPLICA, stop_replica(self.cluster, send), response).event
        assert event is not None, f"the answer of broker {broker.id} to {message} has no meaning"
        return Answer(broker.id, broker.epoch, event.done, event.failed, event.leader_epochs)


def tp(partition: str) -> TopicPartition:
    """Parse a partition's name: `orders-0`."""
    topic, _, number = partition.rpartition("-")
    return TopicPartition(topic, int(number))


def covers(outer: Scope, inner: Scope) -> bool:
    """Whether one scope contains another."""
    if outer.everything:
        return True
    return (
        not inner.everything
        and inner.topics <= outer.topics
        and all(name in outer.partitions or name.topic in outer.topics for name in inner.partitions)
    )


def _committed(outcomes: Sequence[Outcome], expected: Sequence[int]) -> list[tuple[Change, int]]:
    """Return the committed changes, with the versions for which they were valid."""
    return [
        (outcome.committed, version)
        for outcome, version in zip(outcomes, expected, strict=True)
        if outcome.committed is not None
    ]


def _topics_of(cluster: Cluster, change: Change) -> list[TopicPartition]:
    """Return the names of the partitions whose states a change writes."""
    return [cluster.name_of(row) for row in change.rows.tolist()] if isinstance(change, PartitionStates) else []

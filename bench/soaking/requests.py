"""Requests of administrators during the faults: topics are created, grown and deleted, replicas moved, moves cancelled, leaders elected.

Every request uses the brokers' own listener, and its answer is recorded in `Wanted`: done, rejected, or unknown (the connection was
lost), after which both outcomes are right. NOT_CONTROLLER means that the client's controller has just ended: the request is repeated.
"""

import logging
import random
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from enum import Enum

from confluent_kafka import ElectionType, KafkaError, KafkaException
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewPartitions, NewTopic
from kafka import KafkaAdminClient, TopicPartition
from kafka.errors import KafkaError as ClientError
from kafka.errors import NotControllerError, ReassignmentInProgressError

from bench.soaking.invariants import Wanted
from bench.soaking.snapshot import Replicas, Snapshot
from lab.peers.cluster import KafkaCluster

TIMEOUT_S = 20.0
"""Two sessions of the controller: a request is answered earlier, or its connection is lost."""

ATTEMPT_MS = 8_000
"""For one attempt at a controller that may have just ended."""

PAUSE_S = 0.1
MAX_PARTITIONS = 6
REPLICATION_FACTOR = 3
MAX_TOPICS = 12
"""In addition to the load's topic; more would make rounds longer without new cases."""

QUIET = logging.getLogger("bench.soak.clients")
QUIET.addHandler(logging.NullHandler())  # clients log every broken connection, which the soak test causes on purpose
QUIET.propagate = False


class Answer(Enum):
    """Result of a request."""

    DONE = "done"
    REFUSED = "refused"
    UNKNOWN = "unknown"


class Administrator:
    """Sends requests to one cluster and records the promises of the answers."""

    def __init__(self, cluster: KafkaCluster, source: random.Random, wanted: Wanted, round_number: int) -> None:
        self.wanted = wanted
        self._cluster = cluster
        self._source = source
        self._prefix = f"soak-{round_number}"
        self.asked: list[str] = []
        self._made = 0
        self._touched: set[str] = set()

    def _admin(self) -> AdminClient:
        """Return a new client: a client keeps sending requests to a controller that ended long ago."""
        settings: dict[str, str | int | float | bool] = {
            "bootstrap.servers": self._cluster.bootstrap(),
            "socket.timeout.ms": ATTEMPT_MS,
        }
        return AdminClient(settings, logger=QUIET)

    def ask(self, now: Snapshot, load: str) -> str:
        """Send one random request and return it with its details; `load` is the topic of the load, which may move and is never deleted."""
        free = sorted(name for name in now.topics if name.startswith("soak-") and name not in self._touched)
        kinds: list[Callable[[], tuple[str, str]]] = []
        if len(now.topics) < MAX_TOPICS:
            kinds += [self._create] * 2
        if free:
            topic = self._source.choice(free)
            kinds += [lambda: self._delete(topic), lambda: self._grow(now, topic), lambda: self._move(now, topic)]
        if load not in self._touched:
            kinds += [lambda: self._move(now, load)] * 2
        kinds.append(self._elect)
        message, details = self._source.choice(kinds)()
        self.asked.append(message)
        return f"{message} {details}".rstrip()

    def _create(self) -> tuple[str, str]:
        name = f"{self._prefix}-{self._made}"
        self._made += 1
        self._touched.add(name)
        partitions = self._source.randint(1, MAX_PARTITIONS)
        new = NewTopic(name, partitions, REPLICATION_FACTOR)
        answer = self._insist(lambda admin: admin.create_topics([new])[name], KafkaError.TOPIC_ALREADY_EXISTS)
        if answer is Answer.DONE:
            self.wanted.present.add(name)
        return f"create {name}: {answer.value}", ""

    def _delete(self, name: str) -> tuple[str, str]:
        self._touched.add(name)
        self.wanted.present.discard(name)
        answer = self._insist(
            lambda admin: admin.delete_topics([name], operation_timeout=0)[name],
            KafkaError.UNKNOWN_TOPIC_OR_PART,
        )
        if answer is Answer.DONE:
            self.wanted.absent.add(name)
        return f"delete {name}: {answer.value}", ""

    def _grow(self, now: Snapshot, name: str) -> tuple[str, str]:
        self._touched.add(name)
        total = len(now.topics[name].replicas) + 1
        answer = self._insist(
            lambda admin: admin.create_partitions([NewPartitions(name, total)])[name],
            KafkaError.INVALID_PARTITIONS,
        )
        return f"grow {name}: {answer.value}", ""

    def _elect(self) -> tuple[str, str]:
        answer = self._insist(lambda admin: admin.elect_leaders(ElectionType.PREFERRED))
        return f"elect preferred leaders: {answer.value}", ""

    def _move(self, now: Snapshot, name: str) -> tuple[str, str]:
        self._touched.add(name)
        origin = now.topics[name].replicas
        brokers = sorted(self._cluster.brokers)
        target = {p: tuple(self._source.sample(brokers, REPLICATION_FACTOR)) for p in origin}
        cancelled = self._source.random() < 0.3
        answer = self._reassign({TopicPartition(name, p): list(replicas) for p, replicas in target.items()})
        self._promise(name, origin, target, answer)
        message, details = f"move {name}: {answer.value}", f"from {origin} to {target}"
        if not cancelled or answer is not Answer.DONE:
            return message, details
        # A move that has ended cannot be cancelled: that is an answer for each partition, and both ends are right.
        answer = self._reassign(dict.fromkeys(TopicPartition(name, p) for p in target))
        back = {p: cancelled_to(replicas, target[p]) for p, replicas in origin.items()}
        self._promise(name, back, target, Answer.UNKNOWN)
        return f"{message}, cancel: {answer.value}", details

    def _promise(self, name: str, origin: dict[int, Replicas], target: dict[int, Replicas], answer: Answer) -> None:
        for partition, replicas in target.items():
            ends = {Answer.DONE: {replicas}, Answer.REFUSED: {origin[partition]}}
            self.wanted.replicas[name, partition] = ends.get(answer, {replicas, origin[partition]})

    def _reassign(self, moves: dict[TopicPartition, list[int] | None]) -> Answer:
        """Start or cancel moves. A request is accepted completely or is unknown: brokers that fail during it may split it."""
        deadline = time.monotonic() + TIMEOUT_S
        while time.monotonic() < deadline:
            try:
                admin = KafkaAdminClient(
                    bootstrap_servers=self._cluster.bootstrap(), request_timeout_ms=int(TIMEOUT_S * 1000)
                )
                try:
                    errors: Sequence[object] = list(admin.alter_partition_reassignments(moves).values())
                finally:
                    admin.close()
            except (NotControllerError, RuntimeError):
                # The second: this client's error for a controller that twice returns NOT_CONTROLLER.
                time.sleep(PAUSE_S)
                continue
            except ClientError:
                return Answer.UNKNOWN
            if not any(errors):
                return Answer.DONE
            refused_whole = all(errors) and ReassignmentInProgressError not in errors
            return Answer.REFUSED if refused_whole else Answer.UNKNOWN
        return Answer.UNKNOWN

    def _insist(self, request: Callable[[AdminClient], Future[object]], done_before: int | None = None) -> Answer:
        """Repeat a request until it is answered; `done_before` is the error of a second attempt when the first was carried out without an answer."""
        deadline, unheard = time.monotonic() + TIMEOUT_S, False
        while time.monotonic() < deadline:
            admin = self._admin()
            try:
                request(admin).result(TIMEOUT_S)
            except KafkaException as error:
                code = error.args[0].code()
                if unheard and code == done_before:
                    return Answer.DONE
                if code != KafkaError.NOT_CONTROLLER and code >= 0 and not error.args[0].retriable():
                    return Answer.UNKNOWN if unheard else Answer.REFUSED
                unheard = unheard or code != KafkaError.NOT_CONTROLLER
                time.sleep(PAUSE_S)
            else:
                return Answer.DONE
        return Answer.UNKNOWN


def cancelled_to(origin: Replicas, target: Replicas) -> Replicas:
    """Return where a cancelled move ends: the origin, in the order in which the union lists it, target first, as Kafka does.

    >>> cancelled_to((3, 4, 2), (1, 3, 2))
    (3, 2, 4)
    """
    return (*(replica for replica in target if replica in origin), *(r for r in origin if r not in target))

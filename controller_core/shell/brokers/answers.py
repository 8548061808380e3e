"""Interpretation of brokers' answers, and retries of refused LeaderAndIsr requests: pure functions and bookkeeping.

A partition error STALE_CONTROLLER_EPOCH in an answer to LeaderAndIsr is normal if the broker has the leader epoch already (protocol
notes, Z30); only the top-level error means that another controller is active.

An answer that refuses a whole LeaderAndIsr request does not name the partition that caused it. The request is therefore split into
two halves, and so on: after a number of rounds logarithmic in its size all other partitions are accepted and the failing one is in
a request of its own. That one is retried for as long as the broker refuses it, each time after twice the pause.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum

from controller_core.model import Cluster, TopicPartition, zookeeper_events
from controller_core.shell.brokers.requests import StatesBody, stopped_partitions
from kafka_wire import ApiKey, Body, ErrorCode
from kafka_wire.net.client import Backoff

HARMLESS = frozenset({ErrorCode.NONE, ErrorCode.STALE_CONTROLLER_EPOCH})
"""Partition errors of LeaderAndIsr after which nothing has to be done."""
DELETED = frozenset({ErrorCode.NONE, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION})
"""Partition errors of StopReplica after which the broker has no log."""
PAUSE_S = 0.1
"""Pause before the first retry of a refused partition, and before each half of a refused request."""
MAX_PAUSE_S = 60.0
"""Maximum pause between retries of one refused partition: each retry raises its leader epoch and restarts its followers' fetchers."""
PAUSES = Backoff(initial_ms=round(PAUSE_S * 1000), cap_ms=round(MAX_PAUSE_S * 1000), jitter=0)
"""Pauses between retries of one partition. No jitter: PACE_S spreads them."""
PACE_S = 0.02
"""Added for each partition that the broker refuses: it bounds the rate of retries, however many partitions there are."""


class AnswerStatus(Enum):
    """A broker's answer to a request as a whole."""

    ACCEPTED = "accepted"
    STALE_CONTROLLER = "stale controller"
    """The broker knows a newer controller: this one is deposed."""
    STALE_BROKER = "stale broker"
    """The broker has registered again: the request was for its previous incarnation, and the new one gets the full state."""
    UNAUTHORIZED = "unauthorized"
    """The broker did not process the request: its authorizer does not grant this controller ClusterAction."""
    FAILED = "failed"
    """The broker failed while processing the request; how much of it took effect is unknown."""


@dataclass(frozen=True, slots=True)
class Interpretation:
    """The controller's conclusions from an answer."""

    status: AnswerStatus
    event: zookeeper_events.StopReplicaAnswered | None = None
    failed: tuple[tuple[TopicPartition, str], ...] = ()
    """Partitions that the broker could not host, with the error's name."""


def interpret_answer(broker: int, key: ApiKey, request: Body | StatesBody, answer: Body) -> Interpretation:
    """Interpret a broker's answer to a request."""
    status = _status(answer["error_code"])
    if key is ApiKey.STOP_REPLICA and not isinstance(request, StatesBody):
        return Interpretation(status, _stopped(broker, request, answer, status))
    if key is ApiKey.LEADER_AND_ISR and isinstance(request, StatesBody) and status is AnswerStatus.ACCEPTED:
        return Interpretation(status, failed=tuple(_partition_failures(request, answer)))
    return Interpretation(status)


def replicas_answered(
    broker: int, request: StatesBody, answer: Body, cluster: Cluster, failed: Sequence[tuple[TopicPartition, str]]
) -> zookeeper_events.LeaderAndIsrAnswered | None:
    """Return which replicas an answer to LeaderAndIsr reports as offline (failed log directory, refused), and which no longer are.

    None if nothing has changed. A partition error STALE_CONTROLLER_EPOCH is ignored, as in Kafka.
    """
    if not failed and not cluster.offline_replicas and not cluster.refused_replicas:
        return None
    by_row = (*cluster.offline_replicas.items(), *cluster.refused_replicas.items())
    known = {cluster.name_of(row) for row, brokers in by_row if broker in brokers}
    others = {cluster.name_of(row) for row, brokers in cluster.refused_replicas.items() if broker not in brokers}
    concerned = known | others
    codes = {(name, partition): code for name, partition, code in _errors(request, answer)} if concerned else {}
    sent = request.leader_epochs if concerned else {}
    new = {name: error for name, error in failed if name not in known}
    offline = tuple(name for name, error in new.items() if error == ErrorCode.KAFKA_STORAGE_ERROR.name)
    refused = {name: error for name, error in new.items() if error != ErrorCode.KAFKA_STORAGE_ERROR.name}
    online = tuple(sorted(name for name in known if name in sent and codes.get(name, 0) == ErrorCode.NONE))
    accepted = tuple(sorted(name for name in others if name in sent and codes.get(name, 0) in HARMLESS))
    if not offline and not online and not refused and not accepted:
        return None
    ids = {name: topic_id for topic_id, name in request.topic_names.items()} if refused or accepted else {}
    topic_ids = {name.topic: ids[name.topic] for name in (*refused, *accepted) if name.topic in ids}
    return zookeeper_events.LeaderAndIsrAnswered(
        broker, request.head["broker_epoch"], offline, online, refused, topic_ids, accepted
    )


def _status(code: int) -> AnswerStatus:
    match code:
        case ErrorCode.NONE:
            return AnswerStatus.ACCEPTED
        case ErrorCode.STALE_CONTROLLER_EPOCH:
            return AnswerStatus.STALE_CONTROLLER
        case ErrorCode.STALE_BROKER_EPOCH:
            return AnswerStatus.STALE_BROKER
        case ErrorCode.CLUSTER_AUTHORIZATION_FAILED:
            return AnswerStatus.UNAUTHORIZED
        case _:
            return AnswerStatus.FAILED


def _stopped(
    broker: int, request: Body, answer: Body, status: AnswerStatus
) -> zookeeper_events.StopReplicaAnswered | None:
    asked = stopped_partitions(request)
    if not asked or status in {AnswerStatus.STALE_CONTROLLER, AnswerStatus.STALE_BROKER, AnswerStatus.UNAUTHORIZED}:
        return None
    if status is AnswerStatus.FAILED:
        return zookeeper_events.StopReplicaAnswered(
            broker, (), dict.fromkeys(asked, error_name(answer["error_code"])), asked
        )
    codes = {
        TopicPartition(error["topic_name"], error["partition_index"]): error["error_code"]
        for error in answer["partition_errors"]
    }
    done = tuple(partition for partition in asked if codes.get(partition, ErrorCode.NONE) in DELETED)
    failed = {partition: error_name(codes[partition]) for partition in asked if partition not in set(done)}
    return zookeeper_events.StopReplicaAnswered(broker, done, failed, asked)


def _partition_failures(request: StatesBody, answer: Body) -> list[tuple[TopicPartition, str]]:
    """List the partitions that have an error."""
    return [
        (TopicPartition(name, partition), error_name(code))
        for name, partition, code in _errors(request, answer)
        if code not in HARMLESS
    ]


def _errors(request: StatesBody, answer: Body) -> Iterator[tuple[str, int, int]]:
    """List the error code of each partition; versions below 5 have a flat list, later ones are grouped by topic id."""
    for error in answer["partition_errors"]:
        yield error["topic_name"], error["partition_index"], error["error_code"]
    names = request.topic_names
    for topic in answer["topics"]:
        name = names.get(topic["topic_id"], str(topic["topic_id"]))
        for error in topic["partition_errors"]:
            yield name, error["partition_index"], error["error_code"]


def error_name(code: int) -> str:
    """Return Kafka's name of an error."""
    known = ErrorCode(code)
    # An error code that this version does not know becomes UNKNOWN_SERVER_ERROR; its number is more precise.
    return known.name if known == code else f"error {code}"


@dataclass(frozen=True, slots=True)
class Retry:
    """Partitions to be sent again in one request."""

    pause_s: float
    event: zookeeper_events.LeaderAndIsrRejected


class RefusedPartitions:
    """Partitions that brokers refused in one active term."""

    def __init__(self) -> None:
        self._refused: dict[int, dict[TopicPartition, int]] = {}
        """By broker: how often it refused each partition in a request of its own, since it last accepted the partition."""

    def retries(self, broker: int, leader_epochs: Mapping[TopicPartition, int]) -> Iterator[Retry]:
        """Record a refused request; returns the requests to be sent again, each with its pause."""
        if len(leader_epochs) == 1:
            yield Retry(
                self._pause_s(broker, *leader_epochs), zookeeper_events.LeaderAndIsrRejected(broker, leader_epochs)
            )
            return
        sent = list(leader_epochs.items())
        middle = len(sent) // 2
        for half in (sent[:middle], sent[middle:]):
            if half:
                yield Retry(PAUSE_S, zookeeper_events.LeaderAndIsrRejected(broker, dict(half)))

    def has_any(self, broker: int) -> bool:
        """Return whether a broker refuses any partition in a request of its own."""
        return broker in self._refused

    def accepted(self, broker: int, partitions: Iterable[TopicPartition]) -> None:
        """Record that a broker accepted partitions; pauses begin at the minimum again if it refuses them later."""
        if (refused := self._refused.get(broker)) is None:
            return
        for partition in partitions:
            refused.pop(partition, None)
        if not refused:
            del self._refused[broker]

    def forget(self, broker: int) -> None:
        """Forget an incarnation of a broker."""
        self._refused.pop(broker, None)

    def _pause_s(self, broker: int, partition: TopicPartition) -> float:
        refused = self._refused.setdefault(broker, {})
        refused[partition] = refused.get(partition, 0) + 1
        return PAUSES.delay_ms(refused[partition], 0) / 1000 + PACE_S * len(refused)

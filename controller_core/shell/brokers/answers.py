"""What brokers' answers mean: pure, from a request and its answer to an event, or to the news that we are deposed.

A partition error STALE_CONTROLLER_EPOCH in a LeaderAndIsr answer is normal when the leader epoch is what the broker has
already (protocol notes, Z30); only the top-level one says that another controller rules.

Leaves out what is told again, and when (channels, refusals).
"""

# MERGED controller_core.shell.brokers.answers: """Which partitions of a refused LeaderAndIsr are told again, after which pause, and in whose company: pure bookkeeping.
# MERGED controller_core.shell.brokers.answers:
# MERGED controller_core.shell.brokers.answers: The answer does not say which partition was at fault, so a refused request comes back as its two halves, and so on: after as
# MERGED controller_core.shell.brokers.answers: many rounds as the logarithm of its size the others are taken and the one at fault is alone. It is told again for as long as
# MERGED controller_core.shell.brokers.answers: the broker refuses it, each time after twice the pause.
# MERGED controller_core.shell.brokers.answers:
# MERGED controller_core.shell.brokers.answers: Leaves out clocks and what is told (`zookeeper_mode.leader_and_isr_answers`).
# MERGED controller_core.shell.brokers.answers: """
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum

from controller_core.model import events
from controller_core.model.cluster import Cluster
from controller_core.model.ids import TopicPartition
from controller_core.shell.brokers.requests import StatesBody, stopped_partitions
from kafka_wire.api import ApiKey
from kafka_wire.codec import Body
from kafka_wire.errors import ErrorCode
from kafka_wire.net.backoff import Backoff


class Verdict(Enum):
    """What a broker thinks of a request as a whole."""

    TAKEN = "taken"
    STALE_CONTROLLER = "stale controller"
    """The broker has heard of a newer controller: this one is deposed."""
    STALE_BROKER = "stale broker"
    """The broker has registered anew: what it was told is void, and it will be told everything."""
    UNAUTHORIZED = "unauthorized"
    """The broker did not look into it: its authorizer does not grant this controller ClusterAction."""
    FAILED = "failed"
    """Something threw while the broker did as told. How much of it is done, nobody knows."""


HARMLESS = frozenset({ErrorCode.NONE, ErrorCode.STALE_CONTROLLER_EPOCH})
"""Partition errors of LeaderAndIsr that say nothing new."""
GONE = frozenset({ErrorCode.NONE, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION})
"""Partition errors of StopReplica after which the broker holds no log."""


@dataclass(frozen=True, slots=True)
class Meaning:
    """What an answer says."""

    verdict: Verdict
    event: events.StopReplicaAnswered | None = None
    failed: tuple[tuple[TopicPartition, str], ...] = ()
    """Partitions that the broker could not take on, with the error's name."""


def meaning_of(broker: int, key: ApiKey, request: Body | StatesBody, answer: Body) -> Meaning:
    """Read an answer."""
    verdict = _verdict(answer["error_code"])
    if key is ApiKey.STOP_REPLICA and not isinstance(request, StatesBody):
        return Meaning(verdict, _stopped(broker, request, answer, verdict))
    if key is ApiKey.LEADER_AND_ISR and isinstance(request, StatesBody) and verdict is Verdict.TAKEN:
        return Meaning(verdict, failed=tuple(_not_taken(request, answer)))
    return Meaning(verdict)


def replicas_answered(
    broker: int, request: StatesBody, answer: Body, cluster: Cluster, failed: Sequence[tuple[TopicPartition, str]]
) -> events.LeaderAndIsrAnswered | None:
    """Read from an answer to LeaderAndIsr which replicas are offline (failed log directory, refused), and which no longer are.

    None where nothing has changed. A partition error STALE_CONTROLLER_EPOCH does not count, as with Kafka.
    """
    if not failed and not cluster.offline_replicas and not cluster.refused_replicas:
        return None
    by_row = (*cluster.offline_replicas.items(), *cluster.refused_replicas.items())
    known = {cluster.name_of(row) for row, brokers in by_row if broker in brokers}
    others = {cluster.name_of(row) for row, brokers in cluster.refused_replicas.items() if broker not in brokers}
    concerned = known | others
    codes = {(name, partition): code for name, partition, code in _errors(request, answer)} if concerned else {}
    told = request.leader_epochs if concerned else {}
    news = {name: error for name, error in failed if name not in known}
    offline = tuple(name for name, error in news.items() if error == ErrorCode.KAFKA_STORAGE_ERROR.name)
    refused = {name: error for name, error in news.items() if error != ErrorCode.KAFKA_STORAGE_ERROR.name}
    online = tuple(sorted(name for name in known if name in told and codes.get(name, 0) == ErrorCode.NONE))
    taken = tuple(sorted(name for name in others if name in told and codes.get(name, 0) in HARMLESS))
    if not offline and not online and not refused and not taken:
        return None
    ids = {name: topic_id for topic_id, name in request.topic_names.items()} if refused or taken else {}
    topic_ids = {name.topic: ids[name.topic] for name in (*refused, *taken) if name.topic in ids}
    return events.LeaderAndIsrAnswered(broker, request.head["broker_epoch"], offline, online, refused, topic_ids, taken)


def _verdict(code: int) -> Verdict:
    match code:
        case ErrorCode.NONE:
            return Verdict.TAKEN
        case ErrorCode.STALE_CONTROLLER_EPOCH:
            return Verdict.STALE_CONTROLLER
        case ErrorCode.STALE_BROKER_EPOCH:
            return Verdict.STALE_BROKER
        case ErrorCode.CLUSTER_AUTHORIZATION_FAILED:
            return Verdict.UNAUTHORIZED
        case _:
            return Verdict.FAILED


def _stopped(broker: int, request: Body, answer: Body, verdict: Verdict) -> events.StopReplicaAnswered | None:
    asked = stopped_partitions(request)
    if not asked or verdict in {Verdict.STALE_CONTROLLER, Verdict.STALE_BROKER, Verdict.UNAUTHORIZED}:
        return None
    if verdict is Verdict.FAILED:
        return events.StopReplicaAnswered(broker, (), dict.fromkeys(asked, error_name(answer["error_code"])), asked)
    codes = {
        TopicPartition(error["topic_name"], error["partition_index"]): error["error_code"]
        for error in answer["partition_errors"]
    }
    done = tuple(partition for partition in asked if codes.get(partition, ErrorCode.NONE) in GONE)
    failed = {partition: error_name(codes[partition]) for partition in asked if partition not in set(done)}
    return events.StopReplicaAnswered(broker, done, failed, asked)


def _not_taken(request: StatesBody, answer: Body) -> list[tuple[TopicPartition, str]]:
    """List partitions with an error."""
    return [
        (TopicPartition(name, partition), error_name(code))
        for name, partition, code in _errors(request, answer)
        if code not in HARMLESS
    ]


def _errors(request: StatesBody, answer: Body) -> Iterator[tuple[str, int, int]]:
    """List what is said of each partition; before version 5 they come flat, since then by topic id."""
    for error in answer["partition_errors"]:
        yield error["topic_name"], error["partition_index"], error["error_code"]
    names = request.topic_names
    for topic in answer["topics"]:
        name = names.get(topic["topic_id"], str(topic["topic_id"]))
        for error in topic["partition_errors"]:
            yield name, error["partition_index"], error["error_code"]


def error_name(code: int) -> str:
    """Name an error as Kafka does."""
    known = ErrorCode(code)
    # A code of the future is taken for an unknown one; its number says more.
    return known.name if known == code else f"error {code}"


PAUSE_S = 0.1
"""Before the first telling again, and before every halving."""
MAX_PAUSE_S = 60.0
"""Between tellings of one partition that is refused alone: each raises its leader epoch, and has its followers begin anew."""
PAUSES = Backoff(initial_ms=round(PAUSE_S * 1000), cap_ms=round(MAX_PAUSE_S * 1000), jitter=0)
"""Between tellings of one partition. No jitter: the pace keeps them apart."""
PACE_S = 0.02
"""Added for each partition that the broker refused alone: at most so many are told again in a time, however many there are."""


@dataclass(frozen=True, slots=True)
class Retry:
    """Partitions that are to be told again together."""

    pause_s: float
    event: events.LeaderAndIsrRejected


class Refusals:
    """What brokers refused, of one tenure."""

    def __init__(self) -> None:
        self._alone: dict[int, dict[TopicPartition, int]] = {}
        """By broker: how often each partition was refused alone, since it was taken last."""

    def refused(self, broker: int, leader_epochs: Mapping[TopicPartition, int]) -> Iterator[Retry]:
        """Take in a refused request; say what is to be told again, and when."""
        if len(leader_epochs) == 1:
            yield Retry(self._pause_s(broker, *leader_epochs), events.LeaderAndIsrRejected(broker, leader_epochs))
            return
        told = list(leader_epochs.items())
        middle = len(told) // 2
        for half in (told[:middle], told[middle:]):
            if half:
                yield Retry(PAUSE_S, events.LeaderAndIsrRejected(broker, dict(half)))

    def remember(self, broker: int) -> bool:
        """Whether a broker refused any partition alone."""
        return broker in self._alone

    def taken(self, broker: int, partitions: Iterable[TopicPartition]) -> None:
        """Take in that a broker took partitions: should it refuse them again, that is a new matter."""
        if (alone := self._alone.get(broker)) is None:
            return
        for partition in partitions:
            alone.pop(partition, None)
        if not alone:
            del self._alone[broker]

    def forget(self, broker: int) -> None:
        """Forget a life of a broker."""
        self._alone.pop(broker, None)

    def _pause_s(self, broker: int, partition: TopicPartition) -> float:
        alone = self._alone.setdefault(broker, {})
        alone[partition] = alone.get(partition, 0) + 1
        return PAUSES.delay_ms(alone[partition], 0) / 1000 + PACE_S * len(alone)

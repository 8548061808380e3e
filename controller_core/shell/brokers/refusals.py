"""Which partitions of a refused LeaderAndIsr are told again, after which pause, and in whose company: pure bookkeeping.

The answer does not say which partition was at fault, so a refused request comes back as its two halves, and so on: after as
many rounds as the logarithm of its size the others are taken and the one at fault is alone. It is told again for as long as
the broker refuses it, each time after twice the pause.

Leaves out clocks and what is told (`cluster.refused_replicas`).
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from controller_core.model.events import ReplicasRefused
from controller_core.model.ids import TopicPartition
from kafka_wire.net.backoff import Backoff

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
    event: ReplicasRefused


class Refusals:
    """What brokers refused, of one tenure."""

    def __init__(self) -> None:
        self._alone: dict[int, dict[TopicPartition, int]] = {}
        """By broker: how often each partition was refused alone, since it was taken last."""

    def refused(self, broker: int, leader_epochs: Mapping[TopicPartition, int]) -> Iterator[Retry]:
        """Take in a refused request; say what is to be told again, and when."""
        if len(leader_epochs) == 1:
            yield Retry(self._pause_s(broker, *leader_epochs), ReplicasRefused(broker, leader_epochs))
            return
        told = list(leader_epochs.items())
        middle = len(told) // 2
        for half in (told[:middle], told[middle:]):
            if half:
                yield Retry(PAUSE_S, ReplicasRefused(broker, dict(half)))

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

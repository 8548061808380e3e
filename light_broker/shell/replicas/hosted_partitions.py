"""The partitions with a log on this broker, those whose log is offline, and the requests that wait for them.

It is the state that `ReplicaManager` and what it is made of share; each change of a partition is followed by `after_change` or
`after_progress`, which answer what waits.
"""

import functools
import logging
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Protocol
from uuid import UUID

from kafka_wire import ErrorCode
from kafka_wire.file_slice import DiskRunner
from kafka_wire.topic_partition import TopicPartition
from light_broker.core.metadata_view import MetadataView
from light_broker.shell.logs.manager import LogManager
from light_broker.shell.replicas.hosted_partition import HostedPartition
from light_broker.shell.replicas.waiting import WaitingRequests

log = logging.getLogger(__name__)


class Fetchers(Protocol):
    """Fetchers that replicate what this broker follows (`ReplicaFetchers`)."""

    def follow(self, partition: TopicPartition, topic_id: UUID, leader_id: int, leader_epoch: int) -> None:
        """Replicate a partition from its leader."""

    def forget(self, partition: TopicPartition) -> None:
        """Stop replicating a partition."""


class NoFetchers:
    """A broker that is alone."""

    def follow(self, partition: TopicPartition, topic_id: UUID, leader_id: int, leader_epoch: int) -> None:
        """Replicate nothing."""

    def forget(self, partition: TopicPartition) -> None:
        """Replicate nothing."""


class HostedPartitions:
    """Partitions by name."""

    def __init__(
        self, logs: LogManager, view: Callable[[], MetadataView], clock: Callable[[], float] = time.monotonic
    ) -> None:
        """Host nothing yet. `view` returns the current metadata."""
        self._logs = logs
        self._view = view
        self._clock = clock
        self.online: dict[TopicPartition, HostedPartition] = {}
        self.offline: dict[TopicPartition, UUID] = {}
        """Topic ids of partitions whose log cannot be used."""
        self.waiting = WaitingRequests(self.now_ms)
        self.fetchers: Fetchers = NoFetchers()
        self._epochs_of: MetadataView | None = None
        self._eligible_epochs: dict[int, int] = {}

    def get(self, partition: TopicPartition) -> HostedPartition | None:
        """Return a partition that is online here."""
        return self.online.get(partition)

    def __iter__(self) -> Iterator[HostedPartition]:
        """Return the partitions that are online now; they may change in the meantime."""
        return iter(list(self.online.values()))

    def take_offline(self, partitions: Sequence[TopicPartition]) -> None:
        """Take partitions offline: their requests are answered with KAFKA_STORAGE_ERROR."""
        for partition in partitions:
            hosted = self.online.pop(partition, None)
            self.fetchers.forget(partition)
            if hosted is not None:
                self.offline[partition] = hosted.topic_id
                self.waiting.wake(partition)

    def fail(self, partition: TopicPartition, error: Exception) -> None:
        """Take a partition offline because of an error of its log."""
        log.error("Failed to use the log of a partition", extra={"partition": str(partition), "error": str(error)})
        self._logs.report_failure(partition, error)
        self.take_offline([partition])

    def after_change(self, partition: TopicPartition) -> None:
        """Raise the high watermark where followers allow it, and answer the requests that a changed partition satisfies."""
        hosted = self.online.get(partition)
        if hosted is not None:
            hosted.advance(self.eligible(), self.now_ms())
        self.waiting.wake(partition)

    def after_progress(self, partition: TopicPartition) -> None:
        """Answer the requests that a follower's progress satisfies. A fetch waits only for the high watermark."""
        hosted = self.online[partition]
        if hosted.advance(self.eligible(), self.now_ms()):
            self.waiting.wake(partition)
        else:
            self.waiting.wake_deletions(partition)

    def disk_runner(self, partition: TopicPartition) -> DiskRunner:
        """Return what reads slices of a partition's log that are not cached."""
        return functools.partial(self._logs.read_slice, partition)

    def missing(self, partition: TopicPartition) -> ErrorCode:
        """Return the error for a partition that is not hosted here."""
        if partition in self.offline or self._logs.offline_reason(partition) is not None:
            return ErrorCode.KAFKA_STORAGE_ERROR
        if self._view().partition(partition) is not None:
            return ErrorCode.NOT_LEADER_OR_FOLLOWER
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION

    def is_internal(self, topic: str) -> bool:
        """Return whether only brokers write to a topic."""
        known = self._view().topics.get(topic)
        return known is not None and known.is_internal

    def eligible(self) -> Mapping[int, int]:
        """Return the broker epochs of the brokers that may join an ISR (Partition.isReplicaIsrEligible)."""
        view = self._view()
        if view is not self._epochs_of:
            self._epochs_of = view
            self._eligible_epochs = {
                broker.id: broker.epoch
                for broker in view.brokers.values()
                if not broker.is_fenced and not broker.is_shutting_down
            }
        return self._eligible_epochs

    def now_ms(self) -> int:
        """Return the time since some fixed point in milliseconds."""
        return int(self._clock() * 1000)

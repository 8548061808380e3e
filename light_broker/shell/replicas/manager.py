"""Replica manager: the roles of the partitions that this broker hosts, and what is written to and read from them.

Everything runs on the event loop, in the order of the calls. Source: Kafka's ReplicaManager.
"""

import logging
import time
from collections.abc import Callable, Mapping, Sequence
from uuid import UUID

from kafka_node.outcomes import NO_TOPIC_ID
from kafka_wire import ErrorCode
from kafka_wire.topic_partition import TopicPartition
from light_broker.control.port import ControlPlane
from light_broker.core.metadata_view import NO_EPOCH, NO_LEADER, MetadataView, PartitionView
from light_broker.core.partition import Follower, IsrRules
from light_broker.shell.logs.errors import OfflineLogError, WrongTopicIdError
from light_broker.shell.logs.manager import LogManager
from light_broker.shell.replicas.follower_writes import DISK_ERRORS, FollowerWrites
from light_broker.shell.replicas.hosted_partition import HostedPartition
from light_broker.shell.replicas.hosted_partitions import Fetchers, HostedPartitions
from light_broker.shell.replicas.isr_proposals import IsrProposals
from light_broker.shell.replicas.leader_writes import LeaderWrites
from light_broker.shell.replicas.reads import ReplicaReads

log = logging.getLogger(__name__)


class ReplicaManager:
    """Partitions on this broker."""

    def __init__(
        self,
        broker_id: int,
        logs: LogManager,
        control: ControlPlane,
        *,
        view: Callable[[], MetadataView],
        isr_rules: Callable[[str], IsrRules],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Host nothing yet. `view` returns the current metadata, `isr_rules` the current settings of a topic for its ISR."""
        self._broker_id = broker_id
        self._logs = logs
        self._view = view
        self._isr_rules = isr_rules
        self._partitions = HostedPartitions(logs, view, clock)
        self._proposals = IsrProposals(control, self._partitions.eligible, self._partitions.after_change)
        self.writes = LeaderWrites(self._partitions, logs)
        self.reads = ReplicaReads(self._partitions, self._proposals)
        self.follower_writes = FollowerWrites(self._partitions, logs)
        """Changes of logs by what leaders returned."""

    def replicate_by(self, fetchers: Fetchers) -> None:
        """Let fetchers replicate what this broker follows, from the next change of a role on."""
        self._partitions.fetchers = fetchers

    # Called by the control plane

    async def lead(
        self, partition: TopicPartition, topic_id: UUID, state: PartitionView, *, is_new: bool = False
    ) -> ErrorCode:
        """Lead a partition, or apply another state; its log is created if it is missing.

        `is_new`: the partition was just created, so that it has no log in a directory that cannot be read. A state with a lower partition
        epoch than the current one is ignored. Return NONE, or why the broker does not lead it.
        """
        return await self._take_role(partition, topic_id, state, leads=True, is_new=is_new)

    async def follow(
        self, partition: TopicPartition, topic_id: UUID, state: PartitionView, *, is_new: bool = False
    ) -> ErrorCode:
        """Follow a partition's leader, or apply another state; as `lead`. Requests that wait are answered."""
        return await self._take_role(partition, topic_id, state, leads=False, is_new=is_new)

    async def _take_role(
        self, partition: TopicPartition, topic_id: UUID, state: PartitionView, *, leads: bool, is_new: bool
    ) -> ErrorCode:
        try:
            hosted = await self._host(partition, topic_id, is_new=is_new)
            taken = hosted.lead(state, self._broker_id, self._partitions.now_ms()) if leads else hosted.follow(state)
        except WrongTopicIdError as error:
            log.warning("Refusing to serve a partition", extra={"partition": str(partition), "error": str(error)})
            return ErrorCode.INCONSISTENT_TOPIC_ID
        except (OfflineLogError, *DISK_ERRORS) as error:
            self._partitions.offline[partition] = topic_id
            self._partitions.fail(partition, error)
            return ErrorCode.KAFKA_STORAGE_ERROR
        if not taken:
            log.info("Ignoring an older state of a partition", extra={"partition": str(partition)})
            return ErrorCode.NONE
        self._set_fetcher(hosted)
        self._partitions.after_change(partition)
        return ErrorCode.NONE

    def _set_fetcher(self, hosted: HostedPartition) -> None:
        role = hosted.role
        if isinstance(role, Follower):
            self._partitions.fetchers.follow(hosted.name, hosted.topic_id, role.leader_id, role.leader_epoch)
        else:
            self._partitions.fetchers.forget(hosted.name)

    async def _host(self, partition: TopicPartition, topic_id: UUID, *, is_new: bool) -> HostedPartition:
        opened = await self._logs.create(partition, None if topic_id == NO_TOPIC_ID else topic_id, is_new=is_new)
        hosted = self._partitions.get(partition)
        if hosted is None or hosted.log is not opened:
            hosted = HostedPartition(
                partition,
                topic_id,
                opened,
                self._isr_rules(partition.topic),
                high_watermark=self._logs.checkpointed_high_watermark(partition),
            )
            self._partitions.online[partition] = hosted
            self._partitions.offline.pop(partition, None)
        if hosted.topic_id == NO_TOPIC_ID:
            hosted.topic_id = topic_id  # The controller gives ids to topics from before ids existed.
        return hosted

    async def stop(self, partition: TopicPartition, *, delete: bool) -> ErrorCode:
        """Stop hosting a partition; with `delete` its log is deleted. Return NONE, or why it is not deleted."""
        self._partitions.fetchers.forget(partition)
        self._partitions.online.pop(partition, None)
        self._partitions.offline.pop(partition, None)
        self._partitions.waiting.wake(partition)
        if not delete:
            return ErrorCode.NONE
        try:
            await self._logs.delete(partition)
        except (OfflineLogError, *DISK_ERRORS) as error:
            log.warning(
                "Failed to delete the log of a partition", extra={"partition": str(partition), "error": str(error)}
            )
            return ErrorCode.KAFKA_STORAGE_ERROR
        return ErrorCode.NONE

    def log_directory_failed(self, partitions: Sequence[TopicPartition]) -> None:
        """Take partitions offline: their requests are answered with KAFKA_STORAGE_ERROR."""
        self._partitions.take_offline(partitions)

    def reconfigure(self, topic: str) -> None:
        """Apply changed settings of a topic to its ISR."""
        rules = self._isr_rules(topic)
        for hosted in self._partitions:
            if hosted.name.topic == topic:
                hosted.rules = rules
                self._partitions.after_change(hosted.name)

    def shrink_isrs(self) -> None:
        """Propose ISRs without followers that lag for too long. Called periodically, each half of replica.lag.time.max.ms."""
        now_ms = self._partitions.now_ms()
        for hosted in self._partitions:
            if (pending := hosted.shrink(now_ms)) is not None:
                self._proposals.propose(hosted, pending)

    async def close(self) -> None:
        """End timers and proposals. Requests that still wait are answered by their cancellation."""
        self._partitions.waiting.close()
        await self._proposals.close()

    # State

    def leader_of(self, partition: TopicPartition) -> tuple[int, int]:
        """Return id and epoch of a partition's leader as this broker knows them, for the answers of KIP-951; -1 for none."""
        hosted = self._partitions.get(partition)
        if hosted is not None and hosted.role is not None:
            return hosted.role.leader_id, hosted.role.leader_epoch
        known = self._view().partition(partition)
        return (NO_LEADER, NO_EPOCH) if known is None else (known.leader, known.leader_epoch)

    def is_leader(self, partition: TopicPartition) -> bool:
        """Return whether this broker leads a partition."""
        hosted = self._partitions.get(partition)
        return hosted is not None and hosted.leader is not None

    def high_watermark(self, partition: TopicPartition) -> int | None:
        """Return the high watermark of a hosted partition."""
        hosted = self._partitions.get(partition)
        return None if hosted is None else hosted.high_watermark

    def high_watermarks(self) -> dict[TopicPartition, int]:
        """Return the high watermarks of all hosted partitions, for their checkpoint file."""
        return {partition: hosted.high_watermark for partition, hosted in self._partitions.online.items()}

    def hosted(self) -> Mapping[TopicPartition, HostedPartition]:
        """Return the partitions with a log here."""
        return self._partitions.online

    def now_ms(self) -> int:
        """Return the time since some fixed point in milliseconds."""
        return self._partitions.now_ms()

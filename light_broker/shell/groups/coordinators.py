"""Group coordinators of a broker: one for each partition of `__consumer_offsets` that it leads.

    control plane ── lead, resign, topics_deleted ──► GroupCoordinators ──► GroupCoordinator (one partition)
    requests ── coordinator_of(group) ──►

A partition is loaded before its groups are served: COORDINATOR_LOAD_IN_PROGRESS until then. Groups of other partitions are NOT_COORDINATOR.
Source: Kafka's GroupCoordinatorService.
"""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from kafka_wire import ErrorCode
from kafka_wire.failures import WireError
from kafka_wire.topic_partition import TopicPartition
from light_broker.core.groups.offsets_topic import OFFSETS_TOPIC, partition_for
from light_broker.core.groups.records import MalformedRecordError
from light_broker.core.groups.settings import GroupSettings
from light_broker.core.metadata_view import MetadataView
from light_broker.shell.groups.coordinator import GroupCoordinator
from light_broker.shell.groups.loading import LoadFailedError, load
from light_broker.shell.replicas.manager import ReplicaManager

log = logging.getLogger(__name__)

CREATION_RETRY_S = 5.0
"""Time between two attempts to create `__consumer_offsets`: clients ask for their coordinator many times a second."""


class NotCoordinatorError(Exception):
    """This broker does not serve a group now; `code` is the error for the client."""

    def __init__(self, code: ErrorCode) -> None:
        super().__init__(code.name)
        self.code = code


@dataclass(slots=True, eq=False)
class _Led:
    """A partition that this broker leads."""

    leader_epoch: int
    coordinator: GroupCoordinator
    code: ErrorCode = ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    """NONE: loaded. NOT_COORDINATOR: it cannot be loaded."""
    loading: asyncio.Task[None] | None = None


class GroupCoordinators:
    """The group coordinators of a broker."""

    def __init__(
        self,
        replicas: ReplicaManager,
        settings: GroupSettings,
        *,
        view: Callable[[], MetadataView],
        clock: Callable[[], float] = time.time,
    ) -> None:
        """Begin without partitions. `view` returns the current metadata, `clock` the time of day in seconds."""
        self.settings = settings
        self._replicas = replicas
        self._view = view
        self._clock = clock
        self._led: dict[int, _Led] = {}
        self._creation: asyncio.Task[None] | None = None
        self._tasks: set[asyncio.Task[None]] = set()

    # Called by the control plane

    def lead(self, partition: int, leader_epoch: int) -> None:
        """Begin to coordinate the groups of a partition that this broker leads now; a repeated call changes nothing."""
        led = self._led.get(partition)
        if led is not None and led.leader_epoch >= leader_epoch:
            return
        self.resign(partition)
        named = TopicPartition(OFFSETS_TOPIC, partition)
        led = _Led(leader_epoch, GroupCoordinator(named, self._replicas, self.settings, clock=self._clock))
        self._led[partition] = led
        led.loading = self._start(self._load(named, led))

    def resign(self, partition: int) -> None:
        """Stop to coordinate the groups of a partition: another broker leads it, or it was deleted."""
        led = self._led.pop(partition, None)
        if led is None:
            return
        if led.loading is not None:
            led.loading.cancel()
        led.coordinator.close()
        log.info("Unloaded the groups of a partition", extra={"partition": f"{OFFSETS_TOPIC}-{partition}"})

    def topics_deleted(self, topics: Sequence[tuple[str, UUID]]) -> None:
        """Delete the offsets of all groups for deleted topics."""
        for led in self._led.values():
            if led.code:
                continue
            for name, topic_id in topics:
                records = led.coordinator.shard.offsets_of_deleted_topic(name, topic_id)
                if records:
                    self._start(led.coordinator.delete_offsets_of_topic(records))

    async def run(self) -> None:
        """Delete expired offsets and groups, each offsets.retention.check.interval.ms, until it is cancelled."""
        while True:
            await asyncio.sleep(self.settings.offsets_retention_check_interval_ms / 1000)
            for coordinator in self.loaded():
                try:
                    await coordinator.expire()
                except Exception:
                    log.exception("Failed to delete expired offsets; retrying at the next check")

    async def close(self) -> None:
        """Answer all requests that wait, and end all tasks."""
        for partition in list(self._led):
            self.resign(partition)
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    # Called by requests

    def partition_of(self, group_id: str) -> int:
        """Return the partition of `__consumer_offsets` for a group."""
        topic = self._view().topics.get(OFFSETS_TOPIC)
        return partition_for(
            group_id, self.settings.offsets_topic_partitions if topic is None else len(topic.partitions)
        )

    def coordinator_of(self, group_id: str) -> GroupCoordinator:
        """Return the coordinator of a group; raises NotCoordinatorError."""
        led = self._led.get(self.partition_of(group_id))
        if led is None:
            raise NotCoordinatorError(ErrorCode.NOT_COORDINATOR)
        if led.code:
            raise NotCoordinatorError(led.code)
        return led.coordinator

    def loaded(self) -> list[GroupCoordinator]:
        """Return the coordinators of all loaded partitions."""
        return [led.coordinator for led in self._led.values() if not led.code]

    @property
    def is_loading(self) -> bool:
        """Whether a partition is being loaded."""
        return any(led.code is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS for led in self._led.values())

    def create_offsets_topic(self, create: Callable[[], Awaitable[Mapping[str, ErrorCode]]]) -> None:
        """Create `__consumer_offsets` in the background; further calls do not repeat an attempt that is under way or has just failed."""
        if self._creation is None or self._creation.done():
            self._creation = self._start(self._create(create))

    async def _create(self, create: Callable[[], Awaitable[Mapping[str, ErrorCode]]]) -> None:
        for topic, error in (await create()).items():
            if error:
                log.warning("Failed to create the topic of the groups", extra={"topic": topic, "error": error.name})
        await asyncio.sleep(CREATION_RETRY_S)

    async def _load(self, partition: TopicPartition, led: _Led) -> None:
        began = time.monotonic()
        try:
            records = await load(
                partition,
                self._replicas,
                led.coordinator.shard,
                buffer_bytes=self.settings.offsets_load_buffer_bytes,
            )
        except (LoadFailedError, MalformedRecordError, WireError) as error:
            led.code = ErrorCode.NOT_COORDINATOR
            log.error(  # An operator must repair the log; the groups of other partitions go on.
                "Failed to load the groups of a partition", extra={"partition": str(partition), "error": str(error)}
            )
            return
        except Exception:
            led.code = ErrorCode.NOT_COORDINATOR
            log.exception("Failed to load the groups of a partition", extra={"partition": str(partition)})
            return
        led.coordinator.start()
        led.code = ErrorCode.NONE
        log.info(
            "Loaded the groups of a partition",
            extra={
                "partition": str(partition),
                "groups": len(led.coordinator.shard.groups),
                "records": records,
                "duration_s": round(time.monotonic() - began, 3),
            },
        )

    def _start(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

"""Directories of a broker's replicas, reported to the controller where the metadata has others (KIP-858).

The controller fences the leaders of a failed directory by the last report, so it must know where each log is. Reports that fail are
repeated. Source: AssignmentsManager of Kafka.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping
from uuid import UUID

from kafka_metadata.image import MetadataImage
from kafka_wire import Body, ErrorCode
from kafka_wire.topic_partition import TopicPartition
from light_broker.control.kraft.roles import directory_of
from light_broker.control.port import ControlPlaneError

log = logging.getLogger(__name__)

MAX_REPORTED = 2_250
"""Replicas of one request (AssignReplicasToDirsRequest.MAX_ASSIGNMENTS_PER_REQUEST)."""
RETRY_S = 1.0

Replica = tuple[UUID, int]
"""Id of a topic and number of a partition."""


def unreported(
    image: MetadataImage,
    broker_id: int,
    partitions: Iterable[TopicPartition],
    directory_id: Callable[[TopicPartition], UUID | None],
) -> dict[Replica, UUID]:
    """Return the directories of partitions for which the image has another one. Pure."""
    found: dict[Replica, UUID] = {}
    for partition in partitions:
        topic = image.topic(partition.topic)
        record = None if topic is None else topic.partitions.get(partition.partition)
        actual = directory_id(partition)
        if topic is None or record is None or actual is None or broker_id not in record.replicas:
            continue
        known = directory_of(record, broker_id)
        if known not in {None, actual}:
            found[topic.topic_id, partition.partition] = actual
    return found


class DirectoryReports:
    """Reports in flight: the latest directory of each replica."""

    def __init__(self, send: Callable[[Body], Awaitable[Body]]) -> None:
        """`send` returns the answer to AssignReplicasToDirs or raises ControlPlaneError."""
        self._send = send
        self._waiting: dict[Replica, UUID] = {}
        self._wake = asyncio.Event()

    def add(self, found: Mapping[Replica, UUID]) -> None:
        """Report directories soon."""
        if found:
            self._waiting.update(found)
            self._wake.set()

    async def run(self) -> None:
        """Send reports until this is cancelled."""
        while True:
            await self._wake.wait()
            self._wake.clear()
            while self._waiting:
                some = dict(list(self._waiting.items())[:MAX_REPORTED])
                if await self._report(some):
                    self._waiting = {
                        replica: directory_id
                        for replica, directory_id in self._waiting.items()
                        if some.get(replica) != directory_id
                    }
                else:
                    await asyncio.sleep(RETRY_S)

    async def _report(self, some: Mapping[Replica, UUID]) -> bool:
        try:
            answer = await self._send({"directories": _by_directory(some)})
        except ControlPlaneError as failure:
            log.warning("Failed to report the directories of replicas; retrying", extra={"error": str(failure)})
            return False
        error = ErrorCode.of(answer["error_code"])
        if error is not ErrorCode.NONE:
            log.warning("The controller rejected the directories of replicas; retrying", extra={"error": error.name})
        return error is ErrorCode.NONE


def _by_directory(some: Mapping[Replica, UUID]) -> list[Body]:
    found: dict[UUID, dict[UUID, list[int]]] = {}
    for (topic_id, number), directory in some.items():
        found.setdefault(directory, {}).setdefault(topic_id, []).append(number)
    return [
        {
            "id": directory,
            "topics": [
                {"topic_id": topic_id, "partitions": [{"partition_index": number} for number in numbers]}
                for topic_id, numbers in topics.items()
            ],
        }
        for directory, topics in found.items()
    ]

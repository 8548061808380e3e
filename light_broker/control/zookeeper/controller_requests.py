"""Requests of the controller to this broker: LeaderAndIsr, StopReplica and UpdateMetadata.

They are processed one after another. A request of an earlier controller, or for an earlier registration of this broker, changes nothing.
Source: KafkaApis.handleLeaderAndIsrRequest, handleStopReplicaRequest and handleUpdateMetadataRequest, and ReplicaManager, of Kafka 3.9.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Protocol
from uuid import UUID

from kafka_node.outcomes import NO_TOPIC_ID
from kafka_node.versions import VersionRange
from kafka_wire import ApiKey, Body, ErrorCode
from kafka_wire.topic_partition import TopicPartition
from light_broker.control.port import BrokerSide
from light_broker.control.zookeeper.state import partition_of, with_partitions, with_topic_ids, with_update
from light_broker.core.metadata_view import NO_EPOCH, NO_LEADER, BrokerView, MetadataView, PartitionView

log = logging.getLogger(__name__)

VERSIONS: Mapping[ApiKey, VersionRange] = {
    ApiKey.LEADER_AND_ISR: (4, 7),
    ApiKey.STOP_REPLICA: (3, 4),
    ApiKey.UPDATE_METADATA: (6, 8),
}
"""Those of controllers with inter.broker.protocol.version 2.6 and later."""

EPOCH_DURING_DELETE, NO_LEADER_EPOCH = -2, -1
"""Leader epochs of StopReplica that are compared with no other (LeaderAndIsr)."""
NO_CONTROLLER_EPOCH = 0

IDS_FROM = 5
"""Version of LeaderAndIsr from which topics have ids."""

Errors = dict[TopicPartition, ErrorCode]


class Metadata(Protocol):
    """The metadata of the control plane."""

    view: MetadataView

    def own(self) -> BrokerView:
        """Return this broker, with the epoch of its registration."""

    def publish(self, view: MetadataView) -> None:
        """Replace the metadata."""

    async def read_topics(self, names: Collection[str]) -> None:
        """Read the configs of topics that were not read before."""


@dataclass(frozen=True, slots=True)
class _Hosted:
    topic_id: UUID
    leader_epoch: int


class ControllerRequests:
    """Carries out the requests on `side`."""

    def __init__(self, side: BrokerSide, metadata: Metadata, broker_id: int) -> None:
        self._side = side
        self._metadata = metadata
        self._broker_id = broker_id
        self._lock = asyncio.Lock()
        self._controller_epoch = NO_CONTROLLER_EPOCH
        self._hosted: dict[TopicPartition, _Hosted] = {}
        """Partitions with a role on this broker."""
        self._handlers: Mapping[ApiKey, Callable[[Body], Awaitable[Body]]] = {
            ApiKey.LEADER_AND_ISR: self._leader_and_isr,
            ApiKey.STOP_REPLICA: self._stop_replica,
            ApiKey.UPDATE_METADATA: self._update_metadata,
        }

    async def handle(self, key: ApiKey, version: int, body: Body) -> Body:
        """Answer a request."""
        async with self._lock:
            stale = self._staleness(body)
            if stale is None:
                self._controller_epoch = body["controller_epoch"]
                answer = await self._handlers[key](body)
            else:
                extra = {"request": key.name, "controller": body["controller_id"], "error": stale.name}
                log.warning("Refusing an outdated request of a controller", extra=extra)
                answer = self._refused(key, body, stale)
        if key is ApiKey.UPDATE_METADATA:
            return {"error_code": answer["error_code"]}
        return _by_topic_ids(body, answer) if key is ApiKey.LEADER_AND_ISR and version >= IDS_FROM else answer

    def is_complete(self) -> bool:
        """Return whether the controller has sent what it sends to a broker that starts: the metadata, the roles, and elected leaders.

        Source: KafkaController.onBrokerStartup.
        """
        view = self._metadata.view
        if self._broker_id not in view.brokers:
            return False
        return not any(
            TopicPartition(topic.name, number) not in self._hosted
            or (state.leader == NO_LEADER and self._broker_id in state.isr)
            for topic in view.topics.values()
            for number, state in enumerate(topic.partitions)
            if self._broker_id in state.replicas
        )

    def directory_failed(self, partitions: Iterable[TopicPartition]) -> None:
        """Forget the roles of partitions whose log directory failed: the next LeaderAndIsr is answered by their logs."""
        for partition in partitions:
            self._hosted.pop(partition, None)

    def _staleness(self, body: Body) -> ErrorCode | None:
        if NO_EPOCH < body["broker_epoch"] < self._metadata.own().epoch:
            return ErrorCode.STALE_BROKER_EPOCH
        return ErrorCode.STALE_CONTROLLER_EPOCH if body["controller_epoch"] < self._controller_epoch else None

    def _refused(self, key: ApiKey, body: Body, error: ErrorCode) -> Body:
        """Build the answer; that of LeaderAndIsr repeats the error for each partition, as in Kafka."""
        partitions = [
            TopicPartition(topic["topic_name"], state["partition_index"])
            for topic in body["topic_states"]
            for state in topic["partition_states"]
        ]
        return _answer(error, dict.fromkeys(partitions, error) if key is ApiKey.LEADER_AND_ISR else {})

    # UpdateMetadata

    async def _update_metadata(self, body: Body) -> Body:
        names = [topic["topic_name"] for topic in body["topic_states"]]
        view = with_update(self._metadata.view, body, self._metadata.own())
        self._metadata.publish(view)
        await self._metadata.read_topics([name for name in names if name in view.topics])
        return _answer(ErrorCode.NONE, {})

    # LeaderAndIsr

    async def _leader_and_isr(self, body: Body) -> Body:
        await self._metadata.read_topics([topic["topic_name"] for topic in body["topic_states"]])
        errors: Errors = {}
        accepted: list[tuple[TopicPartition, UUID, PartitionView, bool]] = []
        for topic in body["topic_states"]:
            for entry in topic["partition_states"]:
                partition, state = TopicPartition(topic["topic_name"], entry["partition_index"]), partition_of(entry)
                error = errors[partition] = self._role_error(partition, topic["topic_id"], state)
                if error is ErrorCode.NONE:
                    accepted.append((partition, topic["topic_id"], state, entry["is_new"]))
        self._publish_roles(accepted)
        for partition, topic_id, state, is_new in accepted:
            errors[partition] = await self._take_role(partition, topic_id, state, is_new=is_new)
        return _answer(ErrorCode.NONE, errors)

    def _publish_roles(self, accepted: Iterable[tuple[TopicPartition, UUID, PartitionView, bool]]) -> None:
        """Let the metadata have the partitions before they take their roles."""
        of_topic: dict[tuple[str, UUID], dict[int, PartitionView]] = {}
        for partition, topic_id, state, _ in accepted:
            of_topic.setdefault((partition.topic, topic_id), {})[partition.partition] = state
        view = self._metadata.view
        for (name, topic_id), states in of_topic.items():
            view = with_partitions(view, name, topic_id, states) or view
        if view is not self._metadata.view:
            self._metadata.publish(with_topic_ids(view))

    def _role_error(self, partition: TopicPartition, topic_id: UUID, state: PartitionView) -> ErrorCode:
        """Return why a state is not applied, NONE if it is."""
        hosted = self._hosted.get(partition)
        if hosted is not None:
            if NO_TOPIC_ID not in {topic_id, hosted.topic_id} and topic_id != hosted.topic_id:
                return ErrorCode.INCONSISTENT_TOPIC_ID
            gets_id = hosted.topic_id == NO_TOPIC_ID != topic_id
            if state.leader_epoch < hosted.leader_epoch or (state.leader_epoch == hosted.leader_epoch and not gets_id):
                return ErrorCode.STALE_CONTROLLER_EPOCH
        if self._broker_id not in state.replicas:
            return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        return ErrorCode.NONE

    async def _take_role(
        self, partition: TopicPartition, topic_id: UUID, state: PartitionView, *, is_new: bool
    ) -> ErrorCode:
        take = self._side.lead if state.leader == self._broker_id else self._side.follow
        error = await take(partition, topic_id, state, is_new=is_new)
        if error is ErrorCode.NONE:
            known = self._hosted.get(partition)
            kept = known.topic_id if known is not None and topic_id == NO_TOPIC_ID else topic_id
            self._hosted[partition] = _Hosted(kept, state.leader_epoch)
        return error

    # StopReplica

    async def _stop_replica(self, body: Body) -> Body:
        errors: Errors = {}
        for topic in body["topic_states"]:
            for entry in topic["partition_states"]:
                partition = TopicPartition(topic["topic_name"], entry["partition_index"])
                errors[partition] = await self._stop(partition, entry["leader_epoch"], delete=entry["delete_partition"])
        return _answer(ErrorCode.NONE, errors)

    async def _stop(self, partition: TopicPartition, leader_epoch: int, *, delete: bool) -> ErrorCode:
        hosted = self._hosted.get(partition)
        if (
            hosted is not None
            and leader_epoch not in {EPOCH_DURING_DELETE, NO_LEADER_EPOCH}
            and leader_epoch < hosted.leader_epoch
        ):
            return ErrorCode.FENCED_LEADER_EPOCH
        self._hosted.pop(partition, None)
        return await self._side.stop(partition, delete=delete)


def _answer(error: ErrorCode, errors: Errors) -> Body:
    """Return the answer with the errors of partitions by the names of their topics."""
    return {
        "error_code": error,
        "partition_errors": [
            {"topic_name": partition.topic, "partition_index": partition.partition, "error_code": code}
            for partition, code in errors.items()
        ],
    }


def _by_topic_ids(request: Body, answer: Body) -> Body:
    """Return the answer to LeaderAndIsr with the ids of topics, as from version 5 on."""
    ids = {topic["topic_name"]: topic["topic_id"] for topic in request["topic_states"]}
    of_topic: dict[UUID, list[Body]] = {}
    for result in answer["partition_errors"]:
        error = {"partition_index": result["partition_index"], "error_code": result["error_code"]}
        of_topic.setdefault(ids[result["topic_name"]], []).append(error)
    return {
        "error_code": answer["error_code"],
        "topics": [{"topic_id": topic_id, "partition_errors": errors} for topic_id, errors in of_topic.items()],
    }

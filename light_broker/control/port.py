"""Interface between the broker and the control plane of its cluster.

    control plane ── set_view, lead, follow, stop, set_acls, set_credentials ──► BrokerSide (the process)
    broker ── alter_partition, allocate_producer_ids, create_topics, forward, controlled_shutdown ──► ControlPlane

All calls run on the event loop. The control plane calls in the order in which the cluster changed: a view first, then the partitions whose
role changed with it, so that a partition that begins to lead is already in the view.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Protocol
from uuid import UUID

from kafka_node.authorization.acls import Acls
from kafka_node.context import RequestContext
from kafka_node.versions import VersionRange
from kafka_wire import ApiKey, Body, ErrorCode
from kafka_wire.sasl.scram_keys import ScramCredential
from kafka_wire.topic_partition import TopicPartition
from light_broker.core.metadata_view import MetadataView, PartitionView


@dataclass(frozen=True, slots=True)
class IsrMember:
    """A replica that is to be in the ISR, with the epoch of its broker (KIP-903)."""

    broker_id: int
    broker_epoch: int


@dataclass(frozen=True, slots=True)
class IsrProposal:
    """ISR that a leader proposes (AlterPartition)."""

    topic_id: UUID
    partition: TopicPartition
    isr: tuple[IsrMember, ...]
    leader_epoch: int
    partition_epoch: int
    """The epoch that the proposal is based on."""


@dataclass(frozen=True, slots=True)
class IsrAnswer:
    """Answer to a proposal: the state of the partition, or an error with which nothing changed."""

    error: ErrorCode
    state: PartitionView | None = None


@dataclass(frozen=True, slots=True)
class ProducerIdBlock:
    """Producer ids that belong to this broker: `first` and the next ones, `count` in all."""

    first: int
    count: int


class ControlPlaneError(Exception):
    """The control plane did not carry out a call; `code` is the error for the client."""

    def __init__(self, code: ErrorCode, message: str) -> None:
        super().__init__(message)
        self.code = code


class BrokerSide(Protocol):
    """Interface of the broker for its control plane."""

    def set_view(self, view: MetadataView) -> None:
        """Replace the metadata. Settings of logs and of the broker follow its configs."""

    async def lead(
        self, partition: TopicPartition, topic_id: UUID, state: PartitionView, *, is_new: bool = False
    ) -> ErrorCode:
        """Lead a partition, or continue to lead it in another state. Return NONE, or why the broker does not lead it.

        `is_new`: the partition was just created, so that no directory can have a log of it yet (LeaderAndIsr's IsNew).
        """

    async def follow(
        self, partition: TopicPartition, topic_id: UUID, state: PartitionView, *, is_new: bool = False
    ) -> ErrorCode:
        """Follow the leader of a partition; without a leader, only keep its log. Return NONE, or why the broker does not follow it."""

    async def stop(self, partition: TopicPartition, *, delete: bool) -> ErrorCode:
        """Stop serving a partition, and delete its log if `delete`. Return NONE, or why the log is not deleted."""

    def set_acls(self, acls: Acls) -> None:
        """Replace the ACLs. Until the first call, only super users get a response."""

    def set_credentials(self, credentials: Mapping[str, Mapping[str, ScramCredential]]) -> None:
        """Replace the SCRAM credentials, by mechanism and user."""


class ControlPlane(Protocol):
    """Interface of a control plane for the broker."""

    @property
    def cluster_id(self) -> str:
        """Id of the cluster."""

    @property
    def of_brokers(self) -> Mapping[ApiKey, VersionRange]:
        """Requests of a controller that `forward` answers too, on the listener of brokers. They come before `start` has returned."""

    @property
    def forwarded(self) -> Mapping[ApiKey, VersionRange]:
        """Requests of clients that the control plane answers (`forward`), with the versions that it knows."""

    @property
    def broker_epoch(self) -> int:
        """Epoch of this process's registration, which its fetches from leaders carry (KIP-903).

        Not that of the view, which may still be its predecessor's.
        """

    async def start(self, broker: BrokerSide) -> None:
        """Register the broker and deliver the metadata. Returns when the broker may serve clients. Raises ControlPlaneError."""

    async def failed(self) -> None:
        """Wait until the broker must not go on, since it no longer has the state of the cluster. Raises ControlPlaneError then."""

    async def close(self) -> None:
        """End all connections and tasks. May be called twice."""

    async def controlled_shutdown(self) -> None:
        """Move the leaders of this broker to others, before it stops. Raises ControlPlaneError."""

    async def log_directory_failed(self, directory_id: UUID | None, partitions: Iterable[TopicPartition]) -> None:
        """Notify the controllers of a log directory that has failed, with the partitions in it."""

    async def alter_partition(self, proposal: IsrProposal) -> IsrAnswer:
        """Propose the ISR of a partition that this broker leads. Raises ControlPlaneError when the outcome is unknown."""

    async def allocate_producer_ids(self) -> ProducerIdBlock:
        """Return a block of producer ids that no other broker has or will have. Raises ControlPlaneError."""

    async def create_topics(self, request: Body) -> Body:
        """Answer a CreateTopics request of this broker itself, for automatic creation. Raises ControlPlaneError.

        When it returns, the view has the topics that were created.
        """

    async def forward(self, key: ApiKey, context: RequestContext, body: Body) -> Body:
        """Answer a request of a client as its principal, rights included. Raises ControlPlaneError."""

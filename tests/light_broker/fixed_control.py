"""A control plane for tests: metadata that the test sets, and calls that it records."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from uuid import UUID

from kafka_node.context import RequestContext
from kafka_node.versions import VersionRange
from kafka_wire import ApiKey, Body, ErrorCode
from kafka_wire.topic_partition import TopicPartition
from light_broker.control.port import BrokerSide, ControlPlaneError, IsrAnswer, IsrProposal, ProducerIdBlock
from light_broker.core.metadata_view import BrokerView, Endpoint, MetadataView, PartitionView, TopicView

CLUSTER_ID = "Some-Cluster-Id-123456"
LISTENER = "PLAINTEXT"
BLOCK_SIZE = 1_000


def partition_view(
    leader: int = 1, replicas: tuple[int, ...] = (1,), isr: tuple[int, ...] | None = None, leader_epoch: int = 0
) -> PartitionView:
    """Return a partition; by default all replicas are in the ISR."""
    return PartitionView(replicas, replicas if isr is None else isr, leader, leader_epoch, partition_epoch=0)


def view_of(*topics: TopicView, brokers: tuple[int, ...] = (1,)) -> MetadataView:
    """Return metadata with some topics, and brokers on ports of their own."""
    return MetadataView(
        CLUSTER_ID,
        controller_id=brokers[0],
        brokers={
            broker: BrokerView(broker, epoch=broker, endpoints={LISTENER: Endpoint("broker.example", 9000 + broker)})
            for broker in brokers
        },
        topics={topic.name: topic for topic in topics},
        topic_names_by_id={topic.id: topic.name for topic in topics},
    )


def topic_view(name: str, *partitions: PartitionView, number: int = 1) -> TopicView:
    """Return a topic whose id is `number`; without partitions it has one."""
    return TopicView(name, UUID(int=number), partitions or (partition_view(),))


@dataclass(eq=False)
class FixedControl:
    """Implements ControlPlane. Each proposal of an ISR is accepted unless `isr_error` is set."""

    view: MetadataView = field(default_factory=view_of)
    forwarded: Mapping[ApiKey, VersionRange] = field(default_factory=dict)
    isr_error: ErrorCode = ErrorCode.NONE
    proposals: list[IsrProposal] = field(default_factory=list)
    requests: list[tuple[ApiKey, RequestContext, Body]] = field(default_factory=list)
    answers: dict[ApiKey, Body] = field(default_factory=dict)
    """Answers to forwarded requests."""
    blocks: int = 0
    broker_epoch: int = 1

    async def start(self, broker: BrokerSide) -> None:
        """Deliver the view, and let the broker lead or follow the partitions that it has a replica of."""
        broker.set_view(self.view)
        for topic in self.view.topics.values():
            for number, state in enumerate(topic.partitions):
                named = TopicPartition(topic.name, number)
                if state.leader in self.view.brokers:
                    await broker.lead(named, topic.id, state)
                else:
                    await broker.follow(named, topic.id, state)

    async def close(self) -> None:
        """End nothing."""

    async def controlled_shutdown(self) -> None:
        """Move nothing."""

    async def alter_partition(self, proposal: IsrProposal) -> IsrAnswer:
        """Record a proposal, and accept it with the next partition epoch."""
        self.proposals.append(proposal)
        state = self.view.partition(proposal.partition)
        if self.isr_error is not ErrorCode.NONE or state is None:
            return IsrAnswer(self.isr_error or ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        isr = tuple(member.broker_id for member in proposal.isr)
        return IsrAnswer(
            ErrorCode.NONE,
            PartitionView(state.replicas, isr, state.leader, state.leader_epoch, proposal.partition_epoch + 1),
        )

    async def allocate_producer_ids(self) -> ProducerIdBlock:
        """Return the next block of a thousand."""
        self.blocks += 1
        return ProducerIdBlock((self.blocks - 1) * BLOCK_SIZE, BLOCK_SIZE)

    async def create_topics(self, request: Body) -> Body:
        """Answer as for a forwarded request."""
        return await self.forward(ApiKey.CREATE_TOPICS, RequestContext(LISTENER, None, "127.0.0.1", 0, 7), request)

    async def forward(self, key: ApiKey, context: RequestContext, body: Body) -> Body:
        """Record a request, and answer it as the test has set."""
        self.requests.append((key, context, body))
        if key not in self.answers:
            raise ControlPlaneError(ErrorCode.NOT_CONTROLLER, "there is no controller")
        return self.answers[key]

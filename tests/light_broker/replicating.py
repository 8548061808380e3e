"""Several brokers in the process of the test, with real logs and connections, and one controller that the test directs."""

import asyncio
import ssl
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from uuid import UUID

from kafka_log.files.partition_settings import PartitionSettings
from kafka_node.configs.layered_settings import Settings
from kafka_wire import ApiKey, ErrorCode
from kafka_wire.net.client import Node, NodeSettings
from kafka_wire.net.server import SaslServer, Server, serve
from kafka_wire.topic_partition import TopicPartition
from light_broker.control.port import ControlPlaneError, IsrAnswer, IsrProposal
from light_broker.core.fetch_sessions import FetchSessions
from light_broker.core.groups.settings import GroupSettings
from light_broker.core.log_jobs import LogManagerSettings
from light_broker.core.metadata_view import BrokerView, Endpoint, MetadataView, PartitionView, TopicView
from light_broker.core.partition import IsrRules
from light_broker.core.replica_fetch import ReplicaFetchSettings
from light_broker.shell.broker import Broker
from light_broker.shell.dispatch import Dispatch
from light_broker.shell.groups.coordinators import GroupCoordinators
from light_broker.shell.logs.manager import LogManager
from light_broker.shell.process import AUTHENTICATION
from light_broker.shell.producer_ids import ProducerIds
from light_broker.shell.replicas.fetcher import FetcherContext
from light_broker.shell.replicas.fetchers import ReplicaFetchers, fetcher_settings
from light_broker.shell.replicas.manager import ReplicaManager
from tests.light_broker.fixed_control import CLUSTER_ID, LISTENER, FixedControl
from tests.light_broker.hosting import with_state

HOST = "127.0.0.1"
TOPIC = "orders"
TOPIC_ID = UUID(int=1)
ORDERS = TopicPartition(TOPIC, 0)
TIMEOUT_MS = 20_000
TIMEOUT_S = 20
FETCHING = ReplicaFetchSettings(max_wait_ms=50, backoff_ms=10)
"""Short waits, so that a test is fast; the outcome does not depend on them."""


@dataclass(eq=False)
class Controller:
    """The controller of the cluster: it has one partition, and accepts each ISR of its leader with current epochs."""

    rules: IsrRules = field(default_factory=IsrRules)
    state: PartitionView = field(default_factory=lambda: PartitionView((1, 2, 3), (1, 2, 3), 1, 0, 0))
    brokers: dict[int, "RunningBroker"] = field(default_factory=dict)
    epochs: dict[int, int] = field(default_factory=dict)
    proposals: list[IsrProposal] = field(default_factory=list)
    topic_id: UUID = TOPIC_ID

    @property
    def view(self) -> MetadataView:
        """The metadata of the live brokers."""
        topic = TopicView(TOPIC, self.topic_id, (self.state,))
        return MetadataView(
            CLUSTER_ID,
            brokers={
                broker.id: BrokerView(broker.id, broker.epoch, endpoints={LISTENER: Endpoint(HOST, broker.server.port)})
                for broker in self.brokers.values()
            },
            topics={TOPIC: topic},
            topic_names_by_id={self.topic_id: TOPIC},
        )

    async def publish(self, *ids: int) -> None:
        """Send the metadata to some brokers, to all by default: the view first, then the role."""
        for broker_id in ids or tuple(self.brokers):
            running = self.brokers[broker_id]
            running.broker.view = self.view
            call = running.replicas.lead if self.state.leader == broker_id else running.replicas.follow
            assert await call(ORDERS, self.topic_id, self.state) is ErrorCode.NONE

    async def elect(self, leader: int, isr: tuple[int, ...] | None = None, *ids: int) -> None:
        """Elect a leader in the next epoch, and publish it."""
        state = self.state
        self.state = replace(
            state,
            leader=leader,
            isr=state.isr if isr is None else isr,
            leader_epoch=state.leader_epoch + 1,
            partition_epoch=state.partition_epoch + 1,
        )
        await self.publish(*ids)

    async def alter(self, proposal: IsrProposal) -> IsrAnswer:
        """Answer an AlterPartition request. Source: ReplicationControlManager.validateAlterPartitionData."""
        self.proposals.append(proposal)
        state = self.state
        if proposal.leader_epoch != state.leader_epoch:
            return IsrAnswer(ErrorCode.FENCED_LEADER_EPOCH)
        if proposal.partition_epoch != state.partition_epoch:
            return IsrAnswer(ErrorCode.INVALID_UPDATE_VERSION)
        current = {broker.id: broker.epoch for broker in self.brokers.values()}
        if any(current.get(member.broker_id) != member.broker_epoch for member in proposal.isr):
            return IsrAnswer(ErrorCode.INELIGIBLE_REPLICA)
        isr = tuple(member.broker_id for member in proposal.isr)
        self.state = replace(state, isr=isr, partition_epoch=state.partition_epoch + 1)
        for each in self.brokers.values():
            each.broker.view = with_state(each.broker.view, ORDERS, self.state)
        return IsrAnswer(ErrorCode.NONE, self.state)


@dataclass(frozen=True)
class Security:
    """TLS and SASL of the listener of brokers, and of connections to it."""

    client: NodeSettings = field(default_factory=lambda: NodeSettings(client_id="test"))
    tls: ssl.SSLContext | None = None
    sasl: SaslServer | None = None


class _Control(FixedControl):
    """The control plane of one broker."""

    def __init__(self, controller: Controller, broker_epoch: int) -> None:
        super().__init__(broker_epoch=broker_epoch)
        self.controller = controller

    async def alter_partition(self, proposal: IsrProposal) -> IsrAnswer:
        """Ask the controller."""
        if not self.controller.brokers:
            raise ControlPlaneError(ErrorCode.NOT_CONTROLLER, "the cluster is being stopped")
        return await self.controller.alter(proposal)


@dataclass(eq=False)
class RunningBroker:
    """One broker."""

    id: int
    epoch: int
    broker: Broker
    server: Server
    fetchers: ReplicaFetchers
    folder: Path

    @property
    def replicas(self) -> ReplicaManager:
        """Its replica manager."""
        return self.broker.replicas

    @property
    def end_offset(self) -> int:
        """End of its log."""
        return self.replicas.hosted()[ORDERS].log.end_offset

    def log_bytes(self) -> bytes:
        """Return all batches in its log, segment by segment, from the disk."""
        files = sorted((self.folder / str(ORDERS)).glob("*.log"))
        return b"".join(file.read_bytes() for file in files)

    async def stop(self) -> None:
        """Close connections, then the logs."""
        await self.fetchers.close()
        await self.server.close(0)
        await self.broker.groups.close()
        await self.replicas.close()
        await self.broker.logs.close()


class Cluster:
    """Brokers in folders below one."""

    def __init__(
        self,
        folder: Path,
        controller: Controller,
        fetching: ReplicaFetchSettings = FETCHING,
        log_settings: PartitionSettings | None = None,
        security: Security | None = None,
    ) -> None:
        self.security = security or Security()
        self.folder = folder
        self.controller = controller
        self.fetching = fetching
        self.log_settings = log_settings or PartitionSettings()

    def __getitem__(self, broker_id: int) -> RunningBroker:
        return self.controller.brokers[broker_id]

    async def start(self, broker_id: int) -> RunningBroker:
        """Start a broker with the next broker epoch. It knows nothing until the controller publishes."""
        controller = self.controller
        epoch = controller.epochs[broker_id] = controller.epochs.get(broker_id, 100 * broker_id) + 1
        control = _Control(controller, epoch)
        current: list[Broker] = []
        folder = self.folder / f"broker-{broker_id}"
        logs = LogManager(
            [folder],
            LogManagerSettings(),
            cluster_id=CLUSTER_ID,
            node_id=broker_id,
            partition_settings=lambda _: self.log_settings,
            on_failed_directory=lambda failed: current[0].replicas.log_directory_failed(failed.partitions),
            high_watermarks=lambda: current[0].replicas.high_watermarks() if current else {},
        )
        replicas = ReplicaManager(
            broker_id, logs, control, view=lambda: current[0].view, isr_rules=lambda _: controller.rules
        )
        broker = Broker(
            settings=Settings(broker_id),
            view=MetadataView(CLUSTER_ID),
            control=control,
            logs=logs,
            replicas=replicas,
            producer_ids=ProducerIds(control),
            fetch_sessions=FetchSessions(),
            groups=GroupCoordinators(replicas, GroupSettings(), view=lambda: current[0].view),
        )
        current.append(broker)
        await logs.open_all()
        started = asyncio.Event()
        started.set()
        dispatch = Dispatch(
            broker, LISTENER, started, authentication=AUTHENTICATION if self.security.sasl is not None else {}
        )
        server = await serve(dispatch.handle, HOST, 0, ssl=self.security.tls, sasl=self.security.sasl)
        fetchers = ReplicaFetchers(
            FetcherContext(
                broker_id=broker_id,
                broker_epoch=lambda: epoch,
                settings=lambda: self.fetching,
                address_of=lambda leader: (
                    known.endpoints.get(LISTENER) if (known := broker.view.brokers.get(leader)) else None
                ),
                connection=fetcher_settings(self.security.client, broker.settings),
                writes=replicas.follower_writes,
                now_ms=replicas.now_ms,
            )
        )
        replicas.replicate_by(fetchers)
        running = controller.brokers[broker_id] = RunningBroker(broker_id, epoch, broker, server, fetchers, folder)
        return running

    async def stop(self, broker_id: int, *, killed: bool = False) -> None:
        """Stop a broker; a killed one leaves no mark of a clean shutdown."""
        running = self.controller.brokers.pop(broker_id)
        await running.stop()
        if killed:
            (running.folder / ".kafka_cleanshutdown").unlink()

    async def produce(self, data: bytes, *, leader: int | None = None, acks: int = -1) -> ErrorCode:
        """Produce one batch over a connection, by default to the leader."""
        running = self[self.controller.state.leader if leader is None else leader]
        partition = {"index": 0, "records": data}
        body = {
            "acks": acks,
            "timeout_ms": TIMEOUT_MS,
            "topic_data": [{"name": TOPIC, "partition_data": [partition]}],
        }
        node = Node(HOST, running.server.port, self.security.client)
        try:
            answer = await node.call(ApiKey.PRODUCE, body, version=9, timeout_ms=TIMEOUT_MS)
        finally:
            await node.close()
        return ErrorCode.of(answer["responses"][0]["partition_responses"][0]["error_code"])

    async def until_equal(self) -> None:
        """Wait until all live brokers have the leader's log and high watermark, and are in the ISR."""
        await until(self._is_equal)

    def _is_equal(self) -> bool:
        brokers = self.controller.brokers.values()
        ends = {(broker.end_offset, broker.replicas.high_watermark(ORDERS)) for broker in brokers}
        in_isr = set(self.controller.state.isr) == {broker.id for broker in brokers}
        return len(ends) == 1 and len(set(next(iter(ends)))) == 1 and in_isr

    def logs(self) -> Mapping[int, bytes]:
        """Return the logs of the live brokers."""
        return {broker.id: broker.log_bytes() for broker in self.controller.brokers.values()}


async def until(condition: Callable[[], bool]) -> None:
    """Wait until a condition holds."""
    async with asyncio.timeout(TIMEOUT_S):
        while not condition():  # noqa: ASYNC110 - the condition is that of several brokers
            await asyncio.sleep(0.001)


@asynccontextmanager
async def replicating(
    folder: Path,
    *,
    brokers: tuple[int, ...] = (1, 2, 3),
    rules: IsrRules | None = None,
    fetching: ReplicaFetchSettings = FETCHING,
    log_settings: PartitionSettings | None = None,
    state: PartitionView | None = None,
    topic_id: UUID = TOPIC_ID,
    security: Security | None = None,
) -> AsyncIterator[Cluster]:
    """Yield brokers with replicas of `orders`, which broker 1 leads unless `state` differs."""
    controller = Controller(
        rules or IsrRules(), state or PartitionView(brokers, brokers, brokers[0], 0, 0), topic_id=topic_id
    )
    cluster = Cluster(folder, controller, fetching, log_settings, security)
    try:
        for broker_id in brokers:
            await cluster.start(broker_id)
        await controller.publish()
        yield cluster
    finally:
        running, controller.brokers = list(controller.brokers.values()), {}
        for process in running:
            await process.stop()

"""A controller with its real loop and store over an in-memory ZooKeeper, and channels that keep the requests."""

import asyncio
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any
from uuid import NAMESPACE_DNS, uuid5

import pytest

from controller_core.model import Broker, Cluster, Endpoint, Replicas, TopicPartition
from controller_core.model.decision import Decision, Send, SendStopReplica
from controller_core.model.events import AlterPartition, CreateTopics, Event, IsrChange, NewTopic
from controller_core.model.settings import TopicDeletion
from controller_core.model.zookeeper_changes import BrokersObserved
from controller_core.model.zookeeper_events import LeaderAndIsrAnswered, StopReplicaAnswered
from controller_core.shell import controller as controller_module
from controller_core.shell.brokers.answers import Retry
from controller_core.shell.brokers.requests import OwnAddress
from controller_core.shell.controller import Controller
from controller_core.shell.metrics import Metrics
from controller_core.shell.mode import Mode
from controller_core.shell.zookeeper.sessions import ZOOKEEPER_MODE
from controller_core.shell.zookeeper.store import Store
from kafka_zookeeper import paths
from kafka_zookeeper.formats.brokers import BrokerRegistration, encode_broker
from kafka_zookeeper.formats.brokers import Endpoint as WrittenEndpoint
from tests.controller_core.shell.zookeeper.fake_zookeeper import FakeZooKeeper
from tests.controller_core.shell.zookeeper.vocabulary import tp

CONTROLLER, CONTROLLER_EPOCH = 1000, 9
INTERNAL = "INTERNAL"


class FakeChannels:
    """Keeps requests; answers when a test asks for it."""

    def __init__(
        self,
        cluster: Cluster,
        own: OwnAddress,
        *,
        mode: Mode,
        answered: Callable[[StopReplicaAnswered | LeaderAndIsrAnswered], None],
        refused: Callable[[Retry], None],
        deposed: Callable[[], None],
        **_others: Any,
    ) -> None:
        self.cluster, self.own, self.mode = cluster, own, mode
        self.answered, self.refused, self.deposed = answered, refused, deposed
        self.sent: list[Send] = []
        self.followed = 0
        self.closed = False

    def follow(self) -> None:
        """Count the call."""
        self.followed += 1

    async def send(self, sends: Iterable[Send]) -> None:
        """Keep the requests."""
        self.sent += sends

    def deletions(self) -> list[SendStopReplica]:
        """Requests to delete replicas."""
        return [send for send in self.sent if isinstance(send, SendStopReplica) and send.delete]

    def answer_deletions(self) -> None:
        """Answer all requests to delete replicas with success."""
        for send in self.deletions():
            epochs = dict(zip(send.partitions, send.leader_epochs, strict=True))
            self.answered(StopReplicaAnswered(send.broker, send.partitions, {}, epochs))
            self.sent.remove(send)

    async def idle(self, _timeout_ms: int, _silence_ms: int | None = None) -> bool:
        """All requests are answered."""
        return True

    def queued(self) -> dict[int, int]:
        """No request waits."""
        return {}

    async def close(self) -> None:
        """Record the call."""
        self.closed = True


class Term:
    """One term, in a cluster with brokers and without topics."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *broker_ids: int) -> None:
        monkeypatch.setattr(controller_module, "Channels", FakeChannels)
        self.server = FakeZooKeeper()
        for parent in (paths.TOPICS, paths.BROKER_IDS, "/config/topics", paths.DELETE_TOPICS):
            self.server.put(parent)
        self.server.put(paths.CONTROLLER_EPOCH, str(CONTROLLER_EPOCH).encode())
        self.session = self.server.session()
        self.cluster = Cluster(CONTROLLER, CONTROLLER_EPOCH)
        self.cluster.topic_deletion = TopicDeletion.ENABLED  # as reported by brokers
        self.metrics = Metrics()
        own = OwnAddress((Endpoint(INTERNAL, "steward", 9990, "PLAINTEXT"),), INTERNAL)
        self.store = Store(self.session, self.server.at(paths.CONTROLLER_EPOCH).version)
        self.controller = Controller(self.cluster, self.store, own, "id", None, self.metrics, mode=ZOOKEEPER_MODE)
        self.brokers_are(*broker_ids)

    @property
    def channels(self) -> FakeChannels:
        """The fake channels."""
        channels = self.controller._channels
        assert isinstance(channels, FakeChannels)
        return channels

    def decide_with(self, decide: Callable[[Cluster, Event], Decision[Any]]) -> None:
        """Replace the mode's decisions."""
        self.controller._mode = replace(self.controller._mode, decide=decide)

    def brokers_are(self, *broker_ids: int) -> None:
        """Register these brokers, in memory and in ZooKeeper."""
        for broker_id in broker_ids:
            self.register(broker_id)
        found = (self.broker(broker_id) for broker_id in broker_ids)
        self.controller._apply(BrokersObserved(tuple(found)))

    def register(self, broker_id: int, port: int = 9092, listener: str = INTERNAL) -> None:
        """Write a broker's registration, over an existing one."""
        endpoint = WrittenEndpoint(listener, f"host{broker_id}", port, "PLAINTEXT")
        self.server.put(paths.broker(broker_id), encode_broker(BrokerRegistration(broker_id, (endpoint,))), owner=5)

    def broker(self, broker_id: int) -> Broker:
        """The broker, as it is registered."""
        epoch = self.server.at(paths.broker(broker_id)).czxid
        return Broker(broker_id, epoch, (Endpoint(INTERNAL, f"host{broker_id}", 9092, "PLAINTEXT"),))

    async def create(self, name: str, *assignment: Replicas) -> Any:
        """Create a topic with this assignment; returns the result."""
        results = await self.controller.submit(CreateTopics((new_topic(name, *assignment),)))
        return results[name]

    def isr_by(self, broker: str, isr: Sequence[int]) -> None:
        """Write the ISR into the znode, as a broker below 2.7 does (protocol notes, Z51)."""
        path = paths.partition_state(*tp(broker))
        data = self.server.at(path).data
        assert data is not None
        head, _, _ = data.partition(b'"isr"')
        self.server.put(path, head + b'"isr":[%s]}' % ",".join(map(str, isr)).encode())

    def state(self, partition: str) -> tuple[int, int, Replicas]:
        """Leader, leader epoch and ISR; memory and znode must agree."""
        columns, row = self.cluster.columns, self.cluster.row_of(*tp(partition))
        assert row is not None
        leader, epoch, isr = int(columns.leader[row]), int(columns.leader_epoch[row]), columns.isr_of(row)
        znode = self.server.at(paths.partition_state(*tp(partition)))
        text = f'"leader":{leader},"version":1,"leader_epoch":{epoch},"isr":[{",".join(map(str, isr))}]}}'
        assert znode.data is not None
        assert znode.data.decode().endswith(text), "memory and znode differ"
        assert znode.version == columns.partition_epoch[row], "the version in memory differs from the znode's"
        return leader, epoch, isr


def new_topic(name: str, *assignment: Replicas) -> NewTopic:
    """A topic of a request, with an id."""
    return NewTopic(name, uuid5(NAMESPACE_DNS, name), assignment=dict(enumerate(assignment)))


def names(*partitions: str) -> tuple[TopicPartition, ...]:
    """Parse `orders-0`."""
    return tuple(map(tp, partitions))


async def settled(steps: int = 80) -> None:
    """Let all runnable tasks run."""
    for _ in range(steps):
        await asyncio.sleep(0)


def isr_request(term: Term, partition: str, isr: tuple[int, ...]) -> AlterPartition:
    """The leader's request for an ISR, with the epochs that it knows."""
    row = term.cluster.row_of(*tp(partition))
    assert row is not None
    columns = term.cluster.columns
    leader = int(columns.leader[row])
    change = IsrChange(tp(partition), int(columns.leader_epoch[row]), isr, int(columns.partition_epoch[row]))
    return AlterPartition(leader, term.cluster.brokers[leader].epoch, (change,))


def failing_decisions(kind: type[Event]) -> Callable[[Cluster, Event], Decision[Any]]:
    """Decide as in ZooKeeper mode, and fail for one kind of event."""

    def decide_or_fail(cluster: Cluster, event: Event) -> Decision[Any]:
        assert not isinstance(event, kind), "C2: an ISR outside its replicas"
        return ZOOKEEPER_MODE.decide(cluster, event)

    return decide_or_fail

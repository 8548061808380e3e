"""Channels to fake brokers on real sockets, in a cluster of two."""

from collections.abc import Awaitable, Callable
from typing import Any

from controller_core.model import Broker, Cluster, TopicPartition
from controller_core.model.decision import Send, SendStopReplica
from controller_core.model.zookeeper_changes import BrokersObserved
from controller_core.shell.brokers.answers import Retry
from controller_core.shell.brokers.channels import Channels
from controller_core.shell.pace import Pace
from controller_core.shell.zookeeper.sessions import ZOOKEEPER_MODE
from controller_core.zookeeper_mode.transitions import apply
from kafka_wire import ApiKey
from tests.controller_core.shell.brokers.clusters import OWN, broker, cluster_of
from tests.controller_core.shell.brokers.fake_broker import FakeBroker

ORDERS = ("topic orders id=7 0=1,2 1=2,1", "known orders-0=1/4/1,2/6 orders-1=2/0/2,1/0")
LEAD, META, STOP = ApiKey.LEADER_AND_ISR, ApiKey.UPDATE_METADATA, ApiKey.STOP_REPLICA
PATIENCE_MS = 60_000


class World:
    """Brokers 1 and 2 of a cluster, and the channels to them."""

    def __init__(self, *brokers: FakeBroker) -> None:
        self.brokers = brokers
        self.cluster: Cluster = cluster_of(*self.registered(), changes=ORDERS)
        self.answers: list[Any] = []
        self.deposed = 0
        self.retries: list[Retry] = []
        self.channels = Channels(
            self.cluster,
            OWN,
            mode=ZOOKEEPER_MODE,
            answered=self.answers.append,
            refused=self.retries.append,
            deposed=self._depose,
            pace=Pace(),
        )
        self.channels.follow()

    def registered(self, **changed: int) -> list[Broker]:
        """The brokers' registrations, the first one with changes."""
        found = [broker(number + 1, port=listener.port) for number, listener in enumerate(self.brokers)]
        return [
            broker(1, port=changed.get("port", found[0].endpoints[1].port), epoch=changed.get("epoch", 0)),
            *found[1:],
        ]

    def observe(self, brokers: list[Broker]) -> None:
        """Apply these registrations."""
        apply(self.cluster, BrokersObserved(tuple(brokers)))
        self.channels.follow()

    async def send(self, *sends: Send) -> None:
        """Send requests."""
        await self.channels.send(sends)

    def _depose(self) -> None:
        self.deposed += 1


Start = Callable[[], Awaitable[FakeBroker]]


def stop(to: int, *partitions: int, delete: bool = True) -> SendStopReplica:
    """A StopReplica of partitions of orders."""
    return SendStopReplica(
        to, tuple(TopicPartition("orders", partition) for partition in partitions), (-2,) * len(partitions), delete
    )

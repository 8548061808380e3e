"""A Kafka cluster: one ZooKeeper server and N brokers, started together.

Without a Steward controller, the brokers elect one of them as Kafka does. With one that was started first, they follow it.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from lab.faults.broker_proxy import BrokerProxy
from lab.peers.kafka import CLIENT, HEAP, SESSION_TIMEOUT_MS, KafkaBroker
from lab.peers.live_brokers import alive
from lab.peers.zookeeper import ZooKeeperServer
from lab.processes.folder import lab_folder
from lab.processes.waiting import wait_until

INTERNAL_TOPIC_REPLICATION = 3
"""Kafka's default; a smaller cluster lowers it to its size so that groups and transactions work."""

CONTROLLER_TIMEOUT_S = 60.0
"""Twenty times the session time-out after which brokers elect a new controller by themselves."""

IN_SYNC_TIMEOUT_S = 60.0
"""A restarted broker is back in the ISR within seconds of its registration."""


class KafkaCluster:
    """Brokers by id and one ZooKeeper server, which ends with the cluster when the cluster started it (`owns_zookeeper`)."""

    def __init__(
        self, zookeeper: ZooKeeperServer, folder: Path, *, chroot: str = "", owns_zookeeper: bool = False
    ) -> None:
        self.zookeeper = zookeeper
        self.folder = folder
        self.chroot = chroot
        self.brokers: dict[int, KafkaBroker] = {}
        self._owns_zookeeper = owns_zookeeper

    @property
    def zookeeper_connect(self) -> str:
        """The connect string, with the chroot, for brokers and controllers."""
        return self.zookeeper.connect(self.chroot)

    def broker(self, broker_id: int) -> KafkaBroker:
        """Return the broker with this id."""
        return self.brokers[broker_id]

    def add_broker(
        self,
        broker_id: int,
        *,
        rack: str | None = None,
        session_timeout_ms: int = SESSION_TIMEOUT_MS,
        inter_broker_protocol_version: str | None = None,
        settings: Mapping[str, str] | None = None,
        heap: str = HEAP,
        log_dirs: int = 1,
        proxy: BrokerProxy | None = None,
    ) -> KafkaBroker:
        """Add a broker without starting it."""
        self.brokers[broker_id] = KafkaBroker(
            broker_id,
            self.zookeeper,
            self.folder,
            chroot=self.chroot,
            rack=rack,
            session_timeout_ms=session_timeout_ms,
            inter_broker_protocol_version=inter_broker_protocol_version,
            settings=settings,
            heap=heap,
            log_dirs=log_dirs,
            proxy=proxy,
        )
        return self.brokers[broker_id]

    def start_brokers(self, broker_ids: Sequence[int] | None = None) -> None:
        """Start these brokers (all by default) in parallel and wait until each is ready."""
        chosen = [self.brokers[broker_id] for broker_id in (self.brokers if broker_ids is None else broker_ids)]
        for broker in chosen:
            broker.launch()
        for broker in chosen:
            broker.wait_until_ready()

    def bootstrap(self, listener: str = CLIENT) -> str:
        """Bootstrap servers of a listener, all brokers, comma-separated."""
        return ",".join(broker.address(listener) for broker in self.brokers.values())

    def controller_id(self) -> int | None:
        """Return the id in `/controller`, None when there is no controller."""
        data = self.zookeeper.read(f"{self.chroot}/controller")
        return None if data is None else int(json.loads(data)["brokerid"])

    def wait_for_controller(
        self, controller_id: int | None = None, *, timeout_s: float = CONTROLLER_TIMEOUT_S
    ) -> float:
        """Return the seconds until this id (any id by default) is the controller."""

        def elected() -> bool:
            current = self.controller_id()
            return current is not None and controller_id in (None, current)

        what = "a controller is elected" if controller_id is None else f"{controller_id} is the controller"
        return wait_until(elected, timeout_s=timeout_s, what=what)

    def wait_until_known(self, *others: int) -> None:
        """Wait until every broker knows all brokers and `others` from the controller.

        An earlier request of a client would wait until it times out: librdkafka looks up the controller once, and then waits for a
        change of the brokers.
        """
        expected = {*self.brokers, *others}
        wait_until(
            lambda: all(expected <= alive(broker.address()) for broker in self.brokers.values()),
            timeout_s=CONTROLLER_TIMEOUT_S,
            what=f"every broker knows {sorted(expected)}",
        )

    def assignment(self, topic: str) -> dict[int, list[int]]:
        """Return the replicas of each partition as ZooKeeper has them, empty for an unknown topic."""
        data = self.zookeeper.read(f"{self.chroot}/brokers/topics/{topic}")
        partitions = {} if data is None else json.loads(data)["partitions"]
        return {int(partition): replicas for partition, replicas in sorted(partitions.items())}

    def partition_state(self, topic: str, partition: int) -> dict[str, Any] | None:
        """Return the state znode of a partition (`leader`, `leader_epoch`, `isr`, ...), None when there is none yet."""
        data = self.zookeeper.read(f"{self.chroot}/brokers/topics/{topic}/partitions/{partition}/state")
        return None if data is None else dict(json.loads(data))

    def wait_until_in_sync(self, topic: str, *, timeout_s: float = IN_SYNC_TIMEOUT_S) -> float:
        """Return the seconds until every replica of every partition of `topic` was in the ISR and each had a leader."""

        def in_sync() -> bool:
            assignment = self.assignment(topic)
            states = {partition: self.partition_state(topic, partition) for partition in assignment}
            return bool(assignment) and all(
                state is not None and state["leader"] >= 0 and set(state["isr"]) == set(assignment[partition])
                for partition, state in states.items()
            )

        return wait_until(in_sync, timeout_s=timeout_s, what=f"all replicas of {topic} in sync")

    def close(self) -> None:
        """End all brokers at once, then ZooKeeper if the cluster started it."""
        for broker in self.brokers.values():
            broker.close()
        if self._owns_zookeeper:
            self.zookeeper.close()


@contextlib.contextmanager
def kafka_cluster(
    broker_ids: Sequence[int] = (1, 2, 3),
    *,
    start: bool = True,
    folder: Path | None = None,
    zookeeper: ZooKeeperServer | None = None,
    chroot: str = "",
    racks: Mapping[int, str] | None = None,
    session_timeout_ms: int = SESSION_TIMEOUT_MS,
    inter_broker_protocol_version: str | None = None,
    settings: Mapping[str, str] | None = None,
    heap: str = HEAP,
    log_dirs: int = 1,
    settings_of: Mapping[int, Mapping[str, str]] | None = None,
    proxies: Mapping[int, BrokerProxy] | None = None,
) -> Iterator[KafkaCluster]:
    """Yield a cluster with these brokers; everything ends with the block.

    Started brokers know each other and their controller. `start=False` leaves the start to `start_brokers`, for a controller that
    must run first. A given `zookeeper` is used and keeps running. `settings_of` are further settings of single brokers, and `proxies`
    are proxies in front of single brokers.
    """
    replication = str(min(INTERNAL_TOPIC_REPLICATION, len(broker_ids)))
    common = {
        "offsets.topic.replication.factor": replication,
        "transaction.state.log.replication.factor": replication,
        "transaction.state.log.min.isr": str(min(2, len(broker_ids))),
        **(settings or {}),
    }
    with lab_folder(folder) as place:
        server = zookeeper or ZooKeeperServer(place)
        cluster = KafkaCluster(server, place, chroot=chroot, owns_zookeeper=zookeeper is None)
        try:
            if zookeeper is None:
                server.start()
            for broker_id in broker_ids:
                cluster.add_broker(
                    broker_id,
                    rack=(racks or {}).get(broker_id),
                    session_timeout_ms=session_timeout_ms,
                    inter_broker_protocol_version=inter_broker_protocol_version,
                    settings={**common, **(settings_of or {}).get(broker_id, {})},
                    heap=heap,
                    log_dirs=log_dirs,
                    proxy=(proxies or {}).get(broker_id),
                )
            if start:
                cluster.start_brokers()
                cluster.wait_until_known()
            yield cluster
        finally:
            cluster.close()

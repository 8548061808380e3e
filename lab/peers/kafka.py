"""A real Kafka broker in ZooKeeper mode, without security, sized for a small machine.

Two listeners: brokers use INTERNAL, clients may use either, so that a controller can be advertised on one or on both.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from lab.downloads.jars import KAFKA_VERSION
from lab.faults.broker_proxy import BrokerProxy
from lab.peers.java_process import java_command, write_properties
from lab.peers.zookeeper import ZooKeeperServer
from lab.processes.node import Node
from lab.processes.ports import free_port
from lab.processes.process import READY_TIMEOUT_S, Process
from lab.processes.waiting import port_accepts, wait_until

HEAP = "96m"
"""130-175 MB resident with some dozens of partitions; benchmarks with thousands set more."""

SESSION_TIMEOUT_MS = 3000
"""Six ticks: short enough for tests of failover, long enough for a machine with two busy cores."""

INTERNAL = "INTERNAL"
CLIENT = "CLIENT"

SMALL = {
    "num.network.threads": "2",
    "num.io.threads": "4",
    "num.recovery.threads.per.data.dir": "1",
    "background.threads": "2",
    "log.cleaner.dedupe.buffer.size": "4194304",
    "log.cleaner.io.buffer.size": "65536",
    "log.index.size.max.bytes": "1048576",
    "offsets.topic.num.partitions": "3",
    "transaction.state.log.num.partitions": "3",
    "group.initial.rebalance.delay.ms": "0",
    "replica.lag.time.max.ms": "3000",
    "replica.fetch.wait.max.ms": "1000",
    "auto.leader.rebalance.enable": "false",
}
"""Lower settings for a broker that serves one test: threads, buffers, internal partitions, timeouts.

Kafka's default moves leaders back to preferred replicas every five minutes, which would disturb the test that runs then. Fetches of
followers that wait twice as long as by default (500 ms) save a quarter of what an idle broker computes; new records end the wait.
"""


class KafkaBroker(Node):
    """One broker; it keeps its id, ports and data when it is restarted.

    `chroot` is Kafka's chroot in ZooKeeper; `inter_broker_protocol_version` is a version such as "2.6"; `log_dirs` is the number of log
    directories; `proxy` is a proxy in front of its INTERNAL listener and ends with the broker; `settings` are further broker settings and
    override the lab's.
    """

    def __init__(
        self,
        broker_id: int,
        zookeeper: ZooKeeperServer,
        folder: Path,
        *,
        chroot: str = "",
        rack: str | None = None,
        session_timeout_ms: int = SESSION_TIMEOUT_MS,
        inter_broker_protocol_version: str | None = None,
        settings: Mapping[str, str] | None = None,
        heap: str = HEAP,
        version: str = KAFKA_VERSION,
        log_dirs: int = 1,
        proxy: BrokerProxy | None = None,
    ) -> None:
        self.broker_id = broker_id
        self.zookeeper = zookeeper
        self.chroot = chroot
        self.rack = rack
        self.ports = {INTERNAL: free_port(), CLIENT: free_port()}
        self.proxy = proxy
        self.data_folder = folder / f"broker-{broker_id}-data"
        further = (folder / f"broker-{broker_id}-data-{number}" for number in range(2, log_dirs + 1))
        self.data_folders = (self.data_folder, *further)
        values = {
            "broker.id": str(broker_id),
            "zookeeper.connect": zookeeper.connect(chroot),
            "zookeeper.session.timeout.ms": str(session_timeout_ms),
            "listeners": _listeners(self.ports),
            "listener.security.protocol.map": f"{INTERNAL}:PLAINTEXT,{CLIENT}:PLAINTEXT",
            "inter.broker.listener.name": INTERNAL,
            "log.dirs": ",".join(map(str, self.data_folders)),
            **SMALL,
        }
        if proxy is not None:
            proxy.target_port = self.ports[INTERNAL]
            values["advertised.listeners"] = _listeners({**self.ports, INTERNAL: proxy.port})
        if rack is not None:
            values["broker.rack"] = rack
        if inter_broker_protocol_version is not None:
            values["inter.broker.protocol.version"] = inter_broker_protocol_version
        values.update(settings or {})
        path = write_properties(folder / f"broker-{broker_id}.properties", values)
        self.process = Process(
            f"broker-{broker_id}", java_command("kafka.Kafka", str(path), heap=heap, version=version), folder
        )

    def address(self, listener: str = CLIENT) -> str:
        """Return the broker's host:port on a listener."""
        return f"127.0.0.1:{self.ports[listener]}"

    @property
    def registration_path(self) -> str:
        """The ephemeral znode by which the broker is known to be alive."""
        return f"{self.chroot}/brokers/ids/{self.broker_id}"

    @property
    def registered(self) -> bool:
        """Whether the broker's znode exists; that of a killed broker exists until its session expires."""
        return self.zookeeper.read(self.registration_path) is not None

    def launch(self) -> None:
        """Start it without waiting. After a kill -9 its old znode must be deleted first, otherwise the new process exits."""
        self.wait_until_deregistered()
        self.process.launch()

    def wait_until_ready(self, *, timeout_s: float = READY_TIMEOUT_S) -> float:
        """Return the seconds until it is registered and both ports accept."""
        return self.process.wait_until_ready(
            lambda: all(map(port_accepts, self.ports.values())) and self.registered, timeout_s=timeout_s
        )

    def wait_until_deregistered(self) -> float:
        """Return the seconds until its znode was deleted."""
        return wait_until(
            lambda: not self.registered, timeout_s=READY_TIMEOUT_S, what=f"broker {self.broker_id} deregistered"
        )

    def close(self) -> None:
        """Kill it and its proxy, and release its ports."""
        super().close()
        if self.proxy is not None:
            self.proxy.close()


def _listeners(ports: Mapping[str, int]) -> str:
    return ",".join(f"{name}://127.0.0.1:{port}" for name, port in ports.items())

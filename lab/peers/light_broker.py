"""Light brokers as processes of their own: `steward broker`, standalone or in a cluster in ZooKeeper mode or KRaft mode."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http import HTTPStatus
from pathlib import Path

from lab.faults.slow_disk import SlowDisk
from lab.peers.java_process import write_properties
from lab.peers.kafka import CLIENT, INTERNAL, SESSION_TIMEOUT_MS
from lab.peers.kraft import CONTROLLER, new_id
from lab.peers.steward import steward_command, steward_environment
from lab.peers.zookeeper import ZooKeeperServer
from lab.processes.folder import lab_folder
from lab.processes.http_get import http_get
from lab.processes.ports import free_port
from lab.processes.process import Process
from lab.processes.waiting import wait_until

HOST = "127.0.0.1"

FEATURES = ("share.version=0", "streams.version=0", "group.version=0", "transaction.version=0")
"""Levels of features with which controllers let light brokers in, as arguments of --feature."""

SMALL = {"offsets.topic.num.partitions": "3", "group.initial.rebalance.delay.ms": "0"}
"""Few partitions and no delay of the first rebalance, as the lab's brokers of Kafka."""


class LightBroker(Process):
    """A light broker that is alone. It can be killed and started again with the same data and ports."""

    def __init__(self, folder: Path, settings: Mapping[str, str] | None = None) -> None:
        """Prepare it in `folder`; `settings` are those of server.properties in addition to ports and directories."""
        self.port, self.metrics_port = free_port(), free_port()
        self.data_folder = folder / "data"
        config = folder / "server.properties"
        folder.mkdir(parents=True, exist_ok=True)
        base = {
            "node.id": "1",
            "listeners": f"PLAINTEXT://{HOST}:{self.port}",
            "log.dirs": str(self.data_folder),
            **SMALL,
        }
        write_properties(config, {**base, **(settings or {})})
        command = [*steward_command("broker"), str(config), "--standalone", "--metrics-port", str(self.metrics_port)]
        super().__init__("light-broker", command, folder, environment=steward_environment())

    @property
    def bootstrap(self) -> str:
        """HOST:PORT of its first listener."""
        return f"{HOST}:{self.port}"

    def start(self) -> float:
        """Start it and return the seconds until it serves."""
        self.launch()
        return self.wait_until_ready(lambda: _is_ready(self.metrics_port))


def _is_ready(metrics_port: int) -> bool:
    answer = http_get(metrics_port, "/readyz")
    return answer is not None and answer.status == HTTPStatus.OK


class ZooKeeperLightBroker(Process):
    """A light broker of a cluster in ZooKeeper mode, with the listeners of the lab's Kafka brokers. It keeps its data and ports."""

    def __init__(
        self,
        broker_id: int,
        zookeeper: ZooKeeperServer,
        folder: Path,
        *,
        chroot: str = "",
        settings: Mapping[str, str] | None = None,
    ) -> None:
        """Prepare it in `folder`; `settings` are those of server.properties in addition to ports, directories and ZooKeeper."""
        self.broker_id, self.zookeeper, self.chroot = broker_id, zookeeper, chroot
        self.ports = {INTERNAL: free_port(), CLIENT: free_port()}
        self.metrics_port = free_port()
        self.data_folder = folder / f"light-broker-{broker_id}-data"
        values = {
            "broker.id": str(broker_id),
            "zookeeper.connect": zookeeper.connect(chroot),
            "zookeeper.session.timeout.ms": str(SESSION_TIMEOUT_MS),
            "listeners": ",".join(f"{name}://{HOST}:{port}" for name, port in self.ports.items()),
            "listener.security.protocol.map": f"{INTERNAL}:PLAINTEXT,{CLIENT}:PLAINTEXT",
            "inter.broker.listener.name": INTERNAL,
            "log.dirs": str(self.data_folder),
            "controlled.shutdown.retry.backoff.ms": "500",
            **SMALL,
            **(settings or {}),
        }
        config = write_properties(folder / f"light-broker-{broker_id}.properties", values)
        command = [*steward_command("broker"), str(config), "--metrics-port", str(self.metrics_port)]
        super().__init__(f"light-broker-{broker_id}", command, folder, environment=steward_environment())

    def address(self, listener: str = CLIENT) -> str:
        """Return the broker's host:port on a listener."""
        return f"{HOST}:{self.ports[listener]}"

    @property
    def registration_path(self) -> str:
        """The ephemeral znode by which the broker is known to be alive."""
        return f"{self.chroot}/brokers/ids/{self.broker_id}"

    def start(self) -> float:
        """Start it and return the seconds until it serves, which includes its registration."""
        self.launch()
        return self.wait_until_ready(lambda: _is_ready(self.metrics_port))

    def wait_until_deregistered(self) -> float:
        """Return the seconds until its znode was deleted."""
        path = self.registration_path
        what = f"broker {self.broker_id} deregistered"
        return wait_until(lambda: self.zookeeper.read(path) is None, timeout_s=30, what=what)


class KRaftLightBroker(Process):
    """A light broker of a cluster with KRaft controllers, with the listener of the lab's Kafka 4 brokers. It keeps its data and ports."""

    def __init__(
        self,
        broker_id: int,
        folder: Path,
        *,
        cluster_id: str,
        quorum: str,
        directories: int = 1,
        settings: Mapping[str, str] | None = None,
        listeners: Mapping[str, str] | None = None,
        port: int | None = None,
        with_slow_disk: bool = False,
    ) -> None:
        """Prepare it in `folder`, with formatted directories; `quorum` are its static voters, `settings` override those of this lab.

        `listeners` are additional ones: names and security protocols. `port` is that of clients, a free one by default. `with_slow_disk`
        lets `disk` delay its calls, each of which then looks for the delay: not for measurements.
        """
        self.broker_id = broker_id
        self.port, self.metrics_port = port or free_port(), free_port()
        self.ports = {CLIENT: self.port, **{name: free_port() for name in listeners or {}}}
        protocols = {CLIENT: "PLAINTEXT", CONTROLLER: "PLAINTEXT", **(listeners or {})}
        self.log_dirs = [folder / f"light-broker-{broker_id}-data-{place}" for place in range(directories)]
        values = {
            "node.id": str(broker_id),
            "process.roles": "broker",
            "controller.quorum.voters": quorum,
            "controller.listener.names": CONTROLLER,
            "listeners": ",".join(f"{name}://{HOST}:{port}" for name, port in self.ports.items()),
            "listener.security.protocol.map": ",".join(f"{name}:{protocol}" for name, protocol in protocols.items()),
            "inter.broker.listener.name": CLIENT,
            "log.dirs": ",".join(map(str, self.log_dirs)),
            "broker.heartbeat.interval.ms": str(SESSION_TIMEOUT_MS // 6),
            **SMALL,
            **(settings or {}),
        }
        self.config = write_properties(folder / f"light-broker-{broker_id}.properties", values)
        for log_dir in self.log_dirs:
            names = {"version": "1", "cluster.id": cluster_id, "node.id": str(broker_id)}
            write_properties(log_dir / "meta.properties", {**names, "directory.id": new_id()})
        command = [*steward_command("broker"), str(self.config), "--metrics-port", str(self.metrics_port)]
        environment = steward_environment()
        self.disk = SlowDisk(folder / f"light-broker-{broker_id}.slow")
        if with_slow_disk:
            environment = self.disk.environment(environment)
        super().__init__(f"light-broker-{broker_id}", command, folder, environment=environment)

    @property
    def address(self) -> str:
        """Where clients reach it."""
        return f"{HOST}:{self.port}"

    def start(self) -> float:
        """Start it and return the seconds until it serves, which includes its registration."""
        self.launch()
        return self.wait_until_serving()

    def wait_until_serving(self) -> float:
        """Return the seconds until it serves."""
        return self.wait_until_ready(lambda: _is_ready(self.metrics_port))


@contextmanager
def light_broker(settings: Mapping[str, str] | None = None) -> Iterator[LightBroker]:
    """Yield a light broker that serves; it ends with the block, and its folder is deleted."""
    with lab_folder() as folder:
        broker = LightBroker(folder, settings)
        broker.start()
        try:
            yield broker
        finally:
            broker.kill()

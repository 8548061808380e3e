"""A stock Kafka 4.x cluster in KRaft mode: brokers, and one controller that is one of them or a node of its own, or several voters.

Sized for a small machine, without security, except on additional listeners. Quorums without brokers are in `quorum`.
"""

from __future__ import annotations

import contextlib
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from kafka_log.files.text_files import draw_directory_id
from kafka_wire.uuids import encode_uuid
from lab.downloads.jars import JAVA_FOLDER, NEWEST_KAFKA_VERSION
from lab.errors import LabError
from lab.peers.java_process import java_command, write_properties
from lab.peers.kafka import CLIENT, HEAP, SESSION_TIMEOUT_MS, SMALL
from lab.peers.live_brokers import alive
from lab.processes.folder import lab_folder
from lab.processes.node import Node
from lab.processes.ports import free_port
from lab.processes.process import READY_TIMEOUT_S, Process
from lab.processes.waiting import port_accepts, wait_until

CONTROLLER = "CONTROLLER"

CONTROLLER_ID = 100
"""No broker's id, where the controller is a node of its own."""

FORMAT_TIMEOUT_S = 60.0
"""A JVM's start and three small files: two seconds."""

INTERNAL_TOPIC_REPLICATION = 3
"""Kafka's own default; a smaller cluster lowers it to its size so that groups and transactions work."""


class KraftNode(Node):
    """One node; it keeps its ports and data over restarts. It is a broker (`port`), a controller (`controller_port`) or both."""

    def __init__(
        self,
        node_id: int,
        folder: Path,
        *,
        quorum: str,
        cluster_id: str,
        controller_port: int | None,
        port: int | None,
        brokers: int,
        directories: int = 1,
        settings: Mapping[str, str] | None = None,
        listeners: Mapping[str, str] | None = None,
        heap: str = HEAP,
        is_small: bool = True,
        version: str = NEWEST_KAFKA_VERSION,
    ) -> None:
        """Write the settings; `settings` override those of this lab. The node has `directories` log directories.

        `listeners` are additional ones: names and security protocols. `heap`, `is_small` and `version` are those of java_command.
        """
        self.node_id = node_id
        self.port = port
        self._cluster_id = cluster_id
        self.data_folder = folder / f"node-{node_id}-data"
        self.log_dirs = [
            self.data_folder,
            *(folder / f"node-{node_id}-data-{place}" for place in range(2, directories + 1)),
        ]
        self.ports = {
            name: number for name, number in ((CLIENT, port), (CONTROLLER, controller_port)) if number is not None
        }
        roles = ",".join({CLIENT: "broker", CONTROLLER: "controller"}[name] for name in self.ports)
        protocols = {CLIENT: "PLAINTEXT", CONTROLLER: "PLAINTEXT", **(listeners or {})}
        self.ports |= {name: free_port() for name in listeners or {}}
        replication = str(min(INTERNAL_TOPIC_REPLICATION, brokers))
        values = {
            "node.id": str(node_id),
            "process.roles": roles,
            "controller.quorum.voters": quorum,
            "listeners": ",".join(f"{name}://127.0.0.1:{number}" for name, number in self.ports.items()),
            "listener.security.protocol.map": ",".join(f"{name}:{protocol}" for name, protocol in protocols.items()),
            "controller.listener.names": CONTROLLER,
            "log.dirs": ",".join(map(str, self.log_dirs)),
            "broker.session.timeout.ms": str(SESSION_TIMEOUT_MS),
            "broker.heartbeat.interval.ms": str(SESSION_TIMEOUT_MS // 6),
            "offsets.topic.replication.factor": replication,
            "transaction.state.log.replication.factor": replication,
            "transaction.state.log.min.isr": str(min(2, brokers)),
            **SMALL,
        }
        if port is not None:
            values["inter.broker.listener.name"] = CLIENT
        values |= settings or {}
        self._properties = write_properties(folder / f"node-{node_id}.properties", values)
        command = kafka_4_command("kafka.Kafka", str(self._properties), heap=heap, is_small=is_small, version=version)
        self.process = Process(f"node-{node_id}", command, folder)

    @property
    def address(self) -> str:
        """Where clients reach it."""
        return f"127.0.0.1:{self.port}"

    def format(self, *options: str) -> None:
        """Format the storage once, as kafka-storage does. A broker's holds only meta.properties, a controller's also a first log.

        `options` are further ones of kafka-storage for a controller, such as its first feature levels.
        """
        if CONTROLLER not in self.ports:
            names = {"version": "1", "cluster.id": self._cluster_id, "node.id": str(self.node_id)}
            for log_dir in self.log_dirs:
                write_properties(log_dir / "meta.properties", {**names, "directory.id": new_id()})
            return
        format_as_kafka(self.node_id, self._cluster_id, self._properties, *options)

    def launch(self) -> None:
        """Start it without waiting; after a kill -9 it registers itself as soon as the session of its last run has expired."""
        self.process.launch()

    def wait_until_ready(self, *, timeout_s: float = READY_TIMEOUT_S) -> float:
        """Return the seconds until it accepts connections, and is a live broker in its own metadata if it is a broker."""
        return self.process.wait_until_ready(
            lambda: all(map(port_accepts, self.ports.values())) and (self.port is None or self.node_id in self.alive()),
            timeout_s=timeout_s,
        )

    def alive(self) -> set[int]:
        """Return the live brokers that it knows; none while it does not answer."""
        return alive(self.address)


class KraftCluster(dict[int, KraftNode]):
    """The brokers by their ids."""

    def __init__(self, controller_id: int) -> None:
        super().__init__()
        self._controller_id = controller_id

    def broker(self, broker_id: int) -> KraftNode:
        """Return the broker with this id."""
        return self[broker_id]

    @property
    def brokers(self) -> Mapping[int, KraftNode]:
        """Return the brokers by their ids, as of a cluster in ZooKeeper mode."""
        return self

    def bootstrap(self) -> str:
        """Bootstrap servers, all brokers, comma-separated."""
        return ",".join(node.address for node in self.values())

    def controller_id(self) -> int:
        """Return the quorum's leader if there is one voter."""
        return self._controller_id

    def know_each_other(self) -> bool:
        """Return whether each broker knows all brokers as live."""
        return all(node.alive() == set(self) for node in self.values())


@contextlib.contextmanager
def kraft_cluster(
    node_ids: Sequence[int] = (1, 2),
    *,
    controller_id: int | None = None,
    voter_ids: Sequence[int] = (),
    directories: int = 1,
    settings: Mapping[str, str] | None = None,
    listeners: Mapping[str, str] | None = None,
    racks: Mapping[int, str] | None = None,
    heap: str = HEAP,
    is_small: bool = True,
) -> Iterator[KraftCluster]:
    """Yield a running cluster by broker id; everything ends with the block.

    `controller_id` names the controller, which is a node of its own unless it is among the brokers; the first broker by default.
    `voter_ids` are all voters of the quorum instead. `settings`, `directories` and `listeners` are those of each KraftNode,
    `racks` those of brokers by their ids. `heap` and `is_small` are those of java_command.
    """
    chosen = node_ids[0] if controller_id is None else controller_id
    controller_ports = {voter_id: free_port() for voter_id in voter_ids or (chosen,)}
    cluster_id = new_id()
    quorum = ",".join(f"{voter_id}@127.0.0.1:{port}" for voter_id, port in controller_ports.items())
    with contextlib.ExitStack() as stack:
        folder = stack.enter_context(lab_folder(None))
        cluster = KraftCluster(chosen)
        nodes = []
        for node_id in dict.fromkeys((*controller_ports, *node_ids)):
            node = KraftNode(
                node_id,
                folder,
                quorum=quorum,
                cluster_id=cluster_id,
                controller_port=controller_ports.get(node_id),
                port=free_port() if node_id in node_ids else None,
                brokers=len(node_ids),
                settings={
                    **(settings or {}),
                    **({"broker.rack": racks[node_id]} if racks and node_id in racks else {}),
                },
                directories=directories,
                listeners=listeners if node_id in node_ids else None,
                heap=heap,
                is_small=is_small,
            )
            stack.callback(node.close)
            nodes.append(node)
        for node in nodes:
            node.format()
            node.launch()
        for node in nodes:
            node.wait_until_ready()
        cluster.update({node.node_id: node for node in nodes if node.node_id in node_ids})
        wait_until(cluster.know_each_other, timeout_s=READY_TIMEOUT_S, what="all brokers know each other")
        yield cluster


def new_id() -> str:
    """Return a random id in Kafka's format; it does not begin with a dash, which Kafka's tools would take for an option."""
    return encode_uuid(draw_directory_id())


def kafka_4_command(
    main_class: str,
    *arguments: str,
    heap: str = HEAP,
    log4j: str = "log4j.properties",
    is_small: bool = True,
    version: str = NEWEST_KAFKA_VERSION,
) -> list[str]:
    """Return the command that runs `main_class` from the jars of Kafka 4.x."""
    quiet = {"log4j2.configurationFile": (JAVA_FOLDER / "log4j2.properties").resolve().as_uri()}
    return java_command(
        main_class,
        *arguments,
        heap=heap,
        version=version,
        log4j=log4j,
        properties=quiet,
        is_small=is_small,
    )


def format_as_kafka(node_id: int, cluster_id: str, properties: Path, *options: str) -> None:
    """Format the folders of a node with kafka-storage. Raises `LabError` with the tool's output."""
    arguments = ("format", f"--cluster-id={cluster_id}", f"--config={properties}", *options)
    command = kafka_4_command("kafka.tools.StorageTool", *arguments, log4j="log4j-tools.properties")
    done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=FORMAT_TIMEOUT_S)
    if done.returncode:
        raise LabError(f"failed to format the storage of node {node_id}:\n{done.stdout}{done.stderr}")

"""A stock Kafka 4.x cluster, which has a quorum of its own: one node that is broker and controller, and brokers beside it.

Sized for a small machine, without security. What it leaves out: a quorum of more than one.
"""

from __future__ import annotations

import base64
import contextlib
import subprocess
import uuid
from collections.abc import Iterator, Sequence
from pathlib import Path

from lab.folder import lab_folder
from lab.jars import NEWEST_KAFKA_VERSION
from lab.java_process import java_command, write_properties
from lab.kafka import CLIENT, HEAP, SMALL
from lab.missing import LabError
from lab.ports import free_port, release_port
from lab.process import READY_TIMEOUT_S, Process
from lab.waiting import port_accepts

CONTROLLER = "CONTROLLER"

FORMAT_TIMEOUT_S = 60.0
"""A JVM's start and three small files: two seconds."""


class KraftNode:
    """One node; it keeps its ports and data over restarts. The first of a cluster is its controller as well."""

    def __init__(
        self, node_id: int, folder: Path, *, quorum: str, cluster_id: str, controller_port: int | None
    ) -> None:
        self.node_id = node_id
        self.port = free_port()
        self._cluster_id = cluster_id
        listeners = {CLIENT: self.port} | ({} if controller_port is None else {CONTROLLER: controller_port})
        values = {
            "node.id": str(node_id),
            "process.roles": "broker" if controller_port is None else "broker,controller",
            "controller.quorum.voters": quorum,
            "listeners": ",".join(f"{name}://127.0.0.1:{port}" for name, port in listeners.items()),
            "listener.security.protocol.map": f"{CLIENT}:PLAINTEXT,{CONTROLLER}:PLAINTEXT",
            "inter.broker.listener.name": CLIENT,
            "controller.listener.names": CONTROLLER,
            "log.dirs": str(folder / f"node-{node_id}-data"),
            "broker.session.timeout.ms": "3000",
            "broker.heartbeat.interval.ms": "500",
            "offsets.topic.replication.factor": "1",
            **SMALL,
        }
        self._properties = write_properties(folder / f"node-{node_id}.properties", values)
        command = java_command("kafka.Kafka", str(self._properties), heap=HEAP, version=NEWEST_KAFKA_VERSION)
        self.process = Process(f"node-{node_id}", command, folder)

    @property
    def address(self) -> str:
        """Where clients reach it."""
        return f"127.0.0.1:{self.port}"

    def format(self) -> None:
        """Make its folder, as kafka-storage does; once in its life."""
        arguments = ("format", "--cluster-id", self._cluster_id, "--config", str(self._properties))
        command = java_command("kafka.tools.StorageTool", *arguments, heap=HEAP, version=NEWEST_KAFKA_VERSION)
        done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=FORMAT_TIMEOUT_S)
        if done.returncode:
            raise LabError(f"node {self.node_id} could not be formatted:\n{done.stdout}{done.stderr}")

    def start(self) -> float:
        """Start it and return the seconds until it accepts clients."""
        self.process.launch()
        return self.process.wait_until_ready(lambda: port_accepts(self.port), timeout_s=READY_TIMEOUT_S)

    def stop(self) -> None:
        """End it in good order: its leaders go to others."""
        self.process.terminate()

    def close(self) -> None:
        """End it at once and give its port back."""
        self.process.kill()
        release_port(self.port)


@contextlib.contextmanager
def kraft_cluster(node_ids: Sequence[int] = (1, 2)) -> Iterator[dict[int, KraftNode]]:
    """Yield a running cluster by node id; everything ends with the block."""
    controller_port = free_port()
    cluster_id = base64.urlsafe_b64encode(uuid.uuid4().bytes).rstrip(b"=").decode()
    quorum = f"{node_ids[0]}@127.0.0.1:{controller_port}"
    with contextlib.ExitStack() as stack:
        stack.callback(release_port, controller_port)
        folder = stack.enter_context(lab_folder(None))
        nodes = {}
        for node_id in node_ids:
            own_port = controller_port if node_id == node_ids[0] else None
            node = KraftNode(node_id, folder, quorum=quorum, cluster_id=cluster_id, controller_port=own_port)
            stack.callback(node.close)
            nodes[node_id] = node
        for node in nodes.values():
            node.format()
        for node in nodes.values():
            node.start()
        yield nodes

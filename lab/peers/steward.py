"""Steward's processes, with the command lines of users: the controller and the operator.

Each process is ready when its readiness probe succeeds.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from lab.peers.kafka import CLIENT, INTERNAL
from lab.processes.http_get import http_get
from lab.processes.node import Node
from lab.processes.ports import free_port, release_port
from lab.processes.process import READY_TIMEOUT_S, Process

ROOT = Path(__file__).resolve().parents[2]

CONTROLLER_ID = 1000
"""The highest id that Kafka leaves to configured brokers (reserved.broker.max.id): no broker of a lab has it."""

OK = 200


class StewardProcess(Node):
    """Base class of the controller and the operator: a process, a probe and metrics."""

    def __init__(
        self,
        process: Process,
        *,
        probe_port: int,
        probe_path: str,
        metrics_port: int,
        ports: Mapping[str, int] | None = None,
    ) -> None:
        self.process = process
        self.ports = ports or {}
        self.metrics_port = metrics_port
        self._probe = (probe_port, probe_path)

    def launch(self) -> None:
        """Start it without waiting."""
        self.process.launch()

    @property
    def ready(self) -> bool:
        """Whether its probe answers 200."""
        answer = http_get(*self._probe)
        return answer is not None and answer.status == OK

    def wait_until_ready(self, *, timeout_s: float = READY_TIMEOUT_S) -> float:
        """Return the seconds until its probe answered 200."""
        return self.process.wait_until_ready(lambda: self.ready, timeout_s=timeout_s)

    def metrics(self) -> str:
        """Return its metrics in Prometheus' text format, empty when it does not answer."""
        answer = http_get(self.metrics_port, "/metrics")
        return "" if answer is None else answer.body.decode("utf-8")

    def metric(self, sample: str) -> float | None:
        """Return the value of one sample, named with its labels as the text format writes it; None when there is none."""
        return metric_of(self.metrics(), sample)

    def close(self) -> None:
        """Kill it and release its ports."""
        super().close()
        for port in {self.metrics_port, self._probe[0]}:
            release_port(port)


LEADERS_STAY = "--leader-imbalance-check-interval-seconds=86400"
"""By default the controller moves leaders back to preferred replicas every five minutes, which would disturb the test that runs then."""


class StewardController(StewardProcess):
    """`steward controller`, for the cluster at a ZooKeeper connect string (chroot included).

    `arguments` are further options of the command line; it keeps its ports over restarts.
    """

    def __init__(
        self,
        zookeeper_connect: str,
        folder: Path,
        *,
        controller_id: int = CONTROLLER_ID,
        listeners: Sequence[str] = (INTERNAL, CLIENT),
        arguments: Sequence[str] = (),
    ) -> None:
        self.controller_id = controller_id
        ports = {listener: free_port() for listener in listeners}
        metrics_port = free_port()
        command = [
            *steward_command("controller"),
            f"--zookeeper={zookeeper_connect}",
            f"--id={controller_id}",
            *(f"--listener={listener}=127.0.0.1:{port}" for listener, port in ports.items()),
            f"--metrics-port={metrics_port}",
            LEADERS_STAY,
            *arguments,
        ]
        process = Process(f"controller-{controller_id}", command, folder, environment=steward_environment())
        super().__init__(process, probe_port=metrics_port, probe_path="/readyz", metrics_port=metrics_port, ports=ports)

    def address(self, listener: str = CLIENT) -> str:
        """Return the controller's host:port on a listener."""
        return f"127.0.0.1:{self.ports[listener]}"


class StewardOperator(StewardProcess):
    """`steward operator`, for the API server of a kubeconfig."""

    def __init__(self, kubeconfig: Path, folder: Path, *, arguments: Sequence[str] = ()) -> None:
        metrics_port, health_port = free_port(), free_port()
        command = [
            *steward_command("operator"),
            f"--kubeconfig={kubeconfig}",
            f"--metrics-port={metrics_port}",
            f"--health-port={health_port}",
            *arguments,
        ]
        process = Process("operator", command, folder, environment=steward_environment())
        super().__init__(process, probe_port=health_port, probe_path="/healthz", metrics_port=metrics_port)


def metric_of(text: str, sample: str) -> float | None:
    """Return the value of one sample in Prometheus' text format, named with its labels as the text has them."""
    for line in text.splitlines():
        name, _, value = line.rpartition(" ")
        if name == sample:
            return float(value)
    return None


def steward_command(command: str) -> list[str]:
    """Return the command line of a command of Steward, without its options."""
    return [sys.executable, "-m", "steward", command]


def steward_environment() -> dict[str, str]:
    """Return variables that prefer the checkout's packages over installed ones, and write logs without buffering."""
    return {"PYTHONPATH": f"{ROOT}:{ROOT / 'operator'}", "PYTHONUNBUFFERED": "1"}

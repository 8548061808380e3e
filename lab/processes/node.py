"""Base class of nodes of a cluster, brokers, ZooKeeper servers or Steward controllers, which tests start, freeze and stop."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping

from lab.processes.ports import release_port
from lab.processes.process import READY_TIMEOUT_S, Process


class Node(ABC):
    """One node; it keeps its ports (by purpose) and its data over restarts."""

    process: Process
    ports: Mapping[str, int]

    @abstractmethod
    def launch(self) -> None:
        """Start it without waiting."""

    @abstractmethod
    def wait_until_ready(self, *, timeout_s: float = READY_TIMEOUT_S) -> float:
        """Return the seconds until it is ready."""

    def start(self) -> float:
        """Start it and return the seconds until it was ready."""
        self.launch()
        return self.wait_until_ready()

    def stop(self) -> int | None:
        """SIGTERM, wait, and return the exit code: 143 when a broker's leaders have moved to other brokers."""
        return self.process.terminate()

    def kill(self) -> None:
        """Kill -9: its ephemeral znodes and leaderships stay until its session expires."""
        self.process.kill()

    def pause(self) -> None:
        """Freeze it: sockets stay open, heartbeats and fetches stop."""
        self.process.pause()

    def resume(self) -> None:
        """Continue it."""
        self.process.resume()

    def restart(self) -> float:
        """Stop it if it runs, start it, and return the seconds that the start took."""
        if self.process.running:
            self.stop()
        return self.start()

    def close(self) -> None:
        """Kill it and release its ports."""
        self.process.kill()
        for port in self.ports.values():
            release_port(port)

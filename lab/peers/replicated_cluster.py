"""Brokers with a replica of every partition on each, by their ids: what tests of replication ask of them, whatever runs the brokers."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Protocol, TypeVar

from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from lab.peers.created_topic import create_topic
from lab.peers.live_brokers import alive
from lab.processes.process import READY_TIMEOUT_S
from lab.processes.waiting import wait_until

QUIET_TIMEOUT_S = 120.0
"""For steps of seconds on a machine that is busy: a broker restarts, and its replicas catch up."""


class ReplicatingBroker(Protocol):
    """A broker of such a cluster."""

    @property
    def log_dirs(self) -> Sequence[Path]:
        """Its log directories."""

    @property
    def address(self) -> str:
        """Where clients reach it."""


_B = TypeVar("_B", bound=ReplicatingBroker)


class ReplicatedCluster(dict[int, _B]):
    """The brokers by their ids."""

    @property
    def bootstrap(self) -> str:
        """Addresses of all brokers, comma-separated."""
        return ",".join(broker.address for broker in self.values())

    def wait_until_all_are_known(self, timeout_s: float = READY_TIMEOUT_S) -> None:
        """Wait until each broker knows all as live."""
        wait_until(
            lambda: all(alive(broker.address) == set(self) for broker in self.values()),
            timeout_s=timeout_s,
            what="all brokers know each other",
        )

    def create(self, topic: str, partitions: int, **configs: str) -> None:
        """Create a topic with a replica on each broker, and wait until all are in sync; `_` is a dot in names of configs."""
        named = {name.replace("_", "."): value for name, value in configs.items()}
        admin = AdminClient({"bootstrap.servers": self.bootstrap})
        create_topic(admin, NewTopic(topic, partitions, len(self), config=named), QUIET_TIMEOUT_S)
        self.wait_until_in_sync(topic)

    def wait_until_in_sync(self, topic: str) -> float:
        """Return the seconds until each broker knows that all replicas of all partitions are in sync."""
        return wait_until(
            lambda: all(self._is_in_sync(topic, broker) for broker in self.values()),
            timeout_s=QUIET_TIMEOUT_S,
            what=f"all replicas of {topic} are in sync",
        )

    def _is_in_sync(self, topic: str, broker: _B) -> bool:
        if alive(broker.address) != set(self):
            return False
        client = AdminClient({"bootstrap.servers": broker.address})
        found = client.list_topics(topic, timeout=QUIET_TIMEOUT_S).topics[topic].partitions
        return bool(found) and all(set(state.isrs) == set(self) and state.leader in self for state in found.values())

    def logs(self, topic: str, partition: int) -> dict[int, bytes]:
        """Return the log of a partition on each broker, its segments joined."""
        return {
            number: b"".join(
                path.read_bytes() for path in sorted((broker.log_dirs[0] / f"{topic}-{partition}").glob("*.log"))
            )
            for number, broker in self.items()
        }

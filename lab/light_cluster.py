"""A cluster without Java: light brokers under one controller of Steward, each a process of its own."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence

from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from lab.alive import alive
from lab.kafka import SESSION_TIMEOUT_MS
from lab.light_broker import FEATURES, HOST, KRaftLightBroker
from lab.process import READY_TIMEOUT_S
from lab.quorum import quorum
from lab.waiting import wait_until

CONTROLLER_ID = 101
BROKERS = (1, 2, 3)
QUIET_TIMEOUT_S = 60.0
"""For steps of seconds on a machine that is busy: a broker restarts, and its replicas catch up."""


class LightCluster(dict[int, KRaftLightBroker]):
    """The brokers by their ids."""

    @property
    def bootstrap(self) -> str:
        """Addresses of all brokers, comma-separated."""
        return ",".join(broker.address for broker in self.values())

    def create(self, topic: str, partitions: int, **configs: str) -> None:
        """Create a topic with a replica on each broker, and wait until all are in sync; `_` is a dot in names of configs."""
        named = {name.replace("_", "."): value for name, value in configs.items()}
        admin = AdminClient({"bootstrap.servers": self.bootstrap})
        admin.create_topics([NewTopic(topic, partitions, len(self), config=named)])[topic].result(QUIET_TIMEOUT_S)
        self.wait_until_in_sync(topic)

    def wait_until_in_sync(self, topic: str) -> float:
        """Return the seconds until each broker knows that all replicas of all partitions are in sync."""
        return wait_until(
            lambda: all(self._is_in_sync(topic, broker) for broker in self.values()),
            timeout_s=QUIET_TIMEOUT_S,
            what=f"all replicas of {topic} are in sync",
        )

    def _is_in_sync(self, topic: str, broker: KRaftLightBroker) -> bool:
        if alive(broker.address) != set(self):
            return False
        client = AdminClient({"bootstrap.servers": broker.address})
        found = client.list_topics(topic, timeout=QUIET_TIMEOUT_S).topics[topic].partitions
        return bool(found) and all(set(each.isrs) == set(self) and each.leader in self for each in found.values())

    def logs(self, topic: str, partition: int) -> dict[int, bytes]:
        """Return the log of a partition on each broker, its segments joined."""
        return {
            number: b"".join(
                path.read_bytes() for path in sorted((broker.log_dirs[0] / f"{topic}-{partition}").glob("*.log"))
            )
            for number, broker in self.items()
        }


@contextlib.contextmanager
def light_cluster(
    broker_ids: Sequence[int] = BROKERS, *, settings: Mapping[str, str] | None = None
) -> Iterator[LightCluster]:
    """Yield a running cluster; everything ends with the block. `settings` are further ones of each broker."""
    times = {"broker.session.timeout.ms": str(SESSION_TIMEOUT_MS)}
    with (
        quorum((), stewards=(CONTROLLER_ID,), settings=times, features=FEATURES) as controllers,
        contextlib.ExitStack() as stack,
    ):
        voters = f"{CONTROLLER_ID}@{HOST}:{controllers[CONTROLLER_ID].member.port}"
        cluster = LightCluster()
        for broker_id in broker_ids:
            light = KRaftLightBroker(
                broker_id,
                controllers.folder,
                cluster_id=controllers.plan.cluster_id,
                quorum=voters,
                settings={"offsets.topic.replication.factor": str(len(broker_ids)), **(settings or {})},
            )
            stack.callback(light.kill)
            cluster[broker_id] = light
            light.launch()
        for light in cluster.values():
            light.wait_until_serving()
        wait_until(
            lambda: all(alive(light.address) == set(cluster) for light in cluster.values()),
            timeout_s=READY_TIMEOUT_S,
            what="all brokers know each other",
        )
        yield cluster

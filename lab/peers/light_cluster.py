"""A cluster without Java: light brokers under one controller of Steward, each a process of its own."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence

from lab.peers.kafka import SESSION_TIMEOUT_MS
from lab.peers.light_broker import FEATURES, HOST, KRaftLightBroker
from lab.peers.quorum import quorum
from lab.peers.replicated_cluster import ReplicatedCluster

CONTROLLER_ID = 101
BROKERS = (1, 2, 3)
LightCluster = ReplicatedCluster[KRaftLightBroker]


@contextlib.contextmanager
def light_cluster(
    broker_ids: Sequence[int] = BROKERS, *, settings: Mapping[str, str] | None = None, with_slow_disks: bool = False
) -> Iterator[LightCluster]:
    """Yield a running cluster; everything ends with the block. `settings` are further ones of each broker, whose disks can become slow `with_slow_disks`."""
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
                with_slow_disk=with_slow_disks,
            )
            stack.callback(light.kill)
            cluster[broker_id] = light
            light.launch()
        for light in cluster.values():
            light.wait_until_serving()
        cluster.wait_until_all_are_known()
        yield cluster

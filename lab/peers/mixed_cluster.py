"""Two brokers of Kafka 4.3 and a light broker: all their connections to each other and to the controllers go through a network that can be cut.

The controller is one of Kafka 4.3, or there are several of Steward's, which reach each other directly. Clients reach each broker directly, also one
that is isolated from the others.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from pathlib import Path

from lab.faults.network import Network
from lab.peers.kafka import CLIENT, SESSION_TIMEOUT_MS
from lab.peers.kraft import CONTROLLER_ID, KraftNode
from lab.peers.light_broker import FEATURES, HOST, KRaftLightBroker
from lab.peers.quorum import Quorum, quorum
from lab.peers.replicated_cluster import QUIET_TIMEOUT_S, ReplicatedCluster
from lab.processes.ports import free_port
from lab.processes.process import Process

KAFKAS, LIGHT = (1, 2), 3
STEWARDS = (101, 102, 103)
"""Controllers of Steward."""
REPLICATION = "REPLICATION"
"""Listener of brokers. Its advertised ports are the network's."""

Broker = KraftNode | KRaftLightBroker


class MixedCluster(ReplicatedCluster[Broker]):
    """The brokers by their ids."""

    def __init__(self, controllers: Quorum, network: Network) -> None:
        super().__init__()
        self.controllers = controllers
        self.network = network

    def process(self, node_id: int) -> Process:
        """Return the process of a broker or a controller."""
        node = self.controllers.get(node_id) or self[node_id]
        return node if isinstance(node, KRaftLightBroker) else node.process

    def isolate(self, node_id: int) -> None:
        """Cut a broker off the controllers and the other brokers, or a controller off the brokers."""
        self.network.isolate(str(node_id))

    def leader(self) -> int:
        """Return the active controller."""
        return self.controllers.wait_for_leader()[0]


@contextlib.contextmanager
def mixed_cluster(stewards: Sequence[int] = ()) -> Iterator[MixedCluster]:
    """Yield a running cluster with a controller of Kafka, or with these of Steward; everything ends with the block."""
    times = {"broker.session.timeout.ms": str(SESSION_TIMEOUT_MS)}
    javas = () if stewards else (CONTROLLER_ID,)
    with (
        quorum(javas, stewards=stewards, settings=times, features=FEATURES) as controllers,
        contextlib.ExitStack() as stack,
    ):
        network = Network()
        stack.callback(network.close)
        cluster = MixedCluster(controllers, network)
        voters = ",".join(
            f"{node_id}@{HOST}:{_reached(cluster, node_id, node.member.port)}" for node_id, node in controllers.items()
        )
        for broker_id in (*KAFKAS, LIGHT):
            broker = _broker(cluster, broker_id, controllers.folder, voters)
            stack.callback(broker.close if isinstance(broker, KraftNode) else broker.kill)
            cluster[broker_id] = broker
        for broker in cluster.values():
            broker.launch()
        cluster.wait_until_all_are_known(QUIET_TIMEOUT_S)
        yield cluster


def _reached(cluster: MixedCluster, node_id: int, port: int) -> int:
    """Return the port at which a node is reached through the network."""
    reached = cluster.network.reserve()
    cluster.network.add(str(node_id), reached, port, lambda: cluster.process(node_id).pid)
    return reached


def _broker(cluster: MixedCluster, broker_id: int, folder: Path, voters: str) -> Broker:
    """Return a broker whose address for other brokers is in the network."""
    port, cluster_id = free_port(), cluster.controllers.plan.cluster_id
    listeners = {REPLICATION: "PLAINTEXT"}
    reached = cluster.network.reserve()
    settings = {
        "inter.broker.listener.name": REPLICATION,
        "advertised.listeners": f"{CLIENT}://{HOST}:{port},{REPLICATION}://{HOST}:{reached}",
    }
    broker: Broker
    if broker_id == LIGHT:
        broker = KRaftLightBroker(
            broker_id, folder, cluster_id=cluster_id, quorum=voters, settings=settings, listeners=listeners, port=port
        )
    else:
        broker = KraftNode(
            broker_id,
            folder,
            quorum=voters,
            cluster_id=cluster_id,
            controller_port=None,
            port=port,
            brokers=len(KAFKAS) + 1,
            settings=settings,
            listeners=listeners,
        )
        broker.format()
    cluster.network.add(str(broker_id), reached, broker.ports[REPLICATION], lambda: cluster.process(broker_id).pid)
    return broker

"""Two brokers of Kafka 4.3 and a light broker under a controller of Kafka's: all that they say to each other goes through a network that can be cut.

Clients reach each broker directly, also one that is isolated from the others. Records are compared on the disk.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

from lab.alive import alive
from lab.folder import lab_folder
from lab.kafka import CLIENT
from lab.kraft import CONTROLLER, CONTROLLER_ID, KraftNode, new_id
from lab.light_broker import FEATURES, HOST, KRaftLightBroker
from lab.network import Network
from lab.ports import free_port
from lab.process import Process
from lab.replicated_cluster import QUIET_TIMEOUT_S, ReplicatedCluster
from lab.waiting import wait_until

KAFKAS, LIGHT = (1, 2), 3
REPLICATION = "REPLICATION"
"""Listener of brokers. Its advertised ports are the network's."""

Broker = KraftNode | KRaftLightBroker


class MixedCluster(ReplicatedCluster[Broker]):
    """The brokers by their ids."""

    def __init__(self, network: Network) -> None:
        super().__init__()
        self.network = network

    def process(self, broker_id: int) -> Process:
        """Return the process of a broker."""
        return _process_of(self[broker_id])

    def isolate(self, broker_id: int) -> None:
        """Cut a broker off the controller and the other brokers."""
        self.network.isolate(_name_of(broker_id))


def _broker(broker_id: int, folder: Path, quorum: str, cluster_id: str, network: Network) -> Broker:
    """Return a broker whose address for other brokers is in the network."""
    port, reached = free_port(), network.reserve()
    settings = {
        "inter.broker.listener.name": REPLICATION,
        "advertised.listeners": f"{CLIENT}://{HOST}:{port},{REPLICATION}://{HOST}:{reached}",
    }
    listeners = {REPLICATION: "PLAINTEXT"}
    broker: Broker
    if broker_id == LIGHT:
        broker = KRaftLightBroker(
            broker_id, folder, cluster_id=cluster_id, quorum=quorum, settings=settings, listeners=listeners, port=port
        )
    else:
        broker = KraftNode(
            broker_id,
            folder,
            quorum=quorum,
            cluster_id=cluster_id,
            controller_port=None,
            port=port,
            brokers=len(KAFKAS) + 1,
            settings=settings,
            listeners=listeners,
        )
        broker.format()
    network.add(_name_of(broker_id), reached, broker.ports[REPLICATION], lambda: _process_of(broker).pid)
    return broker


def _process_of(broker: Broker) -> Process:
    """Return the process of a broker."""
    return broker.process if isinstance(broker, KraftNode) else broker


def _name_of(broker_id: int) -> str:
    """Return the name of a broker in the network."""
    return f"broker {broker_id}"


@contextlib.contextmanager
def mixed_cluster() -> Iterator[MixedCluster]:
    """Yield a running cluster; everything ends with the block."""
    with contextlib.ExitStack() as stack:
        folder = stack.enter_context(lab_folder())
        network = Network()
        stack.callback(network.close)
        cluster_id, controller_port = new_id(), free_port()
        quorum = f"{CONTROLLER_ID}@{HOST}:{controller_port}"
        controller = KraftNode(
            CONTROLLER_ID,
            folder,
            quorum=quorum,
            cluster_id=cluster_id,
            controller_port=controller_port,
            port=None,
            brokers=3,
        )
        stack.callback(controller.close)
        controller.format(*(part for each in FEATURES for part in ("--feature", each)))
        controller.launch()
        reached = network.reserve()
        network.add(CONTROLLER, reached, controller_port, lambda: controller.process.pid)
        cluster = MixedCluster(network)
        for broker_id in (*KAFKAS, LIGHT):
            broker = _broker(broker_id, folder, f"{CONTROLLER_ID}@{HOST}:{reached}", cluster_id, network)
            stack.callback(broker.close if isinstance(broker, KraftNode) else broker.kill)
            cluster[broker_id] = broker
        controller.wait_until_ready()
        for broker in cluster.values():
            broker.launch()
        wait_until(
            lambda: all(alive(broker.address) == set(cluster) for broker in cluster.values()),
            timeout_s=QUIET_TIMEOUT_S,
            what="all brokers know each other",
        )
        yield cluster

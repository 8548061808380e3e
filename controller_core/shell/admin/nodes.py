"""Who is reached where by the listener that a request came in on: the live brokers, and the controller as one of them.

A node that does not have this listener is not listed: its address on another one may not be reachable for the caller.
Source: ZkMetadataCache.getAliveBrokerNodes. Leaves out partitions.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from controller_core.model.broker import Broker
from controller_core.model.cluster import Cluster
from controller_core.model.ids import NO_EPOCH
from controller_core.shell.active import ActiveController


@dataclass(frozen=True, slots=True)
class Node:
    """One line of the list of brokers."""

    id: int
    host: str
    port: int
    rack: str | None


def nodes(active: ActiveController, listener: str) -> Iterator[Node]:
    """List the brokers that are registered, also those on their way out, and this controller last."""
    brokers = [active.cluster.brokers[broker_id] for broker_id in sorted(active.cluster.brokers)]
    for broker in [*brokers, controller_as_broker(active)]:
        endpoint = broker.endpoint(listener)
        if endpoint is not None:
            yield Node(broker.id, endpoint.host, endpoint.port, broker.rack)


def controller_as_broker(active: ActiveController) -> Broker:
    """Describe the controller as brokers are described to clients; that is how these find it (protocol notes, Z20, Z24).

    Where brokers have racks it has the first of them: a broker without one makes tools refuse to place replicas.
    """
    cluster = active.cluster
    racks = (cluster.brokers[broker_id].rack for broker_id in sorted(cluster.brokers))
    rack = next((rack for rack in racks if rack is not None), None)
    return Broker(cluster.controller_id, NO_EPOCH, tuple(active.advertised()), rack)


def reachable(cluster: Cluster, listener: str) -> frozenset[int]:
    """Find the registered brokers that have a listener."""
    return frozenset(broker.id for broker in cluster.brokers.values() if broker.endpoint(listener) is not None)

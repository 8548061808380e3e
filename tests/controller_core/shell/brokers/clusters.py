"""Clusters in memory for requests and channels."""

from collections.abc import Iterable

import numpy as np

from controller_core.model import Broker, Cluster, Endpoint, IntArray
from controller_core.model.decision import SendLeaderAndIsr, SendMetadata
from controller_core.model.zookeeper_changes import BrokersObserved
from controller_core.shell.brokers.requests import OwnAddress
from controller_core.zookeeper_mode.transitions import apply
from tests.controller_core.shell.zookeeper.vocabulary import read_change, row_of

CONTROLLER, CONTROLLER_EPOCH = 1000, 9
OWN = OwnAddress(
    (Endpoint("CLIENT", "steward", 9990, "PLAINTEXT"), Endpoint("INTERNAL", "steward", 9991, "PLAINTEXT")), "INTERNAL"
)


def broker(broker_id: int, rack: str | None = None, epoch: int = 0, port: int = 0) -> Broker:
    """A broker with two listeners; its epoch is 100 plus its id unless another one is given."""
    endpoints = (
        Endpoint("CLIENT", f"client{broker_id}", 9000 + broker_id, "SASL_SSL"),
        Endpoint("INTERNAL", "127.0.0.1" if port else f"host{broker_id}", port or 9100 + broker_id, "PLAINTEXT"),
    )
    return Broker(broker_id, epoch or 100 + broker_id, endpoints, rack)


def cluster_of(*brokers: Broker, changes: Iterable[str] = ()) -> Cluster:
    """A cluster with these brokers, after these changes."""
    cluster = Cluster(CONTROLLER, CONTROLLER_EPOCH)
    apply(cluster, BrokersObserved(brokers))
    for change in changes:
        apply(cluster, read_change(cluster, change))
    return cluster


def rows(cluster: Cluster, *partitions: str) -> IntArray:
    """Rows by partition name; all rows if none is named."""
    if not partitions:
        return cluster.columns.used()
    return np.array([row_of(cluster, name) for name in partitions], dtype=np.int32)


def lead(cluster: Cluster, to: int, *partitions: str, new: Iterable[str] = ()) -> SendLeaderAndIsr:
    """A LeaderAndIsr to one broker; `new` names partitions that are new to it."""
    wanted = rows(cluster, *partitions)
    is_new = np.isin(wanted, rows(cluster, *new)) if new else np.zeros(len(wanted), dtype=np.bool_)
    return SendLeaderAndIsr(to, wanted, is_new)


def metadata(cluster: Cluster, *partitions: str, deleting: bool = False) -> SendMetadata:
    """An UpdateMetadata to all brokers."""
    return SendMetadata(tuple(sorted(cluster.brokers)), rows(cluster, *partitions), deleting)

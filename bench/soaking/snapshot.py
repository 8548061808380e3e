"""Snapshot of the whole cluster in ZooKeeper at about one moment, as plain values."""

import json
from dataclasses import dataclass, field
from typing import Any

from lab.peers.cluster import KafkaCluster

Partition = tuple[str, int]
Replicas = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Topic:
    """One topic's znode; `born` is the transaction that created it, which distinguishes it from an earlier topic of the same name."""

    born: int
    replicas: dict[int, Replicas]
    moving: frozenset[int]
    """Partitions with replicas to add or to remove."""


@dataclass(frozen=True, slots=True)
class State:
    """One partition's state znode; `version` is the partition epoch."""

    leader: int
    leader_epoch: int
    isr: Replicas
    version: int


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The values that were read; without topics that were deleted during the reads. A partition without a state has none."""

    controller: int | None
    controller_epoch: int
    topics: dict[str, Topic] = field(default_factory=dict)
    states: dict[Partition, State] = field(default_factory=dict)
    deletions: frozenset[str] = frozenset()


def take(cluster: KafkaCluster) -> Snapshot:
    """Read all znodes, one request for each, with all requests of a kind in flight together."""
    root = cluster.chroot
    client = cluster.zookeeper.client
    names = client.retry(client.get_children, f"{root}/brokers/topics")
    found = _read(cluster, {name: f"{root}/brokers/topics/{name}" for name in names})
    topics = {name: _topic(document, stat.czxid) for name, (document, stat) in found.items()}
    paths = {
        (name, partition): f"{root}/brokers/topics/{name}/partitions/{partition}/state"
        for name, topic in topics.items()
        for partition in topic.replicas
    }
    states = {
        partition: State(document["leader"], document["leader_epoch"], tuple(document["isr"]), stat.version)
        for partition, (document, stat) in _read(cluster, paths).items()
    }
    deletions = frozenset(client.retry(client.get_children, f"{root}/admin/delete_topics"))
    epoch = int(cluster.zookeeper.read(f"{root}/controller_epoch") or b"0")
    return Snapshot(cluster.controller_id(), epoch, topics, states, deletions)


def _topic(document: dict[str, Any], born: int) -> Topic:
    moving = {*document.get("adding_replicas", {}), *document.get("removing_replicas", {})}
    replicas = {int(partition): tuple(ids) for partition, ids in document["partitions"].items()}
    return Topic(born, replicas, frozenset(map(int, moving)))


def _read(cluster: KafkaCluster, paths: dict[Any, str]) -> dict[Any, tuple[dict[str, Any], Any]]:
    asked = {key: cluster.zookeeper.client.get_async(path) for key, path in paths.items()}
    answers = {}
    for key, answer in asked.items():
        answer.wait()
        if answer.exception is None:
            data, stat = answer.value
            answers[key] = (json.loads(data), stat)
    return answers

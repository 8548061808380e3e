"""Bodies of the requests that a controller sends: pure, from the columns as they are now.

Field names are those of Kafka's messages (LeaderAndIsrRequest 4 to 7, UpdateMetadataRequest 6 to 8, StopReplicaRequest 3
and 4); the codec leaves out what a version does not have. The broker's epoch is filled in for each broker.

What is told of partitions goes from columns to bytes (`state_bodies`). The controller lists itself among the live brokers, on each of its listeners: that is how brokers and clients find it
(protocol notes, Z20, Z24). Leaves out bytes.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from controller_core.model.broker import Broker, Endpoint
from controller_core.model.cluster import Cluster
from controller_core.model.ids import NO_EPOCH, TopicPartition
from controller_core.model.sends import SendLeaderAndIsr, SendMetadata, SendStopReplica
from controller_core.shell.brokers.state_bodies import StatesBody, leader_states, metadata_states
from kafka_wire.api import ApiKey
from kafka_wire.codec import Body

SECURITY_PROTOCOL_IDS = {"PLAINTEXT": 0, "SSL": 1, "SASL_PLAINTEXT": 2, "SASL_SSL": 3}
"""Kafka's SecurityProtocol ids."""


@dataclass(frozen=True, slots=True)
class OwnAddress:
    """How the controller is listed among the brokers."""

    endpoints: tuple[Endpoint, ...]
    inter_broker_listener: str
    rack: str | None = None
    """Only told where the brokers have racks; None: that of the broker with the lowest id. Where some of all that are listed
    have a rack and some have none, brokers refuse to create topics by themselves ("Not all brokers have rack information")."""


def leader_and_isr(cluster: Cluster, send: SendLeaderAndIsr, own: OwnAddress) -> StatesBody:
    """Tell a broker what it leads and follows."""
    leaders = np.unique(cluster.columns.leader[send.rows]).tolist()
    head = {
        "controller_id": cluster.controller_id,
        "controller_epoch": cluster.controller_epoch,
        "live_leaders": list(addresses(cluster, leaders, own.inter_broker_listener)),
    }
    return StatesBody(ApiKey.LEADER_AND_ISR, head, leader_states(cluster, send))


def update_metadata(cluster: Cluster, send: SendMetadata, own: OwnAddress) -> StatesBody:
    """Tell brokers who lives, and who leads the rows."""
    head = {
        "controller_id": cluster.controller_id,
        "controller_epoch": cluster.controller_epoch,
        "live_brokers": [live_broker(broker) for broker in known_brokers(cluster, own)],
    }
    return StatesBody(ApiKey.UPDATE_METADATA, head, metadata_states(cluster, send))


def stop_replica(cluster: Cluster, send: SendStopReplica) -> Body:
    """Tell a broker to stop following and, where said, to delete."""
    topics: dict[str, list[Body]] = {}
    for (name, partition), leader_epoch in zip(send.partitions, send.leader_epochs, strict=True):
        state = {"partition_index": partition, "leader_epoch": leader_epoch, "delete_partition": send.delete}
        topics.setdefault(name, []).append(state)
    return {
        "controller_id": cluster.controller_id,
        "controller_epoch": cluster.controller_epoch,
        "topic_states": [{"topic_name": name, "partition_states": states} for name, states in topics.items()],
    }


def known_brokers(cluster: Cluster, own: OwnAddress) -> Sequence[Broker]:
    """List the registered brokers, and the controller as one more."""
    brokers = [cluster.brokers[broker_id] for broker_id in sorted(cluster.brokers)]
    racks = [broker.rack for broker in brokers if broker.rack is not None]
    rack = own.rack or racks[0] if racks else None
    return [*brokers, Broker(cluster.controller_id, NO_EPOCH, own.endpoints, rack)]


def live_broker(broker: Broker) -> Body:
    """Tell where one broker is reached."""
    endpoints = [
        {
            "host": endpoint.host,
            "port": endpoint.port,
            "listener": endpoint.listener,
            "security_protocol": SECURITY_PROTOCOL_IDS[endpoint.security_protocol],
        }
        for endpoint in broker.endpoints
    ]
    return {"id": broker.id, "endpoints": endpoints, "rack": broker.rack}


def addresses(cluster: Cluster, ids: Iterable[int], listener: str) -> Iterable[Body]:
    """Tell where brokers are reached on one listener; those that are away, or lack it, are left out."""
    for broker_id in sorted(ids):
        broker = cluster.brokers.get(broker_id)
        endpoint = None if broker is None else broker.endpoint(listener)
        if endpoint is not None:
            yield {"broker_id": broker_id, "host_name": endpoint.host, "port": endpoint.port}


def stopped_partitions(body: Body) -> dict[TopicPartition, int]:
    """List the partitions that a StopReplica asks to delete, with their leader epochs."""
    return {
        TopicPartition(topic["topic_name"], state["partition_index"]): state["leader_epoch"]
        for topic in body["topic_states"]
        for state in topic["partition_states"]
        if state["delete_partition"]
    }


def is_told_anew(body: Body | StatesBody) -> bool:
    """Whether a broker that is told the present state hears of what a request says; not so of topics that are no more."""
    return isinstance(body, StatesBody) and not body.speaks_of_deletion

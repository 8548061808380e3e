"""Bodies of the requests that a controller sends: pure, from the columns as they are now.

Field names are those of Kafka's messages (LeaderAndIsrRequest 4 to 7, UpdateMetadataRequest 6 to 8, StopReplicaRequest 3
and 4); the codec leaves out what a version does not have. The broker's epoch is filled in for each broker.

The controller lists itself among the live brokers, on each of its listeners: that is how brokers and clients find it
(wire-facts, f to h2). Leaves out bytes.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from uuid import UUID

from controller_core.model.broker import Broker, Endpoint
from controller_core.model.cluster import Cluster, Topic
from controller_core.model.ids import LEADER_DURING_DELETE, NO_EPOCH, TopicPartition
from controller_core.model.sends import SendLeaderAndIsr, SendMetadata, SendStopReplica
from kafka_wire.codec import Body

SECURITY_PROTOCOL_IDS = {"PLAINTEXT": 0, "SSL": 1, "SASL_PLAINTEXT": 2, "SASL_SSL": 3}
"""Kafka's SecurityProtocol ids."""
NO_TOPIC_ID = UUID(int=0)


@dataclass(frozen=True, slots=True)
class OwnAddress:
    """How the controller is listed among the brokers."""

    endpoints: tuple[Endpoint, ...]
    inter_broker_listener: str
    rack: str | None = None
    """None: the rack of the broker with the lowest id, where the brokers have racks. Without one, brokers refuse to create
    topics by themselves ("Not all brokers have rack information")."""


def leader_and_isr(cluster: Cluster, send: SendLeaderAndIsr, own: OwnAddress) -> Body:
    """Tell a broker what it leads and follows."""
    columns = cluster.columns
    topic_states = []
    is_new = dict(zip(send.rows.tolist(), send.is_new.tolist(), strict=True))
    for topic, rows in cluster.by_topic(send.rows.tolist()):
        states = [_partition_state(cluster, row, is_new=is_new[row]) for row in rows]
        topic_states.append({"topic_name": topic.name, "topic_id": _id(topic), "partition_states": states})
    leaders = {int(columns.leader[row]) for row in send.rows.tolist()}
    return {
        "controller_id": cluster.controller_id,
        "controller_epoch": cluster.controller_epoch,
        "topic_states": topic_states,
        "live_leaders": list(_addresses(cluster, leaders, own.inter_broker_listener)),
    }


def _partition_state(cluster: Cluster, row: int, *, is_new: bool) -> Body:
    columns, move = cluster.columns, cluster.moves.get(row)
    replicas = columns.replicas_of(row)
    # Once the target stands alone, brokers are told of no move any more.
    in_move = move is not None and move.replicas == replicas
    return {
        "partition_index": int(columns.partition[row]),
        "controller_epoch": int(columns.controller_epoch[row]),
        "leader": int(columns.leader[row]),
        "leader_epoch": int(columns.leader_epoch[row]),
        "isr": list(columns.isr_of(row)),
        "partition_epoch": int(columns.partition_epoch[row]),
        "replicas": list(replicas),
        "adding_replicas": list(move.adding) if move is not None and in_move else [],
        "removing_replicas": list(move.removing) if move is not None and in_move else [],
        "is_new": is_new,
    }


def update_metadata(cluster: Cluster, send: SendMetadata, own: OwnAddress) -> Body:
    """Tell brokers who lives, and who leads the rows."""
    topic_states = []
    for topic, rows in cluster.by_topic(send.rows.tolist()):
        states = [_metadata_state(cluster, row, deleting=send.deleting) for row in rows]
        topic_states.append({"topic_name": topic.name, "topic_id": _id(topic), "partition_states": states})
    return {
        "controller_id": cluster.controller_id,
        "controller_epoch": cluster.controller_epoch,
        "topic_states": topic_states,
        "live_brokers": [_live_broker(broker) for broker in known_brokers(cluster, own)],
    }


def _metadata_state(cluster: Cluster, row: int, *, deleting: bool) -> Body:
    columns, live = cluster.columns, cluster.live_ids()
    replicas = columns.replicas_of(row)
    return {
        "partition_index": int(columns.partition[row]),
        "controller_epoch": int(columns.controller_epoch[row]),
        "leader": LEADER_DURING_DELETE if deleting else int(columns.leader[row]),
        "leader_epoch": int(columns.leader_epoch[row]),
        "isr": list(columns.isr_of(row)),
        "zk_version": int(columns.partition_epoch[row]),
        "replicas": list(replicas),
        "offline_replicas": [replica for replica in replicas if replica not in live],
    }


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
    rack = own.rack or next((broker.rack for broker in brokers if broker.rack is not None), None)
    return [*brokers, Broker(cluster.controller_id, NO_EPOCH, own.endpoints, rack)]


def _live_broker(broker: Broker) -> Body:
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


def _addresses(cluster: Cluster, ids: Iterable[int], listener: str) -> Iterable[Body]:
    for broker_id in sorted(ids):
        broker = cluster.brokers.get(broker_id)
        endpoint = None if broker is None else broker.endpoint(listener)
        if endpoint is not None:
            yield {"broker_id": broker_id, "host_name": endpoint.host, "port": endpoint.port}


def _id(topic: Topic) -> UUID:
    return topic.topic_id or NO_TOPIC_ID


def stopped_partitions(body: Body) -> tuple[TopicPartition, ...]:
    """List the partitions that a StopReplica asks to delete."""
    return tuple(
        TopicPartition(topic["topic_name"], state["partition_index"])
        for topic in body["topic_states"]
        for state in topic["partition_states"]
        if state["delete_partition"]
    )

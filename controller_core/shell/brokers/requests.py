"""Bodies of the requests that a controller sends: pure, from the columns as they are now.

Field names are those of Kafka's messages (LeaderAndIsrRequest 4 to 7, UpdateMetadataRequest 6 to 8, StopReplicaRequest 3
and 4); the codec leaves out what a version does not have. The broker's epoch is filled in for each broker.

The controller lists itself among the live brokers, on each of its listeners: that is how brokers and clients find it
(wire-facts, f to h2). Leaves out bytes.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from uuid import UUID

from controller_core.model.broker import Broker, Endpoint
from controller_core.model.cluster import Cluster, Topic
from controller_core.model.columns import IntArray, unpad_all
from controller_core.model.ids import LEADER_DURING_DELETE, NO_EPOCH, TopicPartition
from controller_core.model.sends import SendLeaderAndIsr, SendMetadata, SendStopReplica
from kafka_wire.api import ApiKey
from kafka_wire.codec import Body

SECURITY_PROTOCOL_IDS = {"PLAINTEXT": 0, "SSL": 1, "SASL_PLAINTEXT": 2, "SASL_SSL": 3}
"""Kafka's SecurityProtocol ids."""
RECOVERING = 1
"""LeaderRecoveryState of a leader that was not in sync when it was elected (KIP-704)."""
RECOVERY_FROM = 6
"""First version of LeaderAndIsr that has the leader recovery state."""
NO_TOPIC_ID = UUID(int=0)


@dataclass(frozen=True, slots=True)
class OwnAddress:
    """How the controller is listed among the brokers."""

    endpoints: tuple[Endpoint, ...]
    inter_broker_listener: str
    rack: str | None = None
    """Only told where the brokers have racks; None: that of the broker with the lowest id. Where some of all that are listed
    have a rack and some have none, brokers refuse to create topics by themselves ("Not all brokers have rack information")."""


def leader_and_isr(cluster: Cluster, send: SendLeaderAndIsr, own: OwnAddress) -> Body:
    """Tell a broker what it leads and follows."""
    rows = send.rows.tolist()
    states = _states(cluster, send.rows)
    recovering = cluster.columns.recovering[send.rows].tolist()
    for row, state, is_new, recovers in zip(rows, states, send.is_new.tolist(), recovering, strict=True):
        state["is_new"] = is_new
        if recovers:
            state["leader_recovery_state"] = RECOVERING
        move = cluster.moves.get(row)
        # Once the target stands alone, brokers are told of no move any more.
        if move is not None and list(move.replicas) == state["replicas"]:
            state["adding_replicas"] = list(move.adding)
            state["removing_replicas"] = list(move.removing)
    leaders = {state["leader"] for state in states}
    return {
        "controller_id": cluster.controller_id,
        "controller_epoch": cluster.controller_epoch,
        "topic_states": _by_topic(cluster, rows, states),
        "live_leaders": list(_addresses(cluster, leaders, own.inter_broker_listener)),
    }


def _states(cluster: Cluster, rows: IntArray) -> list[Body]:
    """Read what every request tells of partitions, column by column: a failover tells thousands."""
    columns = cluster.columns
    return [
        {
            "partition_index": partition,
            "controller_epoch": controller_epoch,
            "leader": leader,
            "leader_epoch": leader_epoch,
            "isr": isr,
            "partition_epoch": partition_epoch,
            "replicas": replicas,
        }
        for partition, controller_epoch, leader, leader_epoch, isr, partition_epoch, replicas in zip(
            columns.partition[rows].tolist(),
            columns.controller_epoch[rows].tolist(),
            columns.leader[rows].tolist(),
            columns.leader_epoch[rows].tolist(),
            unpad_all(columns.isr[rows]),
            columns.partition_epoch[rows].tolist(),
            unpad_all(columns.replicas[rows]),
            strict=True,
        )
    ]


def _by_topic(cluster: Cluster, rows: Sequence[int], states: Sequence[Body]) -> list[Body]:
    """Put partitions under their topics, in order of first appearance."""
    of_row = dict(zip(rows, states, strict=True))
    return [
        {"topic_name": topic.name, "topic_id": _id(topic), "partition_states": [of_row[row] for row in of_topic]}
        for topic, of_topic in cluster.by_topic(rows)
    ]


def update_metadata(cluster: Cluster, send: SendMetadata, own: OwnAddress) -> Body:
    """Tell brokers who lives, and who leads the rows."""
    live = frozenset(cluster.live_ids())
    states = _states(cluster, send.rows)
    for state in states:
        # The same number by the name that it had first.
        state["zk_version"] = state.pop("partition_epoch")
        state["offline_replicas"] = [replica for replica in state["replicas"] if replica not in live]
        if send.deleting:
            state["leader"] = LEADER_DURING_DELETE
    return {
        "controller_id": cluster.controller_id,
        "controller_epoch": cluster.controller_epoch,
        "topic_states": _by_topic(cluster, send.rows.tolist(), states),
        "live_brokers": [_live_broker(broker) for broker in known_brokers(cluster, own)],
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
    racks = [broker.rack for broker in brokers if broker.rack is not None]
    rack = own.rack or racks[0] if racks else None
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


def told_leader_epochs(body: Body) -> Mapping[TopicPartition, int]:
    """Tell under which leader epochs a LeaderAndIsr speaks of its partitions."""
    return {
        TopicPartition(topic["topic_name"], state["partition_index"]): state["leader_epoch"]
        for topic in body["topic_states"]
        for state in topic["partition_states"]
    }


def as_version_has_it(key: ApiKey, body: Body, version: int) -> Body:
    """Leave out what an earlier version has no field for, and Kafka's schema does not let pass: the recovery (KIP-704)."""
    if key is not ApiKey.LEADER_AND_ISR or version >= RECOVERY_FROM:
        return body
    topics = [
        {**topic, "partition_states": [_without_recovery(state) for state in topic["partition_states"]]}
        for topic in body["topic_states"]
    ]
    return {**body, "topic_states": topics}


def _without_recovery(state: Body) -> Body:
    return {name: value for name, value in state.items() if name != "leader_recovery_state"}


def is_told_anew(key: ApiKey, body: Body) -> bool:
    """Whether a broker that is told the present state hears of what a request says; not so of topics that are no more."""
    if key is ApiKey.UPDATE_METADATA:
        return all(
            state["leader"] != LEADER_DURING_DELETE
            for topic in body["topic_states"]
            for state in topic["partition_states"]
        )
    return key is not ApiKey.STOP_REPLICA

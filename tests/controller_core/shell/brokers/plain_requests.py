"""LeaderAndIsr and UpdateMetadata as dicts, one for each partition: the plain twin of the requests that the controller encodes from columns."""

from collections.abc import Sequence
from uuid import UUID

from controller_core.model import Cluster, IntArray, Topic
from controller_core.model.columns import unpad_all
from controller_core.model.decision import SendLeaderAndIsr, SendMetadata
from controller_core.model.ids import LEADER_DURING_DELETE
from controller_core.shell.brokers.requests import OwnAddress, addresses, known_brokers, live_broker
from kafka_wire import Body

RECOVERING = 1
RECOVERY_FROM = 6
"""First version of LeaderAndIsr that has the leader recovery state."""
NO_TOPIC_ID = UUID(int=0)


def leader_and_isr(cluster: Cluster, send: SendLeaderAndIsr, own: OwnAddress) -> Body:
    """Build a LeaderAndIsr request."""
    rows = send.rows.tolist()
    states = _states(cluster, send.rows)
    recovering = cluster.columns.recovering[send.rows].tolist()
    for row, state, is_new, recovers in zip(rows, states, send.is_new.tolist(), recovering, strict=True):
        state["is_new"] = is_new
        if recovers:
            state["leader_recovery_state"] = RECOVERING
        move = cluster.moves.get(row)
        # A move whose target replicas are the only ones left is not sent.
        if move is not None and list(move.replicas) == state["replicas"]:
            state["adding_replicas"] = list(move.adding)
            state["removing_replicas"] = list(move.removing)
    leaders = {state["leader"] for state in states}
    return {
        "controller_id": cluster.controller_id,
        "controller_epoch": cluster.controller_epoch,
        "topic_states": _by_topic(cluster, rows, states),
        "live_leaders": list(addresses(cluster, leaders, own.inter_broker_listener)),
    }


def _states(cluster: Cluster, rows: IntArray) -> list[Body]:
    """Read the fields of a partition that all requests have, column by column: a failover sends thousands."""
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
    """Group partitions by topic, in order of first occurrence."""
    of_row = dict(zip(rows, states, strict=True))
    return [
        {"topic_name": topic.name, "topic_id": _id(topic), "partition_states": [of_row[row] for row in of_topic]}
        for topic, of_topic in cluster.by_topic(rows)
    ]


def update_metadata(cluster: Cluster, send: SendMetadata, own: OwnAddress) -> Body:
    """Build an UpdateMetadata request."""
    live = frozenset(cluster.brokers) - cluster.shutting_down
    states = _states(cluster, send.rows)
    for row, state in zip(send.rows.tolist(), states, strict=True):
        online = live - cluster.offline_at(row)
        # UpdateMetadata has the same number under its older name.
        state["zk_version"] = state.pop("partition_epoch")
        state["offline_replicas"] = [replica for replica in state["replicas"] if replica not in online]
        if send.deleting:
            state["leader"] = LEADER_DURING_DELETE
    return {
        "controller_id": cluster.controller_id,
        "controller_epoch": cluster.controller_epoch,
        "topic_states": _by_topic(cluster, send.rows.tolist(), states),
        "live_brokers": [live_broker(broker) for broker in known_brokers(cluster, own)],
    }


def without_recovery(body: Body) -> Body:
    """Remove the leader recovery state, for versions whose schema does not have it."""
    topics = [
        {**topic, "partition_states": [_without_recovery(state) for state in topic["partition_states"]]}
        for topic in body["topic_states"]
    ]
    return {**body, "topic_states": topics}


def _without_recovery(state: Body) -> Body:
    return {name: value for name, value in state.items() if name != "leader_recovery_state"}


def _id(topic: Topic) -> UUID:
    return topic.topic_id or NO_TOPIC_ID

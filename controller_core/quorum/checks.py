"""Checks of requests: errors that a node answers before it acts, in Kafka's order."""

from controller_core.quorum import states, voters
from controller_core.quorum.node import Node
from kafka_wire import ErrorCode


def wrong_cluster(node: Node, cluster_id: str | None) -> bool:
    """Whether a request is for another cluster; one without a cluster id is for any."""
    return cluster_id is not None and cluster_id != node.settings.cluster_id


def election_error(node: Node, sender_id: int, epoch: int) -> ErrorCode | None:
    """Check a request of a candidate or leader. It need not be a known voter: the voter set here may be an old one."""
    if epoch < node.epoch:
        return ErrorCode.FENCED_LEADER_EPOCH
    return ErrorCode.INVALID_REQUEST if sender_id < 0 else None


def leader_error(node: Node, epoch: int) -> ErrorCode | None:
    """Check a request that only the leader of an epoch answers."""
    if epoch < node.epoch:
        return ErrorCode.FENCED_LEADER_EPOCH
    if epoch > node.epoch:
        return ErrorCode.UNKNOWN_LEADER_EPOCH
    if not isinstance(node.state, states.Leader):
        return ErrorCode.NOT_LEADER_OR_FOLLOWER
    return ErrorCode.BROKER_NOT_AVAILABLE if node.shutdown_due_ms is not None else None


def is_for_this_node(node: Node, voter: voters.ReplicaKey | None) -> bool:
    """Whether a request names this replica, or none; a key without a directory names any with its id."""
    return voter is None or voter.accepts(node.key)


def consistent_leader(node: Node, epoch: int, leader_id: int | None) -> bool:
    """Whether another node's claim about the leader of an epoch agrees with what is known here."""
    if leader_id == node.id:
        return isinstance(node.state, states.Leader) and epoch == node.epoch
    return epoch != node.epoch or leader_id is None or node.leader_id in {None, leader_id}

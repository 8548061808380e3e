"""Metrics of a quorum's node, with the names of Kafka's raft-metrics in Prometheus' form.

Leaves out Kafka's latencies and rates. A value that a node does not know is -1, as in Kafka; only a leader knows the observers.
"""

from prometheus_client import CollectorRegistry, Gauge

from controller_core.quorum.node import Node
from controller_core.quorum.replicas import NO_NODE, endpoint_of
from controller_core.quorum.states import Candidate, Follower, Leader, Prospective, Unattached

PREFIX = "kafka_server_raft_metrics"

STATES = (
    "leader",
    "prospective",
    "prospective-voted",
    "candidate",
    "unattached-voted",
    "follower",
    "observer",
    "unattached",
)
"""Values of current-state (KafkaRaftMetrics)."""

UNKNOWN = -1


def state_name(node: Node) -> str:
    """Return the name of a node's state; a leader that hands over is unattached, as in Kafka."""
    match node.state:
        case Leader():
            return "leader"
        case Prospective(voted=voted):
            return "prospective" if voted is None else "prospective-voted"
        case Candidate():
            return "candidate"
        case Unattached(voted=voted) if voted is not None:
            return "unattached-voted"
        case Follower():
            return "follower" if node.is_voter else "observer"
        case _:
            return "unattached"


def values(node: Node) -> dict[str, int]:
    """Return the values of all metrics but current_state, by their names without the prefix."""
    voters, state, listener = node.voters, node.state, node.settings.listener
    without_address = [one for one in voters.voters if endpoint_of(one.endpoints, listener) is None]
    voters_offset = node.history.voters_offset
    voted = node.settings.key if isinstance(state, Leader) else node.voted
    return {
        "current_leader": NO_NODE if node.leader_id is None else node.leader_id,
        "current_vote": NO_NODE if voted is None else voted.id,
        "current_epoch": node.epoch,
        "high_watermark": UNKNOWN if node.high_watermark is None else node.high_watermark,
        "log_end_offset": node.log.end_offset,
        "log_end_epoch": node.log.last_epoch,
        "number_unknown_voter_connections": len(without_address),
        "number_of_voters": len(voters),
        "number_of_observers": len(state.replicas.observers) if isinstance(state, Leader) else UNKNOWN,
        "uncommitted_voter_change": int(voters_offset is not None and voters_offset >= node.log.high_watermark),
    }


_DESCRIPTIONS = {
    "current_leader": "Id of the leader; -1: unknown.",
    "current_vote": "Id of the node that this one has voted for in its epoch, a leader for itself; -1: none.",
    "current_epoch": "Epoch of the quorum.",
    "high_watermark": "Offset below which all records are committed; -1: unknown.",
    "log_end_offset": "Offset after the last record of the log.",
    "log_end_epoch": "Epoch of the last record of the log.",
    "number_unknown_voter_connections": "Voters whose address on the quorum's listener is not known.",
    "number_of_voters": "Voters.",
    "number_of_observers": "Observers that the leader knows; -1 on other nodes.",
    "uncommitted_voter_change": "1 while a change of the voters is not committed.",
}


class RaftMetrics:
    """Gauges of one node."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._state = Gauge(
            f"{PREFIX}_current_state", "State of the node: 1 for its present one.", ["state"], registry=registry
        )
        self._gauges = {
            name: Gauge(f"{PREFIX}_{name}", text, registry=registry) for name, text in _DESCRIPTIONS.items()
        }

    def update(self, node: Node) -> None:
        """Set all gauges."""
        present = state_name(node)
        for state in STATES:
            self._state.labels(state).set(state == present)
        for name, value in values(node).items():
            self._gauges[name].set(value)

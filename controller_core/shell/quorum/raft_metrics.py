"""Metrics of a quorum's node, with the names of Kafka's raft-metrics in Prometheus' form.

A value that a node does not know is -1, as in Kafka; only a leader knows the observers. Averages and maxima without a value are NaN.
"""

import time

from prometheus_client import CollectorRegistry, Gauge

from controller_core.quorum.node import Node
from controller_core.quorum.states import Candidate, Follower, Leader, Prospective, Unattached
from controller_core.quorum.voters import NO_NODE, ReplicaKey, endpoint_of
from controller_core.shell.quorum.raft_measurements import RaftMeasurements
from controller_core.shell.quorum.wire_batches import directory_or_zero
from kafka_wire.uuids import encode_uuid

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
    without_address = [voter for voter in voters.voters if endpoint_of(voter.endpoints, listener) is None]
    voters_offset = node.history.voters_offset
    voted = _voted(node)
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


def voted_directory_id(node: Node) -> str:
    """Return the directory id of the node that this one has voted for; zeros: none, or not known."""
    voted = _voted(node)
    return encode_uuid(directory_or_zero(None if voted is None else voted.directory_id))


def _voted(node: Node) -> ReplicaKey | None:
    """Return whom a node has voted for; a leader for itself."""
    return node.settings.key if isinstance(node.state, Leader) else node.voted


def measured(measurements: RaftMeasurements, now_ms: int) -> dict[str, float]:
    """Return latencies and rates by their names without the prefix; not poll_idle_ratio_avg, which changes by being read."""
    commit, election = measurements.commit_latency, measurements.election_latency
    return {
        "commit_latency_avg": commit.average(now_ms),
        "commit_latency_max": commit.maximum(now_ms),
        "election_latency_avg": election.average(now_ms),
        "election_latency_max": election.maximum(now_ms),
        "fetch_records_rate": measurements.fetched_records.rate(now_ms),
        "append_records_rate": measurements.appended_records.rate(now_ms),
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
    "commit_latency_avg": "Average time in milliseconds from the append of a batch to its commit, divided by its records.",
    "commit_latency_max": "Largest such time in milliseconds.",
    "election_latency_avg": "Average time in milliseconds from the start of a round of votes to a leader.",
    "election_latency_max": "Largest such time in milliseconds.",
    "fetch_records_rate": "Records per second that were fetched from the leader.",
    "append_records_rate": "Records per second that were appended as the leader.",
    "poll_idle_ratio_avg": "Part of the time, since the last scrape, in which the node had nothing to do.",
}


class RaftMetrics:
    """Gauges of one node."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._state = Gauge(
            f"{PREFIX}_current_state", "State of the node: 1 for its current one.", ["state"], registry=registry
        )
        self._voted_directory = Gauge(
            f"{PREFIX}_current_vote_directory_id",
            "1 for the directory id of the node that this one has voted for in its epoch; zeros: none.",
            ["directory_id"],
            registry=registry,
        )
        self._gauges = {
            name: Gauge(f"{PREFIX}_{name}", text, registry=registry) for name, text in _DESCRIPTIONS.items()
        }

    def update(self, node: Node) -> None:
        """Set the gauges of the node's state."""
        current = state_name(node)
        for state in STATES:
            self._state.labels(state).set(state == current)
        for name, value in values(node).items():
            self._gauges[name].set(value)
        self._voted_directory.clear()
        self._voted_directory.labels(voted_directory_id(node)).set(1)

    def update_measurements(self, measurements: RaftMeasurements, now_ms: int) -> None:
        """Set the gauges of latencies and rates."""
        for name, value in measured(measurements, now_ms).items():
            self._gauges[name].set(value)
        self._gauges["poll_idle_ratio_avg"].set(measurements.idle_ratio(time.monotonic()))

"""Metrics of a quorum's node, with the names and values of Kafka's raft-metrics."""

from dataclasses import replace

import pytest
from prometheus_client import CollectorRegistry

from controller_core.quorum.node import Node, StoredElection
from controller_core.shell.quorum.raft_metrics import RaftMetrics, state_name, values
from tests.controller_core.quorum import nodes


@pytest.mark.parametrize(
    ("node", "name"),
    [
        (nodes.unattached(), "unattached"),
        (nodes.unattached(voted=2), "unattached-voted"),
        (nodes.prospective(), "prospective"),
        (nodes.candidate(), "candidate"),
        (nodes.follower(), "follower"),
        (nodes.leader(), "leader"),
    ],
)
def test_states_have_kafkas_names(node: Node, name: str) -> None:
    """Source: KafkaRaftMetrics."""
    assert state_name(node) == name


@pytest.mark.parametrize(
    ("node", "leader", "vote", "high_watermark"),
    [
        (nodes.unattached(), -1, -1, -1),
        (nodes.unattached(voted=2), -1, 2, -1),
        (nodes.prospective(), -1, -1, -1),
        (nodes.candidate(), -1, 1, -1),
        (nodes.follower(), nodes.LEADER, -1, -1),
        (nodes.leader(), 1, 1, -1),
        (nodes.committed(), 1, 1, 4),
    ],
)
def test_each_state_has_a_leader_a_vote_and_a_high_watermark(
    node: Node, leader: int, vote: int, high_watermark: int
) -> None:
    """KafkaRaftMetricsTest.shouldRecordVoterQuorumState: a candidate and a leader have voted for themselves."""
    found = values(node)

    assert (found["current_leader"], found["current_vote"], found["high_watermark"]) == (leader, vote, high_watermark)


def test_a_follower_that_is_no_voter_is_an_observer() -> None:
    """KafkaRaftMetricsTest.shouldRecordNonVoterQuorumState."""
    following = nodes.started(StoredElection(nodes.EPOCH, nodes.LEADER), node_id=4).node

    assert (state_name(nodes.observer()), state_name(following)) == ("unattached", "observer")


def test_voters_without_an_address_on_the_quorums_listener_are_counted() -> None:
    """KafkaRaftMetricsTest.shouldRecordNumUnknownVoterConnections."""
    node = nodes.unattached()
    elsewhere = replace(node, settings=replace(node.settings, listener="OTHER"))

    assert values(node)["number_unknown_voter_connections"] == 0
    assert values(elsewhere)["number_unknown_voter_connections"] == 3


def test_a_follower_knows_its_leader_but_not_the_observers() -> None:
    """-1 is unknown."""
    found = values(nodes.follower())

    assert (found["current_leader"], found["number_of_voters"], found["number_of_observers"]) == (nodes.LEADER, 3, -1)


def test_all_metrics_are_exported_by_kafkas_names() -> None:
    """In the form of the Prometheus exporter of JMX."""
    registry = CollectorRegistry()
    metrics = RaftMetrics(registry)
    metrics.update(nodes.leader())

    prefix = "kafka_server_raft_metrics_"
    assert registry.get_sample_value(f"{prefix}current_state", {"state": "leader"}) == 1
    assert registry.get_sample_value(f"{prefix}current_state", {"state": "follower"}) == 0
    assert registry.get_sample_value(f"{prefix}current_leader") == 1
    assert registry.get_sample_value(f"{prefix}log_end_offset") == 4

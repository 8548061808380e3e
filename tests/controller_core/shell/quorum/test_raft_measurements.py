"""Latencies and rates of a quorum's node, with the definitions of Kafka's raft-metrics."""

import math

import pytest
from prometheus_client import CollectorRegistry

from controller_core.quorum.batches import Batch
from controller_core.quorum.inputs import Append, Flushed
from controller_core.quorum.messages import FetchResponse, Leadership, VoteResponse
from controller_core.quorum.node import Node, StoredElection
from controller_core.quorum.ready import Ready
from controller_core.quorum.step import step, tick
from controller_core.shell.quorum.raft_measurements import RaftMeasurements, Windows
from controller_core.shell.quorum.raft_metrics import PREFIX, RaftMetrics, measured, voted_directory_id
from kafka_wire.uuids import encode_uuid
from tests.controller_core.quorum import nodes
from tests.controller_core.quorum.nodes import EPOCH, LEADER, NOW_MS, OTHER

ELECTION_MS = NOW_MS + 2000


class Observed:
    """A node whose results are measured."""

    def __init__(self, node: Node) -> None:
        self.node = node
        self.measurements = RaftMeasurements()

    def take(self, ready: Ready, now_ms: int) -> None:
        """Measure a result, which the node's next one follows."""
        self.measurements.observe(self.node, ready, now_ms)
        self.node = ready.node


def test_an_average_a_maximum_and_a_rate_have_the_last_two_windows() -> None:
    """SampledStat and Rate: a window ends after 30 s; the rate of a first window is that of a whole one."""
    values = Windows()
    for value, now_ms in ((10, 0), (20, 10_000), (30, 40_000)):
        values.record(value, now_ms)

    assert (values.average(50_000), values.maximum(50_000), values.rate(50_000)) == (20, 30, 60 / 50)
    assert (values.average(60_000), values.rate(60_000)) == (30, 30 / 50)
    assert math.isnan(values.average(100_000))
    assert math.isnan(values.maximum(100_000))
    assert values.rate(100_000) == 0


def test_the_latency_of_a_commit_is_divided_by_the_records_of_the_batch() -> None:
    """KafkaRaftMetricsTest.shouldRecordLatency; KafkaRaftClient.appendBatch."""
    leader = Observed(nodes.committed())
    leader.take(step(leader.node, Append(5, EPOCH, b"data", 4), NOW_MS), NOW_MS)
    leader.take(step(leader.node, Flushed(leader.node.log.flush_count), NOW_MS), NOW_MS + 10)
    found = measured(leader.measurements, NOW_MS + 10)
    leader.take(nodes.ask(leader.node, nodes.fetch(OTHER, 8, EPOCH)), NOW_MS + 20)

    assert math.isnan(found["commit_latency_avg"])
    assert measured(leader.measurements, NOW_MS + 20)["commit_latency_avg"] == 5
    assert measured(leader.measurements, NOW_MS + 20)["commit_latency_max"] == 5


def test_the_latency_of_an_election_is_from_the_last_round_of_votes_to_a_leader() -> None:
    """KafkaRaftClient: the time starts again with each state in which the node asks for votes."""
    voter = Observed(nodes.unattached())
    voter.take(tick(voter.node, ELECTION_MS), ELECTION_MS)
    granted = VoteResponse(leadership=Leadership(EPOCH, -1), granted=True)
    voter.take(nodes.respond(voter.node, OTHER, granted, ELECTION_MS), ELECTION_MS + 5)
    granted = VoteResponse(leadership=Leadership(EPOCH + 1, -1), granted=True)
    voter.take(nodes.respond(voter.node, OTHER, granted, ELECTION_MS), ELECTION_MS + 12)

    assert measured(voter.measurements, ELECTION_MS + 12)["election_latency_max"] == 7


def test_a_node_that_starts_as_a_follower_has_elected_no_one() -> None:
    """Its leader was known."""
    ready = nodes.started(StoredElection(EPOCH, LEADER))
    measurements = RaftMeasurements()
    measurements.observe(None, ready, NOW_MS)

    assert math.isnan(measured(measurements, NOW_MS)["election_latency_avg"])


def test_records_are_counted_as_appended_by_a_leader_and_fetched_by_a_follower() -> None:
    """KafkaRaftMetricsTest.shouldRecordRate."""
    leader = Observed(nodes.committed())
    leader.take(step(leader.node, Append(5, EPOCH, b"data", 60), NOW_MS), NOW_MS)
    follower = Observed(nodes.follower())
    answer = FetchResponse(leadership=Leadership(EPOCH, LEADER), batches=(Batch(3, 62, EPOCH, b"data"),))
    follower.take(nodes.respond(follower.node, LEADER, answer), NOW_MS)

    of_leader, of_follower = measured(leader.measurements, NOW_MS), measured(follower.measurements, NOW_MS)
    assert (of_leader["append_records_rate"], of_leader["fetch_records_rate"]) == (2, 0)
    assert (of_follower["append_records_rate"], of_follower["fetch_records_rate"]) == (0, 2)


def test_the_idle_ratio_is_of_the_time_since_the_last_scrape() -> None:
    """KafkaRaftMetricsTest.shouldRecordPollIdleRatio."""
    measurements = RaftMeasurements()
    found = [measurements.idle_ratio(0.0)]
    for busy_s, now_s in ((1, 4), (2, 8), (9, 16), (0, 17), (0, 17)):
        measurements.worked(busy_s)
        found.append(measurements.idle_ratio(now_s))

    assert found == [1, 0.75, 0.5, 0, 1, 1]


@pytest.mark.parametrize(
    ("node", "voted"),
    [
        (nodes.unattached(), "AAAAAAAAAAAAAAAAAAAAAA"),
        (nodes.unattached(voted=2), encode_uuid(nodes.key(2).directory_id)),
        (nodes.leader(), encode_uuid(nodes.key(1).directory_id)),
    ],
)
def test_the_directory_id_of_the_vote_is_a_label(node: Node, voted: str) -> None:
    """KafkaRaftMetricsTest.shouldRecordVoterQuorumState: a gauge of Prometheus has no text. Only the current one is exported."""
    registry = CollectorRegistry()
    metrics = RaftMetrics(registry)
    metrics.update(nodes.candidate())
    metrics.update(node)
    found = [
        sample
        for metric in registry.collect()
        for sample in metric.samples
        if sample.name.endswith("vote_directory_id")
    ]

    assert voted_directory_id(node) == voted
    assert [(sample.labels, sample.value) for sample in found] == [({"directory_id": voted}, 1)]


def test_all_latencies_and_rates_are_exported_by_kafkas_names() -> None:
    """KafkaRaftMetrics."""
    registry = CollectorRegistry()
    RaftMetrics(registry).update_measurements(RaftMeasurements(), NOW_MS)
    names = {"append_records_rate": 0, "fetch_records_rate": 0, "poll_idle_ratio_avg": 1}
    missing = ["commit_latency_avg", "commit_latency_max", "election_latency_avg", "election_latency_max"]

    assert {name: registry.get_sample_value(f"{PREFIX}_{name}") for name in names} == names
    assert all(math.isnan(registry.get_sample_value(f"{PREFIX}_{name}") or 0) for name in missing)

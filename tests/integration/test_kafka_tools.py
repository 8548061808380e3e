"""Kafka's own command line tools, from its jars, against the brokers' client listener under a Steward controller."""

import json
from pathlib import Path

import pytest

from lab.peers import kafka_tools
from lab.processes.waiting import wait_until
from tests.integration.conftest import PATIENCE_S, Held

pytestmark = pytest.mark.kafka


def test_kafka_topics_creates_describes_grows_and_deletes(held: Held) -> None:
    """TopicCommand, from the creation of a topic to its deletion."""
    server = ("--bootstrap-server", held.cluster.bootstrap())

    made = kafka_tools.kafka_topics(
        *server, "--create", "--topic", "tools", "--partitions", "4", "--replication-factor", "3"
    )
    described = kafka_tools.kafka_topics(*server, "--describe", "--topic", "tools")
    grown = kafka_tools.kafka_topics(*server, "--alter", "--topic", "tools", "--partitions", "6")
    listed = kafka_tools.kafka_topics(*server, "--list")

    assert "Created topic tools." in made.stdout
    assert "PartitionCount: 4\tReplicationFactor: 3" in described.stdout
    assert grown.returncode == 0, grown.stderr
    assert "tools" in listed.stdout.split()
    assert set(range(6)) == set(held.cluster.assignment("tools"))

    deleted = kafka_tools.kafka_topics(*server, "--delete", "--topic", "tools")

    assert deleted.returncode == 0, deleted.stderr
    assert "tools" not in kafka_tools.kafka_topics(*server, "--list").stdout.split()
    assert held.cluster.zookeeper.read("/kafka/steward/brokers/topics/tools") is None


def test_kafka_topics_shows_kafkas_message_for_too_many_replicas(held: Held) -> None:
    """Kafka's message for a replication factor over the number of live brokers (AdminUtils.assignReplicasToBrokers)."""
    refused = kafka_tools.kafka_topics(
        "--bootstrap-server", held.cluster.bootstrap(), "--create", "--topic", "wide", "--replication-factor", "5"
    )

    assert refused.returncode != 0
    assert "Replication factor: 5 larger than available brokers: 4." in refused.stdout


def test_kafka_reassign_partitions_executes_and_verifies_and_leader_election_prefers(
    held: Held, tmp_path: Path
) -> None:
    """A move with its throttle, from start to the last throttle removed (ReassignPartitionsCommand, LeaderElectionCommand)."""
    server = ("--bootstrap-server", held.cluster.bootstrap())
    held.create("moving", partitions=2)
    replicas = [2, 3, 4]
    moves = [{"topic": "moving", "partition": partition, "replicas": replicas} for partition in (0, 1)]
    plan = tmp_path / "plan.json"
    plan.write_text(json.dumps({"version": 1, "partitions": moves}))

    arguments = (*server, "--reassignment-json-file", str(plan))
    started = kafka_tools.kafka_reassign_partitions(*arguments, "--execute", "--throttle", "50000000")
    wait_until(
        lambda: held.cluster.assignment("moving") == {0: replicas, 1: replicas}, timeout_s=PATIENCE_S, what="the target"
    )
    verified = kafka_tools.kafka_reassign_partitions(*arguments, "--verify")
    elected = kafka_tools.kafka_leader_election(*server, "--election-type", "PREFERRED", "--all-topic-partitions")

    assert "Successfully started partition reassignments for moving-0,moving-1" in started.stdout
    assert verified.returncode == 0, verified.stdout + verified.stderr
    assert "Reassignment of partition moving-0 is completed." in verified.stdout
    assert elected.returncode == 0, elected.stderr
    assert held.leaders("moving") == {0: 2, 1: 2}

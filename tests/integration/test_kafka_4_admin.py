"""Kafka's tools through stock brokers of Kafka 4.3, which forward their requests in Envelopes to Steward's controller."""

import json
from pathlib import Path

import pytest

from lab.peers.kafka_tools import run_tool_of_kafka_4
from tests.integration.steward_controllers import steward_cluster

pytestmark = pytest.mark.kafka

TOPICS = "org.apache.kafka.tools.TopicCommand"
MOVES = "org.apache.kafka.tools.reassign.ReassignPartitionsCommand"
ELECTIONS = "org.apache.kafka.tools.LeaderElectionCommand"
CONFIGS = "kafka.admin.ConfigCommand"


@pytest.mark.shows("F68")
def test_tools_manage_topics_moves_elections_configs_and_users_by_a_broker(tmp_path: Path) -> None:
    """What one command changes the next one finds, and errors have Kafka's words."""
    plan = tmp_path / "plan.json"
    plan.write_text(json.dumps({"version": 1, "partitions": [{"topic": "orders", "partition": 0, "replicas": [2]}]}))
    with steward_cluster(controllers=1, brokers=2) as cluster:

        def run(main_class: str, *arguments: str) -> str:
            done = run_tool_of_kafka_4(main_class, "--bootstrap-server", cluster.bootstrap, *arguments)
            return done.stdout + done.stderr

        create = ("--create", "--topic", "orders", "--partitions", "3", "--replication-factor", "2")
        of_orders = ("--entity-type", "topics", "--entity-name", "orders")
        created, again = run(TOPICS, *create, "--config", "retention.ms=1000000"), run(TOPICS, *create)
        run(TOPICS, "--alter", "--topic", "orders", "--partitions", "5")
        run(MOVES, "--reassignment-json-file", str(plan), "--execute")
        cluster.wait_for_move("orders", 0, (2,))
        verified = run(MOVES, "--reassignment-json-file", str(plan), "--verify")
        run(ELECTIONS, "--election-type", "preferred", "--all-topic-partitions")
        altered = run(CONFIGS, "--alter", *of_orders, "--add-config", "retention.ms=5")
        refused = run(CONFIGS, "--alter", *of_orders, "--add-config", "retention.ms=abc")
        user = ("--entity-type", "users", "--entity-name", "alice")
        run(CONFIGS, "--alter", *user, "--add-config", "SCRAM-SHA-256=[iterations=4096,password=secret]")
        described, alice = run(CONFIGS, "--describe", *of_orders), run(CONFIGS, "--describe", *user)
        subscription = ("--entity-type", "client-metrics", "--entity-name", "all")
        run(CONFIGS, "--alter", *subscription, "--add-config", "interval.ms=1000,metrics=[org.apache.kafka.]")
        wrong_interval = run(CONFIGS, "--alter", *subscription, "--add-config", "interval.ms=1")
        subscriptions = run(CONFIGS, "--describe", "--entity-type", "client-metrics")
        listed = run(TOPICS, "--describe", "--topic", "orders")
        run(TOPICS, "--delete", "--topic", "orders")
        left = run(TOPICS, "--list")

    assert "Created topic orders." in created
    assert "Topic 'orders' already exists." in again
    assert "PartitionCount: 5" in listed
    assert "Reassignment of partition orders-0 is completed." in verified
    assert "Completed updating config for topic orders." in altered
    assert "Invalid value abc for configuration retention.ms: Not a number of type LONG" in refused
    assert "retention.ms=5 " in described
    assert "SCRAM-SHA-256=iterations=4096" in alice
    assert "Invalid value 1 for interval.ms, interval must be between 100 and 3600000 (1 hour)" in wrong_interval
    assert "interval.ms=1000 sensitive=false synonyms={DYNAMIC_CLIENT_METRICS_CONFIG:interval.ms=1000}" in subscriptions
    assert left.strip() == ""

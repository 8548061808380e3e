"""Defaults that administrators set for all brokers of a running cluster apply to the controller, which is not a broker."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from kafka_wire import ApiKey
from lab.peers.kafka_tools import run_tool
from lab.processes.waiting import wait_until
from tests.integration.clusters import call, create_on
from tests.integration.conftest import PATIENCE_S, Held
from tests.integration.faults import wait_until_converged

pytestmark = pytest.mark.kafka

UNCLEAN_ELECTIONS = "kafka_controller_controllerstats_uncleanleaderelections_total"
DYNAMIC_DEFAULT_BROKER_CONFIG = 3
"""DescribeConfigsResponse.ConfigSource."""


def alter_default(held: Held, *change: str) -> None:
    """Change the default of all brokers with Kafka's own tool."""
    where = ("--bootstrap-server", held.cluster.bootstrap(), "--entity-type", "brokers", "--entity-default")
    done = run_tool("kafka.admin.ConfigCommand", *where, "--alter", *change)
    assert done.returncode == 0, done.stderr


@contextmanager
def default_of_all_brokers(held: Held, name: str, value: str) -> Iterator[None]:
    """Set a default while the block lasts."""
    alter_default(held, "--add-config", f"{name}={value}")
    try:
        yield
    finally:
        alter_default(held, "--delete-config", name)


def configs_of_a_new_topic(held: Held) -> dict[str, tuple[str, int]]:
    """Ask the controller for the configuration of a topic without its own settings, with the sources (KIP-525).

    The number of partitions is the cluster's default, so that the request waits until a broker has reported its settings.
    """
    topic = {"name": "never-made", "num_partitions": -1, "replication_factor": 1, "assignments": [], "configs": []}
    body = {"topics": [topic], "timeout_ms": int(PATIENCE_S * 1000), "validate_only": True}

    async def ask() -> dict[str, tuple[str, int]]:
        (answer,) = (await call(held.controller.address(), ApiKey.CREATE_TOPICS, body))["topics"]
        assert answer["error_code"] == 0, answer
        return {config["name"]: (config["value"], config["config_source"]) for config in answer["configs"]}

    return asyncio.run(ask())


def test_unclean_elections_are_enabled_for_all_topics_at_once(held: Held) -> None:
    """C7: the partition has no leader while the last in-sync replica is down; kafka-configs --entity-default enables the election."""
    held.wait_until_held()
    create_on(held, "last-resort", [3, 4])
    last, behind = held.cluster.broker(3), held.cluster.broker(4)
    before = held.controller.metric(UNCLEAN_ELECTIONS) or 0.0
    behind.kill()
    wait_until(lambda: held.state("last-resort", 0)["isr"] == [3], timeout_s=PATIENCE_S, what="one left in the ISR")
    last.kill()
    wait_until(lambda: held.state("last-resort", 0)["leader"] == -1, timeout_s=PATIENCE_S, what="no leader")
    behind.start()
    offline = held.state("last-resort", 0)

    with default_of_all_brokers(held, "unclean.leader.election.enable", "true"):
        wait_until(lambda: held.state("last-resort", 0)["leader"] == 4, timeout_s=PATIENCE_S, what="an unclean leader")
    unclean = held.controller.metric(UNCLEAN_ELECTIONS) or 0.0
    last.start()
    wait_until_converged(held, "an unclean election and the start of who was led by")

    assert (offline["leader"], offline["isr"]) == (-1, [3])
    assert unclean - before == 1


def test_defaults_of_new_topics_are_the_current_defaults_of_brokers(held: Held) -> None:
    """DynamicBrokerConfig: CreateTopics returns the configuration that brokers return for existing topics.

    In Kafka default.replication.factor, num.partitions and delete.topic.enable cannot be changed while a broker runs.
    """
    held.wait_until_held()
    before = configs_of_a_new_topic(held)
    with default_of_all_brokers(held, "log.retention.ms", "86400007"):
        wait_until(
            lambda: (
                {**before, "retention.ms": ("86400007", DYNAMIC_DEFAULT_BROKER_CONFIG)} == configs_of_a_new_topic(held)
            ),
            timeout_s=PATIENCE_S,
            what="the new default",
        )
    wait_until(lambda: before == configs_of_a_new_topic(held), timeout_s=PATIENCE_S, what="the old default")
    assert DYNAMIC_DEFAULT_BROKER_CONFIG not in {source for _, source in before.values()}

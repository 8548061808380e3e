"""What administrators set for all brokers while a cluster runs counts for the controller too, which is no broker."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from kafka_wire.api import ApiKey
from kafka_wire.net.client import Connection
from lab.tools import run_tool
from lab.waiting import wait_until
from tests.integration.clusters import create_on
from tests.integration.conftest import PATIENCE_S, Held
from tests.integration.faults import wait_until_converged

pytestmark = [pytest.mark.kafka, pytest.mark.timeout(240)]

UNCLEAN_ELECTIONS = "kafka_controller_controllerstats_uncleanleaderelections_total"
DYNAMIC_DEFAULT_BROKER_CONFIG = 3
"""DescribeConfigsResponse.ConfigSource."""


def alter_default(held: Held, *change: str) -> None:
    """Change the default of all brokers by Kafka's own tool."""
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


def told_of_a_new_topic(held: Held) -> dict[str, tuple[str, int]]:
    """Ask our controller which settings a topic would have that has none of its own, with their sources (KIP-525)."""
    topic = {"name": "never-made", "num_partitions": 1, "replication_factor": 1, "assignments": [], "configs": []}
    body = {"topics": [topic], "timeout_ms": int(PATIENCE_S * 1000), "validate_only": True}

    async def ask() -> dict[str, tuple[str, int]]:
        host, _, port = held.controller.address().rpartition(":")
        connection = await Connection.open(host, int(port), client_id="tests")
        try:
            (answer,) = (await connection.call(ApiKey.CREATE_TOPICS, body))["topics"]
        finally:
            await connection.close()
        assert answer["error_code"] == 0, answer
        return {config["name"]: (config["value"], config["config_source"]) for config in answer["configs"]}

    return asyncio.run(ask())


def test_leaders_from_outside_the_isr_are_allowed_for_all_topics_at_once(held: Held) -> None:
    """C7: nobody leads while the last in-sync replica is away; kafka-configs --entity-default allows it, and somebody does."""
    held.wait_until_held()
    create_on(held, "last-resort", [3, 4])
    last, behind = held.cluster.broker(3), held.cluster.broker(4)
    before = held.controller.metric(UNCLEAN_ELECTIONS) or 0.0
    behind.kill()
    wait_until(lambda: held.state("last-resort", 0)["isr"] == [3], timeout_s=PATIENCE_S, what="one left in the ISR")
    last.kill()
    wait_until(lambda: held.state("last-resort", 0)["leader"] == -1, timeout_s=PATIENCE_S, what="nobody to lead")
    behind.start()
    offline = held.state("last-resort", 0)

    with default_of_all_brokers(held, "unclean.leader.election.enable", "true"):
        wait_until(lambda: held.state("last-resort", 0)["leader"] == 4, timeout_s=PATIENCE_S, what="an unclean leader")
    unclean = held.controller.metric(UNCLEAN_ELECTIONS) or 0.0
    last.start()
    wait_until_converged(held, "an unclean election and the start of who was led by")

    assert (offline["leader"], offline["isr"]) == (-1, [3])
    assert unclean - before == 1


def test_defaults_of_new_topics_are_those_that_brokers_have_now(held: Held) -> None:
    """DynamicBrokerConfig: what CreateTopics tells of a new topic is what a broker tells of one that is there.

    Kafka lets nobody change default.replication.factor, num.partitions or delete.topic.enable while a broker runs.
    """
    held.wait_until_held()
    before = told_of_a_new_topic(held)
    with default_of_all_brokers(held, "log.retention.ms", "86400007"):
        wait_until(
            lambda: (
                {**before, "retention.ms": ("86400007", DYNAMIC_DEFAULT_BROKER_CONFIG)} == told_of_a_new_topic(held)
            ),
            timeout_s=PATIENCE_S,
            what="the new default told",
        )
    wait_until(lambda: before == told_of_a_new_topic(held), timeout_s=PATIENCE_S, what="the old default told again")
    assert DYNAMIC_DEFAULT_BROKER_CONFIG not in {source for _, source in before.values()}

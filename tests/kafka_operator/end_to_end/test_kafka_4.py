"""The Admin client on a stock Kafka 4.x cluster with a quorum of its own: what a Cluster shows, elections, import (mode external)."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator

import pytest
from typer.testing import CliRunner

from kafka_operator.admin.client import KafkaAdmin
from kafka_operator.admin.port import AdminError
from kafka_operator.decide.elections.election import Elect
from kafka_operator.decide.kafka.observed import KafkaTopic
from kafka_operator.importing.manifests import ImportSelection
from kafka_operator.importing.run import read_topics
from kafka_operator.metrics import KafkaMetrics
from kafka_operator.resources.election import ElectionType
from kafka_operator.resources.reassignment import Partition
from lab.peers.kraft import KraftNode, kraft_cluster
from steward.main import app
from tests.kafka_operator.stock import Stock

pytestmark = pytest.mark.kafka

PATIENCE_S = 60.0
POLL_INTERVAL_S = 0.2


@pytest.fixture(scope="module")
def nodes() -> Iterator[dict[int, KraftNode]]:
    """Two brokers, the first of which is the controller as well."""
    with kraft_cluster((1, 2)) as running:
        yield running


@pytest.fixture(scope="module")
def stock(nodes: dict[int, KraftNode]) -> Stock:
    """The cluster as its owner uses it."""
    return Stock(nodes[1].address)


@pytest.fixture
async def admin(nodes: dict[int, KraftNode]) -> AsyncIterator[KafkaAdmin]:
    """The operator's client."""
    client = KafkaAdmin([nodes[1].address], KafkaMetrics())
    yield client
    await client.close()


async def eventually(holds: Callable[[], Awaitable[bool]]) -> None:
    """Wait until something holds in a cluster that gives no event for it; a call that fails is made again."""
    async with asyncio.timeout(PATIENCE_S):
        while True:
            try:
                if await holds():
                    return
            except AdminError:
                await asyncio.sleep(POLL_INTERVAL_S)
                continue
            await asyncio.sleep(POLL_INTERVAL_S)


async def leaders(admin: KafkaAdmin, topic: str) -> list[int]:
    """Who leads each partition."""
    found = (await admin.describe_topics([topic])).get(topic)
    return [item.leader for item in found.partitions] if isinstance(found, KafkaTopic) else []


async def test_a_cluster_with_combined_nodes_is_described(admin: KafkaAdmin, stock: Stock) -> None:
    """Combined nodes are brokers, too; metadata.version replaces the inter-broker protocol."""
    seen = await admin.describe_cluster()
    assert seen.broker_ids == (1, 2)
    assert [(await admin.describe_health()).controller_id for _ in range(5)] == [1] * 5

    versions = await admin.describe_versions(seen.broker_ids)
    assert (
        versions.software,
        versions.metadata_version,
        versions.inter_broker_protocol,
    ) == (("4.3",), "4.3-IV0", None)
    assert versions.features

    await asyncio.to_thread(stock.create, "seen", [[1, 2], [2, 1]])

    async def well() -> bool:
        cluster_metrics = await admin.describe_cluster_metrics()
        return (
            cluster_metrics.partitions,
            cluster_metrics.under_replicated,
            cluster_metrics.offline,
            cluster_metrics.imbalance.partitions,
        ) == (2, 0, 0, 0)

    await eventually(well)


@pytest.mark.shows("F35")
async def test_leaders_are_elected_and_elections_that_are_not_needed_do_not_fail(
    admin: KafkaAdmin, stock: Stock, nodes: dict[int, KraftNode]
) -> None:
    """ElectLeaders through a broker that is not the controller's leader at all; refused where the preferred one is away."""
    await asyncio.to_thread(stock.create, "elected", [[2, 1], [1, 2]])
    everything = Elect(ElectionType.PREFERRED, (Partition("elected", 0), Partition("elected", 1)))
    assert await admin.elect_leaders(everything) == {}

    async def in_sync() -> bool:
        return (await admin.describe_cluster_metrics()).under_replicated == 0

    await eventually(in_sync)
    await asyncio.to_thread(nodes[2].stop)

    async def one_leads() -> bool:
        return await leaders(admin, "elected") == [1, 1]

    await eventually(one_leads)
    failed = await admin.elect_leaders(everything)
    assert {partition: failure.name for partition, failure in failed.items()} == {
        Partition("elected", 0): "PREFERRED_LEADER_NOT_AVAILABLE"
    }
    cluster_metrics = await admin.describe_cluster_metrics()
    assert cluster_metrics.under_replicated > 0
    assert cluster_metrics.imbalance.worst_broker == 2

    await asyncio.to_thread(nodes[2].start)

    async def elected() -> bool:
        return await admin.elect_leaders(everything) == {} and await leaders(admin, "elected") == [2, 1]

    await eventually(elected)
    gone = await admin.elect_leaders(Elect(ElectionType.UNCLEAN, (Partition("not-there", 0),)))
    assert [failure.name for failure in gone.values()] == ["UNKNOWN_TOPIC_OR_PARTITION"]


@pytest.mark.shows("E18")
async def test_what_if_predicts_the_leaders_and_offline_partitions_after_a_broker_is_killed(
    admin: KafkaAdmin, stock: Stock, nodes: dict[int, KraftNode]
) -> None:
    """The prediction by the command, then kill -9: KRaft's controller elects the same leaders. The disks are those of this machine."""
    await asyncio.to_thread(stock.create, "lost", [[2, 1], [1, 2]])
    await asyncio.to_thread(stock.create, "single", [[2]])

    async def in_sync() -> bool:
        return (await admin.describe_cluster_metrics()).under_replicated == 0

    await eventually(in_sync)
    command = ["what-if", "--bootstrap-server", nodes[1].address, "--lose", "broker=2", "--output", "json"]
    answer = await asyncio.to_thread(CliRunner().invoke, app, command)
    predicted = json.loads(answer.stdout)
    await asyncio.to_thread(nodes[2].process.kill)
    try:

        async def elected() -> bool:
            return await leaders(admin, "lost") == [1, 1] and await leaders(admin, "single") == [-1]

        await eventually(elected)
        layout = await admin.describe_layout(None)
        led = [item.leader for topic in layout.topics.values() for item in topic.partitions]
    finally:
        await asyncio.to_thread(nodes[2].start)

    after = {broker["id"]: broker["leaders_after"] for broker in predicted["brokers"]}
    assert after == {1: led.count(1), 2: 0}
    assert predicted["offline"]["new"]["in_all"] == led.count(-1)
    assert predicted["no_replica_left"]["listed"] == ["single-0"]
    assert "lost-0" in predicted["repair"]["left"]["listed"]
    assert all(broker["capacity_bytes"] > broker["bytes_before"] >= 0 for broker in predicted["brokers"])


async def test_its_topics_are_imported(admin: KafkaAdmin, stock: Stock) -> None:
    """Only what is set on a topic itself."""
    await asyncio.to_thread(stock.create, "imported", [[1, 2]])
    await asyncio.to_thread(stock.set_config, "imported", "retention.ms", "12345")

    manifests = await read_topics(admin, ImportSelection("main", include=("imported",)), pytest.fail)

    expected = {
        "clusterRef": {"name": "main"},
        "partitions": 1,
        "replicationFactor": 2,
        "config": {"retention.ms": "12345"},
        "deletionPolicy": "Retain",
    }
    assert [manifest.document["spec"] for manifest in manifests] == [expected]

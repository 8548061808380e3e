"""The quorum of a stock Kafka 4.x cluster of three combined nodes, and the roll that waits for it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import replace

import pytest

from kafka_operator.admin.client import KafkaAdmin
from kafka_operator.admin.port import AdminError
from kafka_operator.decide.observed import Quorum
from kafka_operator.decide.quorum import out_of_sync_ids, quorum_status
from kafka_operator.decide.replica_health import ReplicaHealth
from kafka_operator.decide.rolling import Hold, Replace, RollDecision, RollView, decide_roll
from lab.kraft import KraftCluster, kraft_cluster
from reconciler.metrics import Metrics
from tests.kafka_operator.cluster_pods import OLD, pod, pod_set
from tests.kafka_operator.makers import NOW

pytestmark = [pytest.mark.kafka, pytest.mark.timeout(240)]

NODES = (1, 2, 3)

PATIENCE_S = 60.0
POLL_INTERVAL_S = 0.2


@pytest.fixture(scope="module")
def nodes() -> Iterator[KraftCluster]:
    """Three nodes, each a broker and a voter."""
    with kraft_cluster(NODES, voter_ids=NODES) as running:
        yield running


@pytest.fixture
async def admin(nodes: KraftCluster) -> AsyncIterator[KafkaAdmin]:
    """The operator's client."""
    client = KafkaAdmin(nodes.bootstrap().split(","), Metrics())
    yield client
    await client.close()


async def health_when(admin: KafkaAdmin, holds: Callable[[Quorum], bool]) -> ReplicaHealth:
    """Return the health once the quorum is as expected; a call that fails is repeated."""
    async with asyncio.timeout(PATIENCE_S):
        while True:
            try:
                found = await admin.describe_health()
            except AdminError:
                found = None
            if found is not None and isinstance(found.quorum, Quorum) and found.quorum.voters and holds(found.quorum):
                return found
            await asyncio.sleep(POLL_INTERVAL_S)


def late(quorum: Quorum) -> tuple[int, ...]:
    """The voters out of sync."""
    return out_of_sync_ids(quorum, quorum.voters)


def rolled(health: ReplicaHealth, *due: int) -> RollDecision:
    """Decide which pod is replaced; those of the old revision are due."""
    pods = (pod(node_id, OLD) if node_id in due else pod(node_id) for node_id in NODES if node_id in health.broker_ids)
    return decide_roll(
        RollView(NOW, pod_set(*pods, first_id=1, replicas=len(health.broker_ids)), {}, replace(health, min_isr={}))
    )


@pytest.mark.shows("F33", "F45")
async def test_a_voter_waits_while_another_one_is_away_and_the_leader_is_the_last(
    admin: KafkaAdmin, nodes: KraftCluster
) -> None:
    """DescribeQuorum of Kafka 4.3: of three voters, none may go while one is killed. Brokers without topics have no other reason to wait."""
    well = await health_when(admin, lambda quorum: late(quorum) == () and len(quorum.voters) == len(NODES))
    status = quorum_status(well.quorum)
    assert status is not None
    assert (status.voter_ids, status.out_of_sync_observer_ids) == (NODES, ())
    followers = sorted(set(NODES) - {well.controller_id})
    first = rolled(well, *NODES)
    assert isinstance(first, Replace)
    assert first.pod.node_id == followers[0]

    await asyncio.to_thread(nodes[followers[1]].process.kill)
    try:
        away = await health_when(admin, lambda quorum: late(quorum) == (followers[1],))
    finally:
        await asyncio.to_thread(nodes[followers[1]].start)

    held = rolled(away, followers[0])
    assert isinstance(held, Hold)
    assert held.reason == "WaitingForQuorum"
    await health_when(admin, lambda quorum: late(quorum) == ())

"""Pods of a stock Kafka 4.x cluster, three combined nodes (brokers and voters) and a broker, drained, rolled and scaled in by the operator.

No pod runs here: `pod_stand_in` simulates the StatefulSet's controller and the kubelet.
"""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass, replace

import pytest

from kafka_operator.admin.client import KafkaAdmin
from kafka_operator.admin.port import AdminError
from kafka_operator.decide.clusters.cordon import SETTING
from kafka_operator.decide.clusters.rolling import Hold, RollDecision, RollView, decide_roll
from kafka_operator.decide.kafka.log_dirs import summarize
from kafka_operator.decide.kafka.observed import Quorum
from kafka_operator.decide.kafka.quorum import out_of_sync_ids, quorum_status
from kafka_operator.decide.kafka.replica_dirs import ReplicaDir, replica_dirs_of
from kafka_operator.decide.kafka.replica_health import ReplicaHealth
from kafka_operator.decide.reassignments.throttle import LOG_DIRS_RATE
from kafka_operator.metrics import KafkaMetrics
from kafka_operator.resources.log_dirs import NO_PROBLEMS, Directory
from kafka_operator.resources.reassignment import Partition
from lab.checks.traffic import Traffic
from lab.peers.kraft import KraftCluster, kraft_cluster
from lab.peers.kubernetes import OPERATOR, KubernetesApi
from lab.peers.steward import StewardOperator
from lab.processes.folder import lab_folder
from lab.processes.waiting import wait_until
from tests.conftest import SMALL_FETCHES
from tests.integration.kubernetes import User, manifest, plan_text
from tests.integration.pod_stand_in import PodStandIn
from tests.integration.test_rolling import PATIENCE_S, declared, wait_for
from tests.kafka_operator.cluster_pods import OLD, pod, pod_set
from tests.kafka_operator.makers import NOW
from tests.kafka_operator.stock import Stock

pytestmark = [pytest.mark.kafka, pytest.mark.kubernetes, pytest.mark.timeout(600)]

VOTERS, BROKERS = (1, 2, 3), (1, 2, 3, 4)
POLL_INTERVAL_S = 0.2

STEADY = {"controller.quorum.fetch.timeout.ms": "20000"}
"""The leader stays the leader while other nodes restart, also on a busy machine; one that is stopped hands over at once."""


@pytest.fixture(scope="module")
def nodes() -> Iterator[KraftCluster]:
    """Four brokers, the first three of which are voters as well, with two log directories."""
    with kraft_cluster(BROKERS, voter_ids=VOTERS, directories=2, settings=STEADY | SMALL_FETCHES) as running:
        yield running


@pytest.fixture
async def admin(nodes: KraftCluster) -> AsyncIterator[KafkaAdmin]:
    """The operator's client."""
    client = KafkaAdmin(nodes.bootstrap().split(","), KafkaMetrics())
    yield client
    await client.close()


@pytest.fixture(scope="module")
def stock(nodes: KraftCluster) -> Stock:
    """The cluster as its owner uses it."""
    return Stock(nodes.bootstrap())


@dataclass(frozen=True)
class Site:
    """A user, and the pods of the user's brokers."""

    user: User
    pods: PodStandIn


@pytest.fixture(scope="module")
def site(nodes: KraftCluster, pods_api: KubernetesApi) -> Iterator[Site]:
    """A namespace with Cluster `main`, whose brokers are pods, and an operator for them."""
    user = User(pods_api, "kafka-4")
    with lab_folder() as folder:
        arguments = ["--pods", "--drain", "--namespace=kafka-4"]
        operator = StewardOperator(pods_api.kubeconfig_for(OPERATOR), folder, arguments=arguments)
        try:
            with PodStandIn(pods_api, "kafka-4", nodes) as pods:
                operator.start()
                user.apply(declared(nodes.bootstrap(), len(BROKERS)))
                wait_for(user, "Settled", "True", "AsDeclared")
                yield Site(user, pods)
        finally:
            operator.close()


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


def rolled(health: ReplicaHealth, due: int) -> RollDecision:
    """Decide about one pod of the old revision in a cluster without partitions, which may have a reason of their own to wait."""
    made = pod_set(pod(due, OLD), first_id=due)
    return decide_roll(RollView(NOW, made, {}, replace(health, partitions=(), min_isr={})))


@pytest.mark.shows("F33", "F34", "F45", "E9")
def test_pods_are_drained_and_rolled_one_at_a_time_the_leader_of_the_quorum_last(
    nodes: KraftCluster, site: Site, stock: Stock
) -> None:
    """A drain and a roll of all nodes under load lose no acknowledged record; Metadata would name a random node as the controller."""
    user, pods = site.user, site.pods
    stock.create("rolled", [[1, 2, 3], [2, 3, 4], [3, 4, 1]])
    stock.set_config("rolled", "min.insync.replicas", "2")
    leader = user.read("clusters", "main")["status"]["controllerId"]
    drained = max(set(VOTERS) - {leader})

    with Traffic(nodes.bootstrap(), "rolled", consume=False) as traffic:
        user.kubectl("cordon", pods.node_of(drained - 1))
        pods.roll()
        wait_until(
            lambda: pods.revisions() == ["main-broker-rev2"] * len(BROKERS),
            timeout_s=PATIENCE_S,
            what="all pods rolled",
            context=lambda: f"{pods.deleted}, {user.read('clusters', 'main').get('status')}",
        )
        wait_for(user, "Settled", "True", "AsDeclared")
        report = traffic.stop()

    others = sorted(set(BROKERS) - {drained, leader})
    assert pods.deleted == [f"main-broker-{node_id - 1}" for node_id in (drained, *others, leader)]
    assert report.ok, report.summary()
    assert user.read("clusters", "main")["status"]["mode"] == "KRaft"


@pytest.mark.shows("F21", "F43", "F45")
def test_a_broker_is_cordoned_and_emptied_before_it_is_scaled_in_and_a_voter_stays(site: Site, stock: Stock) -> None:
    """Broker 4 holds a replica at first, and is no voter; broker 3 would be missed by the quorum, whatever it holds."""
    user, pods = site.user, site.pods
    for topic in stock.topics():
        stock.delete(topic)
    stock.create("held", [[1, 4]])
    user.kubectl("scale", "cluster.steward.dev/main", "--replicas=3")
    assert "broker 4 holds held-0." in wait_for(user, "Scaled", "False", "ScaleInRefused")
    wait_until(lambda: stock.broker_config(4, SETTING) == "*", timeout_s=PATIENCE_S, what="broker 4 is cordoned")

    user.apply(plan_text("off-4", {("held", 0): [1, 2]}))

    wait_for(user, "Scaled", "True", "AsDeclared")
    wait_until(lambda: sorted(pods.pods()) == [0, 1, 2], timeout_s=PATIENCE_S, what="the pod is removed")
    user.kubectl("scale", "cluster.steward.dev/main", "--replicas=2")
    message = wait_for(user, "Scaled", "False", "ScaleInRefused")
    assert "voters of the quorum would be removed: 3." in message
    assert pods.replicas() == len(VOTERS)


async def dirs_when(admin: KafkaAdmin, partitions: list[Partition], holds: Callable[[list[ReplicaDir]], bool]) -> None:
    """Wait until the replicas of broker 1 are in directories as expected."""
    async with asyncio.timeout(PATIENCE_S):
        while True:
            found = replica_dirs_of(await admin.describe_replica_dirs([1], partitions))
            if len(found) == len(partitions) and holds([found[name][1] for name in partitions]):
                return
            await asyncio.sleep(POLL_INTERVAL_S)


@pytest.mark.shows("F44")
async def test_replicas_move_between_the_directories_of_a_broker_and_back(
    admin: KafkaAdmin, nodes: KraftCluster, site: Site, stock: Stock
) -> None:
    """KIP-113: a cancelled move leaves no future log and no rate; a completed one is rolled back."""
    user, (first, second) = site.user, map(str, nodes[1].log_dirs)
    stock.create("uneven", [[1]] * 4)
    await asyncio.to_thread(stock.fill, "uneven", 80)
    partitions = [Partition("uneven", index) for index in range(4)]
    assert await admin.move_log_dirs({1: dict.fromkeys(partitions, first)}) == {}
    await dirs_when(admin, partitions, lambda held: all(replica == ReplicaDir(first) for replica in held))
    goal = {"balanceLogDirs": True, "topics": ["uneven"]}

    def applied(name: str, **spec: object) -> None:
        digest = user.read("reassignments", name)["status"]["digest"]
        user.apply(
            manifest("Reassignment", name, clusterRef={"name": "main"}, goal=goal, approvedDigest=digest, **spec)
        )

    def wait_for_reason(name: str, status: str, reason: str) -> None:
        user.wait_for("reassignments", name, status, reason)

    for name, throttle in (("slow-dirs", {"throttle": {"bytesPerSecond": 1000}}), ("even-dirs", {})):
        user.apply(manifest("Reassignment", name, clusterRef={"name": "main"}, goal=goal, **throttle))
        await asyncio.to_thread(wait_for_reason, name, "False", "ApprovalRequired")
        await asyncio.to_thread(applied, name, **throttle)
        if throttle:
            await dirs_when(admin, partitions, lambda held: any(replica.future == second for replica in held))
            assert stock.broker_config(1, LOG_DIRS_RATE) == "1000"
            await asyncio.to_thread(applied, name, **throttle, action="Cancel")
            await asyncio.to_thread(wait_for_reason, name, "False", "Cancelled")
            await dirs_when(admin, partitions, lambda held: all(replica == ReplicaDir(first) for replica in held))
            assert stock.broker_config(1, LOG_DIRS_RATE) is None
    await asyncio.to_thread(wait_for_reason, "even-dirs", "True", "Completed")
    await dirs_when(admin, partitions, lambda held: any(replica == ReplicaDir(second) for replica in held))
    await asyncio.to_thread(applied, "even-dirs", action="Rollback")
    await asyncio.to_thread(wait_for_reason, "even-dirs", "True", "RolledBack")
    await dirs_when(admin, partitions, lambda held: all(replica == ReplicaDir(first) for replica in held))


@pytest.mark.shows("F44", "F45")
async def test_a_voter_waits_for_another_one_and_a_directory_that_failed_is_shown(
    admin: KafkaAdmin, nodes: KraftCluster
) -> None:
    """While a voter is away, none of the other two may go (KIP-595). It returns without one of its directories, and answers KAFKA_STORAGE_ERROR for it."""
    well = await health_when(admin, lambda quorum: late(quorum) == () and len(quorum.voters) == len(VOTERS))
    status = quorum_status(well.quorum)
    assert status is not None
    assert status.voter_ids == VOTERS
    node, other = nodes[3], min({1, 2} - {well.controller_id})
    await asyncio.to_thread(node.stop)
    away = await health_when(admin, lambda quorum: late(quorum) == (3,))
    failed = node.log_dirs[1]
    shutil.rmtree(failed)
    failed.write_text("not a directory")
    await asyncio.to_thread(node.start)

    found = summarize(await admin.describe_log_dir_states(VOTERS), NO_PROBLEMS)

    held = rolled(away, other)
    assert isinstance(held, Hold)
    assert held.reason == "WaitingForQuorum"
    assert found.offline == (Directory(3, str(failed)),)

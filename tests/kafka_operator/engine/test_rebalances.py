"""Reassignments that a Cluster makes by itself, by the engine over fakes and virtual time (features rows 21 and 22)."""

from __future__ import annotations

from typing import Any

import pytest

from kafka_operator import kinds
from kafka_operator.decide.clusters.rebalance_need import LOST_AFTER_S, SETTLE_S
from kafka_operator.resources.reassignment import Partition
from reconciler.names import PAUSE, Key
from tests.kafka_operator.engine.test_cluster_pods import MAIN, condition, reasons, settled_pods
from tests.kafka_operator.engine.test_throttles import status
from tests.kafka_operator.makers import raw_cluster, raw_plan, raw_reassignment
from tests.kafka_operator.world import World, running
from tests.reconciler.virtual_time import in_virtual_time

FIRST, SECOND = (Key(kinds.REASSIGNMENT, "shop", f"main-auto-{number}") for number in (1, 2))
BOTH = {"onBrokersAdded": True, "onBrokersRemoved": True}
TERMS = {
    "throttle": {"bytesPerSecond": 5_000_000},
    "concurrency": {"cluster": 2},
    "windows": [{"schedule": "* * * * *", "duration": "1h"}],
    "guard": {"maxOfflinePartitions": 0},
    "canary": {"partitions": 1, "soakSeconds": 5, "approval": "Automatic"},
}


def made(world: World) -> list[str]:
    """The names of all Reassignments."""
    return sorted(key.name for key in world.kube.objects if key.kind == kinds.REASSIGNMENT)


def approve(world: World, key: Key) -> None:
    """Approve what is proposed, as it is."""
    held = world.kube.objects[key]
    spec = held["spec"] | {"approvedDigest": held["status"]["digest"]}
    world.kube.apply({"kind": "Reassignment", "metadata": {"namespace": "shop", "name": key.name}, "spec": spec})


def have(world: World, partitions: int = 12) -> None:
    """Topic `orders` on brokers 1, 2, 3, a megabyte a partition."""
    world.kafka.add("orders", [(1, 2, 3), (2, 3, 1), (3, 1, 2)] * (partitions // 3))
    world.kafka.sizes = {Partition("orders", index): 1_000_000 for index in range(partitions)}


async def noted(world: World, **auto: Any) -> None:
    """Have `main` with autoRebalance, and wait until it knows who has a part."""
    world.kube.apply(raw_cluster(autoRebalance=auto))
    await world.until(lambda: "autoRebalance" in world.kube.objects[MAIN].get("status", {}))


async def three_known(world: World) -> None:
    """Brokers 1, 2 and 3 have all; `main` is to mind those that come and go, and knows them."""
    world.kafka.broker_ids = (1, 2, 3)
    have(world)
    await noted(world, **BOTH)


@pytest.mark.slow
@pytest.mark.shows("F21")
@in_virtual_time
async def test_brokers_that_are_new_get_one_proposal_that_waits_for_approval() -> None:
    """Row 21: two come one after the other, and one Reassignment of the template's terms is for both."""
    async with running() as world:
        world.kafka.broker_ids = (1, 2, 3)
        have(world)
        await noted(world, **BOTH, template={**TERMS, "maxBytesMoved": "1Gi", "excludedTopics": ["ledger"]})
        world.kafka.broker_ids = (1, 2, 3, 4)
        await world.run(SETTLE_S / 2)
        world.kafka.broker_ids = (1, 2, 3, 4, 5)
        await world.until(lambda: condition(world, "Rebalanced")[1] == "RebalanceProposed", seconds=90)

        assert made(world) == ["main-auto-1"]
        spec = world.kube.objects[FIRST]["spec"]
        goal = {"addBrokers": [4, 5], "excludedTopics": ["ledger"], "maxBytesMoved": "1Gi"}
        assert spec == {"clusterRef": {"name": "main"}, "goal": goal, "approval": "Required", **TERMS}
        assert status(world, FIRST)["state"] == "Proposed"
        assert "approvedDigest" in condition(world, "Rebalanced")[2]
        assert "RebalanceMade" in reasons(world)
        assert world.kafka.submitted == []

        approve(world, FIRST)
        await world.until(lambda: status(world, FIRST)["state"] == "Completed", seconds=120)
        await world.until(lambda: condition(world, "Rebalanced")[0] == "True", seconds=60)

        assert {4, 5} <= {broker for replicas in world.kafka.topics["orders"].replicas for broker in replicas}
        world.kube.writes.clear()
        await world.run(400)
        assert (world.kube.writes, made(world)) == ([], ["main-auto-1"])


@in_virtual_time
async def test_a_broker_that_restarts_is_neither_new_nor_gone() -> None:
    """However often, and whether or not it is away for an hour where no pods are declared."""
    async with running() as world:
        have(world)
        await noted(world, **BOTH)
        for offline_s in (5, 200, 2 * LOST_AFTER_S):
            world.kafka.broker_ids = (1, 3)
            await world.run(offline_s)
            world.kafka.broker_ids = (1, 2, 3)
            await world.run(200)

        assert made(world) == []


@in_virtual_time
async def test_a_proposal_that_is_not_what_is_needed_any_more_is_withdrawn() -> None:
    """Another broker comes before anybody has approved: never two open ones, and the second names both."""
    async with running() as world:
        await three_known(world)
        world.kafka.broker_ids = (1, 2, 3, 4)
        await world.until(lambda: condition(world, "Rebalanced")[1] == "RebalanceProposed", seconds=90)
        world.kafka.broker_ids = (1, 2, 3, 4, 5)
        await world.until(lambda: made(world) == ["main-auto-1", "main-auto-2"], seconds=120)

        assert status(world, FIRST)["state"] == "Cancelled"
        assert world.kube.objects[SECOND]["spec"]["goal"]["addBrokers"] == [4, 5]


@in_virtual_time
async def test_a_cancelled_or_deleted_proposal_stays_so() -> None:
    """What was proposed for these brokers is not proposed again."""
    async with running() as world:
        await three_known(world)
        world.kafka.broker_ids = (1, 2, 3, 4)
        await world.until(lambda: condition(world, "Rebalanced")[1] == "RebalanceProposed", seconds=90)
        spec = world.kube.objects[FIRST]["spec"] | {"action": "Cancel"}
        world.kube.apply({"kind": "Reassignment", "metadata": {"namespace": "shop", "name": FIRST.name}, "spec": spec})
        await world.run(200)
        assert (made(world), condition(world, "Rebalanced")[0]) == (["main-auto-1"], "True")

        world.kafka.broker_ids = (1, 2, 3, 4, 5)
        await world.until(lambda: condition(world, "Rebalanced")[1] == "RebalanceProposed", seconds=90)
        assert world.kube.objects[SECOND]["spec"]["goal"]["addBrokers"] == [5]
        world.kube.delete(SECOND)
        await world.run(200)
        assert (made(world), condition(world, "Rebalanced")[0]) == (["main-auto-1"], "True")


@in_virtual_time
async def test_nothing_is_made_while_something_moves_and_for_a_cluster_that_is_paused() -> None:
    """It waits for the other Reassignment to end, and reports it."""
    async with running() as world:
        await three_known(world)
        world.kafka.move_s = 60
        world.kube.apply(raw_reassignment(plan=raw_plan(p0=[1, 2])))
        world.kafka.broker_ids = (1, 2, 3, 4)
        await world.until(lambda: condition(world, "Rebalanced")[1] == "WaitingForReassignment", seconds=90)
        assert made(world) == ["move"]

        world.kube.annotate(MAIN, PAUSE, "true")
        await world.run(100)
        assert made(world) == ["move"]
        world.kube.annotate(MAIN, PAUSE, None)
        await world.until(lambda: made(world) == ["main-auto-1", "move"], seconds=60)


@in_virtual_time
async def test_disabled_it_is_not_reported_and_enabled_again_it_takes_another_name() -> None:
    """Brokers that hold nothing when it is switched on are new."""
    async with running() as world:
        have(world)
        await noted(world, **BOTH, approval="Automatic")
        await world.until(lambda: condition(world, "Rebalanced")[0] == "True", seconds=200)
        assert (made(world), status(world, FIRST)["state"]) == (["main-auto-1"], "Completed")

        world.kube.apply(raw_cluster())
        await world.until(lambda: "autoRebalance" not in world.kube.objects[MAIN]["status"])
        assert condition(world, "Rebalanced")[0] == ""
        world.kafka.broker_ids = (1, 2, 3, 4, 5)
        await world.run(100)
        await noted(world, **BOTH)
        await world.until(lambda: made(world) == ["main-auto-1", "main-auto-2"], seconds=200)


def scaled(replicas: int, **auto: Any) -> dict[str, Any]:
    """Cluster `main` with pods of brokers, ids from 1, and autoRebalance."""
    brokers = {"statefulSet": "main-broker", "firstId": 1, "replicas": replicas}
    return raw_cluster(brokers=brokers, autoRebalance={**BOTH, **auto})


@pytest.mark.shows("F21")
@in_virtual_time
async def test_scaling_in_empties_the_brokers_and_their_pods_go() -> None:
    """Row 21: what is refused while a broker holds replicas makes the Reassignment that moves them."""
    async with settled_pods(4) as (world, pods):
        world.kafka.add("late", [(3, 4), (4, 1)])
        world.kube.apply(scaled(4))
        await world.until(lambda: condition(world, "Rebalanced")[0] == "True", seconds=90)
        world.kube.apply(scaled(3))
        await world.until(lambda: condition(world, "Rebalanced")[1] == "RebalanceProposed", seconds=90)

        assert world.kube.objects[FIRST]["spec"]["goal"] == {"removeBrokers": [4]}
        assert "spec.autoRebalance creates a Reassignment" in condition(world, "Scaled")[2]
        assert pods.replicas == 4

        approve(world, FIRST)
        await world.until(lambda: pods.replicas == 3, seconds=120)
        await world.until(lambda: condition(world, "Rebalanced")[0] == "True", seconds=120)
        assert all(4 not in replicas for replicas in world.kafka.topics["late"].replicas)
        await world.run(300)
        assert (
            made(world),
            world.kube.objects[MAIN]["status"]["autoRebalance"]["brokerIds"],
        ) == (["main-auto-1"], [1, 2, 3])


@in_virtual_time
async def test_scaling_out_and_in_by_itself() -> None:
    """F21 with approval Automatic: users only have to scale."""
    async with settled_pods(3) as (world, pods):
        world.kube.apply(scaled(3, approval="Automatic"))
        await world.until(lambda: condition(world, "Rebalanced")[0] == "True", seconds=90)
        world.kafka.add("wide", [(1, 2, 3), (2, 3, 1), (3, 1, 2)] * 4)
        world.kafka.sizes = {Partition("wide", index): 1_000_000 for index in range(12)}
        world.kube.apply(scaled(4, approval="Automatic"))
        await world.until(lambda: _holds(world, 4), seconds=200)
        await world.until(lambda: condition(world, "Rebalanced")[0] == "True", seconds=120)

        world.kube.apply(scaled(3, approval="Automatic"))
        await world.until(lambda: pods.replicas == 3, seconds=300)

        assert not _holds(world, 4)
        assert made(world) == ["main-auto-1", "main-auto-2"]


@in_virtual_time
async def test_an_impossible_removal_is_reported_and_not_retried_forever() -> None:
    """Too few brokers stay for the replicas: one Reassignment that moves nothing, and no other until it is wanted again."""
    async with settled_pods(3) as (world, pods):
        world.kube.apply(scaled(3, approval="Automatic"))
        await world.until(lambda: condition(world, "Rebalanced")[0] == "True", seconds=90)
        world.kube.apply(scaled(2, approval="Automatic"))
        await world.until(lambda: condition(world, "Rebalanced")[1] == "RemovalEnded", seconds=200)
        await world.run(300)
        assert (made(world), pods.replicas) == (["main-auto-1"], 3)

        world.kube.apply(scaled(3, approval="Automatic"))
        await world.until(lambda: condition(world, "Rebalanced")[0] == "True", seconds=90)


@pytest.mark.shows("F21", "F56")
@in_virtual_time
async def test_a_broker_without_a_pod_that_is_away_for_long_is_emptied() -> None:
    """Row 21: gone from what is declared, as after a StatefulSet that was made smaller by hand."""
    async with settled_pods(3) as (world, _):
        world.kafka.add("old", [(7, 1), (1, 7)])
        world.kube.apply(scaled(3))
        await world.until(lambda: condition(world, "Rebalanced")[0] == "True", seconds=90)
        await world.run(LOST_AFTER_S - 300)
        assert made(world) == []
        await world.until(lambda: made(world) == ["main-auto-1"], seconds=600)

        assert world.kube.objects[FIRST]["spec"]["goal"] == {"removeBrokers": [7]}


@pytest.mark.shows("F22")
@in_virtual_time
async def test_unbalanced_bytes_are_rebalanced_once_per_interval() -> None:
    """Row 22: measured against the mean; what a plan cannot better makes none."""
    async with running() as world:
        world.kafka.broker_ids = (1, 2, 3)
        have(world)
        imbalance = {"thresholdPercent": 20, "minimumIntervalSeconds": 3600}
        await noted(world, onImbalance=imbalance, approval="Automatic")
        await world.run(700)
        assert (made(world), world.kube.objects[MAIN]["status"]["autoRebalance"]["spreadPercent"]) == ([], 0)

        def lean() -> None:
            world.kafka.topics["orders"].replicas = [(1, 2)] * 12

        lean()
        await world.until(lambda: made(world) == ["main-auto-1"], seconds=700)
        await world.until(lambda: status(world, FIRST).get("state") == "Completed", seconds=200)
        assert world.kube.objects[FIRST]["spec"]["goal"] == {"rebalance": True}
        assert _holds(world, 3)

        lean()
        await world.run(3000)
        assert made(world) == ["main-auto-1"]
        await world.until(lambda: made(world) == ["main-auto-1", "main-auto-2"], seconds=1500)


@pytest.mark.shows("F22")
@in_virtual_time
async def test_one_very_large_partition_causes_no_endless_copies() -> None:
    """Nothing that moves would make it better: no Reassignment."""
    async with running() as world:
        world.kafka.broker_ids = (1, 2, 3)
        world.kafka.add("huge", [(1,)])
        world.kafka.sizes = {Partition("huge", 0): 10**12}
        await noted(world, onImbalance={"thresholdPercent": 20, "minimumIntervalSeconds": 300})
        await world.run(3000)

        assert (made(world), world.kube.objects[MAIN]["status"]["autoRebalance"]["spreadPercent"]) == ([], 200)


@in_virtual_time
async def test_at_rest_kafka_is_asked_for_nothing_and_nothing_is_written() -> None:
    """A Cluster that has it switched on costs no more than another."""
    async with running() as world:
        await three_known(world)
        await world.run(100)
        world.kube.writes.clear()
        world.gate.calls.clear()
        await world.run(300)

        assert world.kube.writes == []
        assert world.gate.count("kafka describe_layout") == 0


def _holds(world: World, broker: int) -> bool:
    return any(broker in replicas for topic in world.kafka.topics.values() for replicas in topic.replicas)

"""Brokers cordoned by the engine (KIP-1066), over fakes and virtual time: before the first move, and at no end longer than it has to be."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from kafka_operator import kinds
from kafka_operator.decide.kafka.observed import Failure
from kafka_operator.resources.reassignment import Partition
from reconciler.names import Key
from tests.kafka_operator.crash_stories import ends_alike
from tests.kafka_operator.engine.test_throttles import condition as condition_of
from tests.kafka_operator.engine.test_throttles import status
from tests.kafka_operator.fake_pods import FakePods
from tests.kafka_operator.makers import raw_cluster, raw_reassignment
from tests.kafka_operator.world import World, running
from tests.reconciler.virtual_time import in_virtual_time, run_virtually

MAIN, MOVE = Key(kinds.CLUSTER, "shop", "main"), Key(kinds.REASSIGNMENT, "shop", "move")
SETTING = "cordoned.log.dirs"
LEVEL_4_3 = {"metadata.version": 30}
REMOVAL = {"goal": {"removeBrokers": [3]}, "approval": "Automatic"}
NOT_ALLOWED = Failure(31, "CLUSTER_AUTHORIZATION_FAILED", "Cluster authorization failed.")


def have_orders(world: World, *, move_s: float = 3.0) -> None:
    """Kafka 4.3 with topic `orders` on brokers 1, 2 and 3 of four."""
    world.kafka.features = dict(LEVEL_4_3)
    world.kafka.move_s = move_s
    world.kafka.add("orders", [(1, 2, 3), (2, 3, 1)])
    world.kafka.sizes = {Partition("orders", index): 1_000_000 for index in range(2)}


@asynccontextmanager
async def removing(*, move_s: float = 3.0, before: str | None = None) -> AsyncIterator[World]:
    """A Reassignment that removes broker 3 has begun to move, and the broker is cordoned."""
    async with running(cluster=False) as world:
        have_orders(world, move_s=move_s)
        if before is not None:
            world.kafka.broker_configs[3] = {SETTING: before}
        world.kube.apply(raw_cluster())
        await world.run(2)
        world.kube.apply(raw_reassignment(**REMOVAL))
        await world.until(lambda: bool(world.kafka.submitted))
        yield world


def cordoned(world: World) -> dict[int, str]:
    """The setting of each broker that has it."""
    return {broker: held[SETTING] for broker, held in world.kafka.broker_configs.items() if SETTING in held}


def condition(world: World) -> tuple[str, str]:
    """Status and reason of condition Cordoned of the Cluster."""
    return condition_of(world, "Cordoned", MAIN)[:2]


def warnings(world: World) -> list[str]:
    """The reasons of events about cordons."""
    return [event.reason for event in world.kube.events if "Cordon" in event.reason]


@pytest.mark.shows("F43")
@in_virtual_time
async def test_a_broker_is_cordoned_before_the_first_move_and_stays_so_until_the_reassignment_is_deleted() -> None:
    """A completed removal has emptied it: without the cordon the next topic would fill it again before it is stopped."""
    async with removing() as world:
        assert cordoned(world) == {3: "*"}
        assert status(world, MAIN)["cordons"] == [{"id": 3, "inForce": True}]
        assert condition(world) == ("True", "Cordoned")

        await world.until(lambda: status(world)["state"] == "Completed")
        await world.run(30)
        assert cordoned(world) == {3: "*"}

        world.kube.delete(MOVE)
        await world.until(lambda: cordoned(world) == {})
        await world.run(15)
        assert "cordons" not in status(world, MAIN)
        assert condition(world) == ("", "")
        assert warnings(world) == []


@pytest.mark.shows("F43")
@pytest.mark.parametrize("before", [None, "/data/1", "*"])
@pytest.mark.parametrize("end", ["cancel", "rollback", "delete", "interrupted", "refused"])
def test_the_previous_setting_is_back_at_every_other_end(end: str, before: str | None) -> None:
    """What another client had cordoned stays cordoned (ADR 43)."""

    async def story() -> None:
        async with removing(move_s=500, before=before) as world:
            assert cordoned(world) == {3: "*"}
            if end == "cancel":
                world.kube.apply(raw_reassignment(**REMOVAL, action="Cancel"))
            elif end == "rollback":
                world.kube.apply(raw_reassignment(**REMOVAL, action="Rollback"))
            elif end == "delete":
                world.kube.delete(MOVE)
            elif end == "interrupted":
                world.kafka.moves.clear()
            else:
                refusal = Failure(39, "INVALID_REPLICA_ASSIGNMENT", "Broker 4 is not alive.")
                world.kafka.refuse_partitions = {Partition("orders", 0): refusal}
                world.kafka.moves.clear()
            await world.run(60)
            assert cordoned(world) == ({} if before is None else {3: before})
            assert "cordons" not in status(world, MAIN)

    run_virtually(story())


@in_virtual_time
async def test_a_rollback_after_the_end_moves_back_when_the_cordon_is_gone() -> None:
    """Releases after 4.3.1 refuse to move replicas to a cordoned broker (KAFKA-20832)."""
    async with removing() as world:
        await world.until(lambda: status(world)["state"] == "Completed")
        submitted = len(world.kafka.submitted)
        world.kube.apply(raw_reassignment(**REMOVAL, action="Rollback"))

        await world.until(lambda: len(world.kafka.submitted) > submitted)

        assert cordoned(world) == {}
        await world.until(lambda: status(world)["state"] == "RolledBack")


@in_virtual_time
async def test_a_goal_puts_nothing_on_a_broker_that_was_emptied() -> None:
    """It is to be stopped; only a goal that names it in addBrokers takes it back."""
    async with removing() as world:
        await world.until(lambda: status(world)["state"] == "Completed")
        balance = {"approval": "Automatic", "goal": {"rebalance": True}}
        world.kube.apply(raw_reassignment("balance", **balance))
        key = Key(kinds.REASSIGNMENT, "shop", "balance")
        await world.until(lambda: status(world, key).get("state") == "Completed")
        assert 3 not in {broker for replicas in world.kafka.topics["orders"].replicas for broker in replicas}

        balance["goal"] = {"addBrokers": [3]}
        world.kube.apply(raw_reassignment("back", **balance))
        key = Key(kinds.REASSIGNMENT, "shop", "back")
        await world.until(lambda: status(world, key).get("state") == "Completed")
        assert 3 in {broker for replicas in world.kafka.topics["orders"].replicas for broker in replicas}


@pytest.mark.shows("F43")
@in_virtual_time
async def test_before_kafka_4_3_nothing_is_cordoned_and_moves_start_at_once() -> None:
    """metadata.version 4.3-IV0 is the first with cordons."""
    async with running() as world:
        have_orders(world)
        world.kafka.features = {"metadata.version": 29}
        await world.run(2)
        world.kube.apply(raw_reassignment(**REMOVAL))

        await world.until(lambda: status(world).get("state") == "Completed")

        assert cordoned(world) == {}
        assert condition(world) == ("", "")


@pytest.mark.shows("F43")
@in_virtual_time
async def test_a_refused_cordon_is_reported_and_moves_start_without_it() -> None:
    """The user lacks AlterConfigs on the cluster; a removal is safe without a cordon."""
    async with running() as world:
        have_orders(world)
        world.kafka.refuse_settings = {3: NOT_ALLOWED}
        await world.run(2)
        world.kube.apply(raw_reassignment(**REMOVAL))

        await world.until(lambda: condition(world) == ("False", "CordonRefused"))
        await world.until(lambda: status(world).get("state") == "Completed")

        assert warnings(world) == ["CordonRefused"]
        assert cordoned(world) == {}


@in_virtual_time
async def test_an_offline_broker_is_removed_without_a_cordon() -> None:
    """A dead broker may be named in removeBrokers; Kafka does not lead there."""
    async with running(cluster=False) as world:
        have_orders(world)
        world.kafka.broker_ids = (1, 2, 4)
        world.kube.apply(raw_cluster())
        await world.run(2)
        world.kube.apply(raw_reassignment(**REMOVAL))

        await world.until(lambda: status(world).get("state") == "Completed")

        assert cordoned(world) == {}


@pytest.mark.shows("F43")
@in_virtual_time
async def test_the_cordon_of_a_broker_that_returns_is_removed() -> None:
    """Only the broker itself changes its settings, so that the record waits for it."""
    async with removing(move_s=500) as world:
        world.kafka.broker_ids = (1, 2, 4)
        world.kube.delete(MOVE)
        await world.run(60)
        assert cordoned(world) == {3: "*"}
        assert condition(world) == ("True", "BrokerOffline")

        world.kafka.broker_ids = (1, 2, 3, 4)
        await world.until(lambda: cordoned(world) == {})


@pytest.mark.shows("F43")
@in_virtual_time
async def test_a_deleted_cluster_removes_its_cordons_and_names_those_that_it_cannot() -> None:
    """In bounded time, with an event that has the command."""
    async with removing(move_s=500) as world:
        world.kafka.refuse_settings = {3: NOT_ALLOWED}
        world.kube.delete(MOVE)
        world.kube.delete(MAIN)
        await world.until(lambda: MAIN not in world.kube.objects)

        messages = [event.message for event in world.kube.events if event.reason == "CordonLeft"]
        assert cordoned(world) == {3: "*"}
        assert "kafka-configs --alter --delete-config cordoned.log.dirs" in messages[-1]


@in_virtual_time
async def test_a_cluster_that_is_deleted_leaves_no_cordon() -> None:
    """Before its finalizer is released."""
    async with removing() as world:
        await world.until(lambda: status(world)["state"] == "Completed")
        world.kube.delete(MAIN)

        await world.until(lambda: MAIN not in world.kube.objects)

        assert cordoned(world) == {}


def declared(replicas: int) -> dict[str, Any]:
    """Cluster `main` with pods of brokers, ids from 1."""
    return raw_cluster(brokers={"statefulSet": "main-broker", "firstId": 1, "replicas": replicas})


@asynccontextmanager
async def with_pods() -> AsyncIterator[tuple[World, FakePods]]:
    """Four brokers as pods; the last one holds a partition that has no other replica."""
    async with running(cluster=False) as world:
        await world.kill()
        pods = world.pods = FakePods(world.kafka, 4)
        world.kafka.features = dict(LEVEL_4_3)
        world.kafka.add("orders", [(1, 2, 3)])
        world.kafka.add("logs", [(4,)])
        world.kube.apply(declared(4))
        world.start()
        await world.run(12)
        yield world, pods


@pytest.mark.shows("F43")
@in_virtual_time
async def test_a_broker_that_is_scaled_in_is_cordoned_and_uncordoned_when_it_returns() -> None:
    """While it holds replicas, so that no new topic keeps it; the setting of a stopped broker outlives its pod."""
    async with with_pods() as (world, _):
        world.kube.apply(declared(3))
        await world.until(lambda: cordoned(world) == {4: "*"})
        world.kafka.topics["logs"].replicas = [(1,)]
        await world.until(lambda: world.kafka.broker_ids == (1, 2, 3))

        world.kube.apply(declared(4))
        await world.until(lambda: cordoned(world) == {}, seconds=120)

        await world.run(15)
        assert "cordons" not in status(world, MAIN)


@pytest.mark.shows("F43")
@in_virtual_time
async def test_a_broker_whose_pod_waits_for_its_drain_is_cordoned() -> None:
    """Here a topic with one replica holds up the drain; kubectl uncordon ends it."""
    async with with_pods() as (world, pods):
        pods.cordon(3)
        await world.until(lambda: cordoned(world) == {4: "*"})

        node = pods.pods[3]["spec"]["nodeName"]
        pods.nodes[node]["spec"]["unschedulable"] = False
        await world.until(lambda: cordoned(world) == {})


@in_virtual_time
async def test_no_pod_is_cordoned_where_topics_could_not_be_created_any_more() -> None:
    """Kafka refuses topics with more replicas than there are brokers without a cordon."""
    async with with_pods() as (world, pods):
        world.kafka.add("ledger", [(1, 2, 3, 4)])
        pods.cordon(3)
        await world.run(30)

        assert cordoned(world) == {}


def upgrade(world: World) -> None:
    """A fifth broker joins, so that the versions are read again."""
    world.kafka.broker_ids = (1, 2, 3, 4, 5)


async def completed_and_deleted(world: World) -> None:
    """A removal runs to its end, and is deleted later."""
    have_orders(world, move_s=1)
    upgrade(world)
    await world.run(15)
    world.kube.apply(raw_reassignment(**REMOVAL))
    await world.run(20)
    assert cordoned(world) == {3: "*"}
    world.kube.delete(MOVE)


async def cancelled(world: World) -> None:
    """A removal is cancelled on the way; another client had cordoned one directory."""
    have_orders(world, move_s=1000)
    world.kafka.broker_configs[3] = {SETTING: "/data/1"}
    upgrade(world)
    await world.run(15)
    world.kube.apply(raw_reassignment(**REMOVAL))
    await world.run(10)
    world.kube.apply(raw_reassignment(**REMOVAL, action="Cancel"))


@pytest.mark.slow
@pytest.mark.shows("F43")
@pytest.mark.parametrize(("story", "left"), [(completed_and_deleted, {}), (cancelled, {3: {SETTING: "/data/1"}})])
def test_an_operator_killed_at_any_call_leaves_no_cordon(story: Any, left: dict[int, Any]) -> None:
    """The record is written before the setting, and removed after Kafka was seen without it (O3)."""
    _, kafka = ends_alike(story)

    assert kafka["brokers"] == left

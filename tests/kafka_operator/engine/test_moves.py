"""Running moves, forward and back: waves, remaining bytes and time, stuck moves; with fakes and virtual time."""

from __future__ import annotations

from typing import Any

import pytest

from kafka_operator import kinds
from kafka_operator.decide.kafka.observed import NO_LEADER
from kafka_operator.resources.reassignment import Partition
from reconciler.names import FINALIZER, Key
from tests.kafka_operator.engine.test_throttles import condition, orders, status
from tests.kafka_operator.makers import raw_plan, raw_reassignment
from tests.kafka_operator.world import running
from tests.reconciler.virtual_time import in_virtual_time, run_virtually

MOVE = Key(kinds.REASSIGNMENT, "shop", "move")
PLAN = raw_plan(p0=[2, 3, 4], p1=[3, 4, 2], p2=[4, 2, 3])
AT_BASE = [(1, 2, 3)] * 3

REMEDIES = {
    "NoProgress": "check the logs of the brokers of the new replicas",
    "BrokerDead": "broker 4, a target of orders-1, is offline. Start it, or cancel.",
    "NoLeader": "orders-1 has no leader, because no in-sync replica is live. Start one of brokers",
    "Throttled": "the throttle of 50000000 bytes per second is used up by other moves or by traffic. Increase it.",
}
"""Cause of a stuck move -> its end of the message: what to do."""


@pytest.mark.shows("E2")
@pytest.mark.parametrize("first", ["Completed", "Cancelled", "Failed", "Running"])
def test_a_rollback_takes_every_partition_back(first: str) -> None:
    """Features (e) 2: after any end, and on the way, with progress."""

    async def story() -> None:
        async with running() as world:
            world.kafka.move_s = 5
            await orders(world)
            world.kube.apply(raw_reassignment(plan=PLAN))
            await world.until(lambda: status(world).get("progress", {}).get("partitions") == "1/3", seconds=30)
            if first == "Cancelled":
                world.kube.apply(raw_reassignment(plan=PLAN, action="Cancel"))
            if first == "Failed":
                world.kafka.moves.clear()
            await world.until(lambda: status(world)["state"] == first, seconds=60)
            world.kube.apply(raw_reassignment(plan=PLAN, action="Rollback"))
            await world.until(lambda: status(world)["state"] == "RollingBack", seconds=10)
            assert world.kube.objects[MOVE]["metadata"]["finalizers"] == [FINALIZER]
            await world.until(lambda: status(world)["state"] == "RolledBack", seconds=60)
            assert world.kafka.topics["orders"].replicas == AT_BASE
            assert world.kube.ready(MOVE)[:2] == ("True", "RolledBack")
            assert status(world)["progress"]["partitions"] == "3/3"
            await world.run(5)
            assert not world.kube.objects[MOVE]["metadata"]["finalizers"]

    run_virtually(story())


@in_virtual_time
async def test_a_rollback_waits_for_another_that_moves_the_same() -> None:
    """Two never pull at one partition."""
    async with running() as world:
        world.kafka.move_s = 5
        await orders(world)
        world.kube.apply(raw_reassignment(plan=PLAN))
        await world.until(lambda: status(world).get("state") == "Completed", seconds=60)
        world.kube.apply(raw_reassignment("next", plan=raw_plan(p0=[1, 2, 4])))
        await world.until(lambda: bool(world.kafka.moves), seconds=10)
        world.kube.apply(raw_reassignment(plan=PLAN, action="Rollback"))
        await world.run(2)
        assert world.kube.ready(MOVE)[:2] == ("False", "Overlap")

        await world.until(lambda: status(world)["state"] == "RolledBack", seconds=150)

        assert world.kafka.topics["orders"].replicas == AT_BASE


@pytest.mark.shows("F20")
@in_virtual_time
async def test_moves_go_on_in_waves_and_show_bytes_and_time_left() -> None:
    """Concurrency in the cluster and per broker; bytes moved of total, percent, ETA."""
    async with running() as world:
        world.kafka.move_s = 10
        await orders(world, partitions=6, size=10_000_000)
        plan = raw_plan(**{f"p{index}": [2, 3, 4] for index in range(6)})
        most: list[int] = []
        world.kube.apply(raw_reassignment(plan=plan, concurrency={"cluster": 2}))
        seen: list[dict[str, Any]] = []
        while status(world).get("state") != "Completed":
            most.append(len(world.kafka.moves))
            seen.append(status(world).get("progress", {}))
            await world.run(0.5)
        assert max(most) == 2
        assert set(world.kafka.topics["orders"].replicas) == {(2, 3, 4)}
        assert 60_000_000 == status(world)["progress"]["bytesTotal"] == status(world)["progress"]["bytesMoved"]
        percents = [progress["percent"] for progress in seen if "percent" in progress]
        assert sorted(percents) == percents
        assert len(set(percents)) > 5
        assert any("etaSeconds" in progress for progress in seen)
        assert "etaSeconds" not in status(world)["progress"]


@pytest.mark.shows("E15")
@in_virtual_time
async def test_a_stuck_move_is_reported_with_its_likely_cause() -> None:
    """F19, F20: a dead broker is reported; so is the continuation of the move."""
    async with running() as world:
        world.kafka.move_s = 400
        await orders(world)
        world.kafka.still = {Partition("orders", 1)}
        world.kube.apply(raw_reassignment(plan=PLAN))
        await world.until(lambda: condition(world, "Stuck")[0] == "True", seconds=200)
        assert "orders-1" in condition(world, "Stuck")[2]
        assert "orders-0" not in condition(world, "Stuck")[2]
        assert condition(world, "Stuck")[1] == "NoProgress"
        world.kafka.still = set()
        await world.until(lambda: condition(world, "Stuck")[0] == "False", seconds=30)

        world.kafka.broker_ids = (1, 2, 3)
        await world.until(lambda: condition(world, "Stuck")[1] == "BrokerDead", seconds=200)
        assert "broker 4" in condition(world, "Stuck")[2]


@pytest.mark.shows("E15")
@pytest.mark.parametrize("cause", ["NoProgress", "BrokerDead", "NoLeader", "Throttled"])
def test_each_cause_of_a_stuck_move_is_named(cause: str) -> None:
    """The condition Stuck names a partition that copies nothing, the cause, and what to do."""

    async def story() -> None:
        async with running() as world:
            world.kafka.move_s = 10_000
            await orders(world)
            stuck = Partition("orders", 1)
            world.kafka.still = {stuck}
            throttle = {"throttle": {"bytesPerSecond": 50_000_000}} if cause == "Throttled" else {}
            world.kube.apply(raw_reassignment(plan=PLAN[1:2], **throttle))
            await world.until(lambda: bool(world.kafka.moves), seconds=30)
            if cause == "BrokerDead":
                world.kafka.broker_ids = (1, 2, 3)
            if cause == "NoLeader":
                world.kafka.leaders[stuck] = NO_LEADER

            await world.until(lambda: condition(world, "Stuck")[:2] == ("True", cause), seconds=300)

            assert "orders-1" in condition(world, "Stuck")[2]
            assert REMEDIES[cause] in condition(world, "Stuck")[2]

    run_virtually(story())


@pytest.mark.slow
@in_virtual_time
async def test_of_many_topics_those_that_move_are_looked_at_and_all_of_them_now_and_then() -> None:
    """A plan of 300 topics arrives; a change of one of them from outside is found too."""
    async with running() as world:
        world.kafka.move_s = 2
        names = [f"topic-{number:03}" for number in range(300)]
        for name in names:
            world.kafka.add(name, [(1, 2, 3)])
        await world.run(1)
        plan = [entry for name in names for entry in raw_plan(name, p0=[2, 3, 4])]
        asked: list[int] = []
        shown = world.kafka.describe_topics

        async def describe_topics(wanted: Any) -> Any:
            asked.append(len(wanted))
            return await shown(wanted)

        world.kafka.describe_topics = describe_topics
        limits = {"perBroker": 20, "cluster": 20}
        world.kube.apply(raw_reassignment(plan=plan, concurrency=limits))
        await world.until(lambda: bool(world.kafka.moves), seconds=10)
        assert max(asked, default=0) <= 40, "the plan was made from a poll of all of them"
        await world.until(lambda: status(world).get("state") == "Completed", seconds=300)
        assert all(world.kafka.topics[name].replicas[0] == (2, 3, 4) for name in names)
        assert sorted(asked)[len(asked) // 2] <= 40

        world.kube.apply(raw_reassignment(plan=plan, concurrency=limits, action="Rollback"))
        await world.until(lambda: status(world)["state"] == "RollingBack", seconds=10)
        world.kafka.topics["topic-299"].replicas[0] = (4, 3, 2)
        await world.until(lambda: status(world)["state"] == "RolledBack", seconds=300)
        assert all(world.kafka.topics[name].replicas[0] == (1, 2, 3) for name in names)

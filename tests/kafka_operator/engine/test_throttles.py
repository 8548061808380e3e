"""Reassignments under a throttle, over fakes and virtual time: set before anything moves, and gone at every end."""

from __future__ import annotations

from typing import Any

import pytest

from kafka_operator import kinds
from kafka_operator.decide.kafka.observed import Failure
from kafka_operator.resources.reassignment import Partition
from reconciler.names import Key
from tests.kafka_operator.makers import raw_plan, raw_reassignment
from tests.kafka_operator.world import World, running
from tests.reconciler.virtual_time import in_virtual_time, run_virtually

MOVE = Key(kinds.REASSIGNMENT, "shop", "move")
PLAN = raw_plan(p0=[2, 3, 4], p1=[3, 4, 2], p2=[4, 2, 3])
FIXED = {"bytesPerSecond": 5_000_000}
ADAPTIVE = {"adaptive": {"minBytesPerSecond": 1_000_000, "maxBytesPerSecond": 50_000_000}}
RATES = ("leader.replication.throttled.rate", "follower.replication.throttled.rate")
LEADERS, FOLLOWERS = "leader.replication.throttled.replicas", "follower.replication.throttled.replicas"


def status(world: World, key: Key = MOVE) -> dict[str, Any]:
    """The status of a Reassignment."""
    found: dict[str, Any] = world.kube.objects[key].get("status", {})
    return found


def condition(world: World, name: str, key: Key = MOVE) -> tuple[str, str, str]:
    """Status, reason and message of a condition."""
    for item in status(world, key).get("conditions", ()):
        if item["type"] == name:
            return item["status"], item["reason"], item["message"]
    return "", "", ""


async def orders(world: World, partitions: int = 3, size: int = 1_000_000) -> None:
    """Have topic `orders` on brokers 1, 2, 3, a megabyte each."""
    world.kafka.add("orders", [(1, 2, 3)] * partitions)
    world.kafka.sizes = {Partition("orders", index): size for index in range(partitions)}
    await world.run(1)


@in_virtual_time
async def test_a_throttle_is_set_before_the_first_move_and_gone_after_the_last() -> None:
    """As Kafka's tool sets it: rates on the brokers, lists on the topic."""
    async with running() as world:
        world.kafka.move_s = 20
        await orders(world)
        world.kube.apply(raw_reassignment(plan=PLAN, throttle=FIXED))

        await world.until(lambda: bool(world.kafka.moves), seconds=30)

        assert world.kafka.throttled().keys() == {"1", "2", "3", "4", "orders"}
        assert dict.fromkeys(RATES, "5000000") == world.kafka.broker_configs[4]
        assert world.kafka.topics["orders"].config[FOLLOWERS] == "0:4,1:4,2:4"
        assert world.kafka.topics["orders"].config[LEADERS] == "0:1,0:2,0:3,1:1,1:2,1:3,2:1,2:2,2:3"
        assert status(world)["throttle"]["bytesPerSecond"] == 5_000_000

        await world.until(lambda: status(world)["state"] == "Completed", seconds=100)
        assert world.kafka.throttled() == {}
        assert "throttle" not in status(world)


@in_virtual_time
async def test_rates_that_were_set_before_are_restored_in_the_end() -> None:
    """Only ours is touched: a rate of before, entries of other partitions, a list of everything."""
    async with running() as world:
        await orders(world)
        world.kafka.broker_configs[1] = {RATES[0]: "777"}
        world.kafka.topics["orders"].config[LEADERS] = "9:1,0:1"
        world.kafka.topics["orders"].config[FOLLOWERS] = "*"
        before = world.kafka.throttled()
        world.kube.apply(raw_reassignment(plan=PLAN, throttle=FIXED))
        await world.until(lambda: bool(world.kafka.moves), seconds=30)
        assert dict.fromkeys(RATES, "5000000") == world.kafka.broker_configs[1]
        assert world.kafka.topics["orders"].config[LEADERS].startswith("9:1,0:1,0:2")
        assert world.kafka.topics["orders"].config[FOLLOWERS] == "*"

        await world.until(lambda: status(world)["state"] == "Completed", seconds=100)

        assert before == world.kafka.throttled()


@pytest.mark.shows("F16")
@pytest.mark.parametrize("end", ["cancel", "rollback", "delete", "interrupted", "refused"])
def test_a_throttle_is_gone_at_every_end(end: str) -> None:
    """On cancel, rollback, deletion and failure too (always removed)."""

    async def story() -> None:
        async with running() as world:
            world.kafka.move_s = 500
            await orders(world)
            if end == "refused":
                message = Failure(39, "INVALID_REPLICA_ASSIGNMENT", "Broker 4 is not alive.")
                world.kafka.refuse_partitions = {Partition("orders", 1): message}
            world.kube.apply(raw_reassignment(plan=PLAN, throttle=FIXED))
            await world.until(lambda: bool(world.kafka.throttled()), seconds=30)
            await world.run(3)
            if end == "cancel":
                world.kube.apply(raw_reassignment(plan=PLAN, throttle=FIXED, action="Cancel"))
            elif end == "rollback":
                world.kube.apply(raw_reassignment(plan=PLAN, throttle=FIXED, action="Rollback"))
            elif end == "delete":
                world.kube.delete(MOVE)
            elif end == "interrupted":
                world.kafka.moves.clear()
            await world.run(40)
            assert world.kafka.throttled() == {}
            assert world.kafka.moves == {}
            assert world.kafka.topics["orders"].replicas == [(1, 2, 3)] * 3
            assert end == "delete" or status(world)["state"] in {"Cancelled", "RolledBack", "Failed"}

    run_virtually(story())


@in_virtual_time
async def test_a_throttle_below_the_traffic_is_reported_with_figures_and_nothing_moves() -> None:
    """Said before it starts; raised on the way, it goes on."""
    async with running() as world:
        await orders(world)
        world.kafka.growth = {Partition("orders", index): 3_000_000 for index in range(3)}
        world.kube.apply(raw_reassignment(plan=PLAN, throttle=FIXED))
        await world.until(lambda: condition(world, "ThrottleTooLow")[0] == "True", seconds=30)

        _, reason, message = condition(world, "ThrottleTooLow")
        assert reason == "BelowTraffic"
        assert "5000000" in message
        assert "9000000" in message or "8999" in message
        assert world.kafka.submitted == []
        assert world.kube.ready(MOVE)[:2] == ("False", "ThrottleTooLow")
        writes = len(world.kube.writes)
        await world.run(60)
        assert writes == len(world.kube.writes)
        assert world.kafka.throttled() == {}

        world.kube.apply(raw_reassignment(plan=PLAN, throttle={"bytesPerSecond": 90_000_000}))
        await world.until(lambda: status(world)["state"] == "Completed", seconds=100)
        assert condition(world, "ThrottleTooLow")[0] == "False"


@pytest.mark.shows("F15", "E4")
@in_virtual_time
async def test_an_adaptive_throttle_rises_with_use_and_falls_when_replicas_fall_behind() -> None:
    """Raised while the moves use it; halved when a replica that does not move is out of sync."""
    async with running() as world:
        world.kafka.move_s = 200
        await orders(world, size=20_000_000_000)
        world.kube.apply(raw_reassignment(plan=PLAN, throttle=ADAPTIVE))
        await world.until(lambda: status(world).get("throttle", {}).get("bytesPerSecond") == 50_000_000, seconds=120)
        assert dict.fromkeys(RATES, "50000000") == world.kafka.broker_configs[4]

        world.kafka.out_of_sync = {(Partition("orders", 0), 2)}
        await world.until(lambda: status(world)["throttle"]["bytesPerSecond"] <= 12_500_000, seconds=60)

        await world.until(lambda: world.kafka.broker_configs[4][RATES[0]] != "50000000", seconds=5)
        await world.run(5)
        assert len(status(world)["throttle"]["rates"]) <= 2


@pytest.mark.shows("E4")
@in_virtual_time
async def test_two_reassignments_share_a_broker_and_leave_nothing() -> None:
    """The lower rate is in force; what was there before the first comes back after the last."""
    async with running() as world:
        world.kafka.move_s = 30
        await orders(world, partitions=2)
        world.kafka.add("other", [(1, 2, 3)])
        world.kafka.broker_configs[4] = {RATES[1]: "999"}
        before = world.kafka.throttled()
        slow, fast = {"bytesPerSecond": 5_000_000}, {"bytesPerSecond": 9_000_000}
        world.kube.apply(raw_reassignment("first", plan=PLAN[:2], throttle=fast))
        await world.until(lambda: bool(world.kafka.moves), seconds=30)
        world.kube.apply(raw_reassignment("second", plan=raw_plan("other", p0=[2, 3, 4]), throttle=slow))
        await world.run(12)
        assert len(world.kafka.moves) == 3
        assert world.kafka.broker_configs[4][RATES[1]] == "5000000"

        await world.run(300)

        for name in ("first", "second"):
            assert status(world, Key(kinds.REASSIGNMENT, "shop", name))["state"] == "Completed"
        assert before == world.kafka.throttled()


@pytest.mark.shows("E4")
@in_virtual_time
async def test_a_throttle_left_on_an_unreachable_broker_is_reported_and_removed_later() -> None:
    """The broker is unreachable when the move ends: the end and the remaining throttle are reported."""
    async with running() as world:
        world.kafka.move_s = 10
        await orders(world)
        world.kube.apply(raw_reassignment(plan=PLAN, throttle=FIXED))
        await world.until(lambda: bool(world.kafka.moves), seconds=30)
        world.kafka.silent = {1}
        await world.until(lambda: status(world)["state"] == "Completed", seconds=100)
        assert world.kube.ready(MOVE)[0] == "True"
        assert condition(world, "ThrottleLeft")[:2] == ("True", "ThrottleLeft")
        assert world.kafka.throttled().keys() == {"1"}

        world.kafka.silent = set()
        await world.until(lambda: world.kafka.throttled() == {}, seconds=150)

        await world.run(5)
        assert condition(world, "ThrottleLeft")[0] == "False"
        assert not world.kube.objects[MOVE]["metadata"]["finalizers"]


@pytest.mark.shows("F15")
@in_virtual_time
async def test_a_throttle_may_be_changed_and_removed_during_the_moves() -> None:
    """spec.throttle is followed while it runs."""
    async with running() as world:
        world.kafka.move_s = 100
        await orders(world)
        world.kube.apply(raw_reassignment(plan=PLAN, throttle=FIXED))
        await world.until(lambda: bool(world.kafka.moves), seconds=30)
        world.kube.apply(raw_reassignment(plan=PLAN, throttle={"bytesPerSecond": 7_000_000}))
        await world.run(3)
        assert dict.fromkeys(RATES, "7000000") == world.kafka.broker_configs[4]

        world.kube.apply(raw_reassignment(plan=PLAN))
        await world.run(3)

        assert world.kafka.throttled() == {}
        assert len(world.kafka.moves) == 3
        assert "throttle" not in status(world)


@in_virtual_time
async def test_a_throttle_covers_what_moves_now_and_no_more() -> None:
    """Lists of a wave, not of the plan: what has arrived may catch up at full speed."""
    async with running() as world:
        world.kafka.move_s = 5
        await orders(world, partitions=6)
        plan = raw_plan(**{f"p{index}": [2, 3, 4] for index in range(6)})
        world.kube.apply(raw_reassignment(plan=plan, throttle=FIXED, concurrency={"cluster": 1}))
        await world.until(lambda: status(world).get("progress", {}).get("partitions") == "3/6", seconds=100)
        await world.run(3)

        assert world.kafka.topics["orders"].config[FOLLOWERS] == "3:4"
        assert status(world)["throttle"]["topics"][0]["follower"] == "3:4"


@in_virtual_time
async def test_a_broker_that_lets_no_throttle_be_set_holds_the_moves_up() -> None:
    """Without the throttle nothing starts, and the reason is reported."""
    async with running() as world:
        await orders(world)
        world.kafka.silent = {4}
        world.kube.apply(raw_reassignment(plan=PLAN, throttle=FIXED))
        await world.run(30)
        assert world.kube.ready(MOVE)[:2] == ("False", "ThrottleNotSet")
        assert world.kafka.submitted == []

        world.kafka.silent = set()

        await world.until(lambda: status(world)["state"] == "Completed", seconds=150)

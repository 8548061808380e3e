"""A right of another namespace that is taken away, over fakes and virtual time: nothing of it moves afterwards."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from kafka_operator import kinds
from kafka_operator.resources.reassignment import Partition
from reconciler.names import FINALIZER, PAUSE, Key
from tests.kafka_operator.makers import raw_plan, raw_reassignment
from tests.kafka_operator.tenants import (
    TEAM,
    allow,
    move_key,
    state_of,
    tenant_election,
    tenant_move,
    tenant_topic,
    topic_key,
)
from tests.kafka_operator.world import World, running
from tests.reconciler.virtual_time import in_virtual_time

RULE = {"namespaces": [TEAM], "topicNames": ["orders"], "minBytesPerSecond": 1}
MOVE = move_key("mv")


async def with_orders(world: World) -> None:
    """Have a Kafka topic `orders` that namespace team-a may name."""
    world.kafka.add("orders", [(1, 2, 3)])
    allow(world, RULE)
    await world.run(1)


@pytest.mark.shows("O12")
@in_virtual_time
async def test_an_approval_after_the_revocation_moves_nothing() -> None:
    """O12: AllowedNamespaces is asked before each step that changes Kafka, not only when the plan is made."""
    async with running() as world:
        await with_orders(world)
        raw = tenant_move("mv", plan=raw_plan(p0=[2, 3, 4]), approval="Required")
        world.kube.apply(raw)
        await world.until(lambda: state_of(world, MOVE) == "Proposed")
        allow(world)
        await world.run(5)
        raw["spec"]["approvedDigest"] = world.kube.objects[MOVE]["status"]["digest"]
        world.kube.apply(raw)
        await world.run(30)

        assert world.kafka.topics["orders"].replicas == [(1, 2, 3)]
        assert world.kube.ready(MOVE)[:2] == ("False", "NotAllowed")

        allow(world, RULE)
        await world.until(lambda: state_of(world, MOVE) == "Completed")


@pytest.mark.shows("O12")
@in_virtual_time
async def test_a_rollback_after_the_revocation_moves_nothing() -> None:
    """O12: the topic of that name may belong to another namespace at that time."""
    async with running() as world:
        await with_orders(world)
        raw = tenant_move("mv", plan=raw_plan(p0=[2, 3, 4]), throttle={"bytesPerSecond": 1000})
        world.kube.apply(raw)
        await world.until(lambda: state_of(world, MOVE) == "Completed")
        allow(world)
        await world.run(5)
        raw["spec"]["action"] = "Rollback"
        world.kube.apply(raw)
        await world.run(60)

        assert world.kafka.topics["orders"].replicas == [(2, 3, 4)]
        assert world.kube.ready(MOVE)[:2] == ("False", "NotAllowed")
        assert world.kafka.state()["brokers"] == {}


@pytest.mark.shows("O12")
@in_virtual_time
async def test_no_further_wave_begins_after_the_revocation_and_the_throttle_goes() -> None:
    """O12: Moves that the controller has run to their end under their throttle; it is removed then, and no other move is submitted."""
    async with running() as world:
        world.kafka.move_s = 20
        world.kafka.add("orders", [(1, 2, 3), (1, 2, 3)])
        allow(world, RULE)
        await world.run(1)
        plan = raw_plan(p0=[2, 3, 4], p1=[2, 3, 4])
        world.kube.apply(
            tenant_move("mv", plan=plan, throttle={"bytesPerSecond": 1000}, concurrency={"perBroker": 1, "cluster": 1})
        )
        await world.until(lambda: len(world.kafka.moves) == 1)
        assert world.kafka.state()["brokers"] != {}
        submitted = len(world.kafka.submitted)
        allow(world)
        await world.run(90)

        assert len(world.kafka.submitted) == submitted
        assert world.kafka.topics["orders"].replicas == [(2, 3, 4), (1, 2, 3)]
        assert world.kafka.state()["brokers"] == {}
        assert world.kafka.topics["orders"].config == {}
        assert world.kube.ready(MOVE)[:2] == ("False", "NotAllowed")
        assert "throttle" not in world.kube.objects[MOVE]["status"]


@in_virtual_time
async def test_a_pause_keeps_no_throttle_of_a_namespace_without_a_right() -> None:
    """A throttle that was set is removed, also where the owner of the Reassignment pauses it."""
    async with running() as world:
        world.kafka.move_s = 20
        await with_orders(world)
        raw = tenant_move("mv", plan=raw_plan(p0=[2, 3, 4]), throttle={"bytesPerSecond": 1000})
        world.kube.apply(raw)
        await world.until(lambda: len(world.kafka.moves) == 1)
        world.kube.annotate(MOVE, PAUSE, "true")
        allow(world)
        await world.run(60)

        assert world.kafka.state()["brokers"] == {}


@in_virtual_time
async def test_a_throttle_that_was_left_at_the_end_is_removed_after_the_revocation_too() -> None:
    """And the Reassignment stays Completed: it ended while it had the right."""
    async with running() as world:
        world.kafka.move_s = 20
        await with_orders(world)
        world.kube.apply(tenant_move("mv", plan=raw_plan(p0=[2, 3, 4]), throttle={"bytesPerSecond": 1000}))
        await world.until(lambda: len(world.kafka.moves) == 1)
        world.kafka.silent = {3}
        await world.until(lambda: state_of(world, MOVE) == "Completed")
        assert set(world.kafka.throttled()) == {"3"}
        allow(world)
        await world.run(2)
        world.kafka.silent = set()
        await world.until(lambda: world.kafka.throttled() == {}, 120)
        await world.run(5)

        assert world.kube.ready(MOVE)[:2] == ("True", "Completed")


@in_virtual_time
async def test_a_cancel_or_a_deletion_after_the_revocation_cancels_nothing_and_removes_the_throttle() -> None:
    """Only its status lists its own moves, and a status gives no right; the throttle is removed in any case."""
    for delete in (False, True):
        async with running() as world:
            world.kafka.move_s = 40
            await with_orders(world)
            raw = tenant_move("mv", plan=raw_plan(p0=[2, 3, 4]), throttle={"bytesPerSecond": 1000})
            world.kube.apply(raw)
            await world.until(lambda: len(world.kafka.moves) == 1)
            allow(world)
            await world.run(3)
            if delete:
                world.kube.delete(MOVE)
                await world.until(lambda w=world: MOVE not in w.kube.objects)
                assert world.kafka.state()["brokers"] == {}
            else:
                raw["spec"]["action"] = "Cancel"
                world.kube.apply(raw)
            await world.run(60)

            assert world.kafka.topics["orders"].replicas == [(2, 3, 4)]
            assert world.kafka.state()["brokers"] == {}


def forged(plan: list[dict[str, Any]], base: list[dict[str, Any]], **status: Any) -> dict[str, Any]:
    """Return the status of a Reassignment that has started, as a user with a right on the status writes it."""
    return {"state": "Running", "plan": plan, "base": base, "digest": "x", "planDigest": "y", **status}


@pytest.mark.shows("O12")
@in_virtual_time
async def test_a_forged_status_moves_no_topic_that_the_namespace_may_not_name() -> None:
    """O12: Status content gives no right: plan and base in it are checked as those of the spec are."""
    async with running() as world:
        await with_orders(world)
        world.kafka.add("ledger", [(1, 2, 3)])
        raw = tenant_move("mv", plan=raw_plan("orders", p0=[1, 2, 3]))
        raw["metadata"]["annotations"] = {PAUSE: "true"}
        world.kube.apply(raw)
        await world.run(1)
        ledger = raw_plan("ledger", p0=[2, 3, 4])
        world.kube.forge(MOVE, forged(ledger, raw_plan("ledger", p0=[1, 2, 3])))
        world.kube.annotate(MOVE, PAUSE, None)
        await world.run(30)

        assert world.kafka.topics["ledger"].replicas == [(1, 2, 3)]
        assert world.kafka.submitted == []
        assert world.kube.ready(MOVE)[:2] == ("False", "NameNotAllowed")


@in_virtual_time
async def test_a_forged_status_cancels_no_move_of_the_owner() -> None:
    """Neither by spec.action Cancel nor by deletion."""
    async with running() as world:
        world.kafka.move_s = 100
        await with_orders(world)
        world.kafka.add("ledger", [(1, 2, 3)])
        world.kube.apply(raw_reassignment("own", plan=raw_plan("ledger", p0=[2, 3, 4])))
        await world.until(lambda: len(world.kafka.moves) == 1)
        raw = tenant_move("mv", plan=raw_plan("orders", p0=[1, 2, 3]))
        raw["metadata"] |= {"annotations": {PAUSE: "true"}, "finalizers": [FINALIZER]}
        raw["spec"]["action"] = "Cancel"
        world.kube.apply(raw)
        await world.run(1)
        status = forged(raw_plan("ledger", p0=[2, 3, 4]), raw_plan("ledger", p0=[1, 2, 3]), handedOver=1, handingOver=1)
        world.kube.forge(MOVE, status)
        world.kube.annotate(MOVE, PAUSE, None)
        await world.run(10)
        assert Partition("ledger", 0) in world.kafka.moves
        world.kube.delete(MOVE)
        await world.run(30)

        assert MOVE not in world.kube.objects
        assert Partition("ledger", 0) in world.kafka.moves
        assert all(None not in targets.values() for targets in world.kafka.submitted)


@in_virtual_time
async def test_an_election_after_the_revocation_elects_no_leader() -> None:
    """Also one that runs by its status."""
    async with running() as world:
        await with_orders(world)
        world.kafka.leaders[Partition("orders", 0)] = 2
        raw = tenant_election("el", topics=["orders"], type="Preferred")
        raw["metadata"]["annotations"] = {PAUSE: "true"}
        key = Key(kinds.ELECTION, TEAM, "el")
        world.kube.apply(raw)
        await world.run(1)
        world.kube.forge(key, {"state": "Running"})
        allow(world)
        world.kube.annotate(key, PAUSE, None)
        await world.run(60)

        assert world.kafka.elections == []
        assert world.kube.ready(key)[1] == "NotAllowed"


@pytest.mark.shows("O12")
@in_virtual_time
async def test_a_right_revoked_between_check_and_change_changes_no_topic() -> None:
    """O12: The right is asked once more right before the Admin call."""
    async with running() as world:
        allow(world, {"namespaces": [TEAM]})
        world.kube.apply(tenant_topic("orders", partitions=1))
        await world.run(5)
        before = world.kafka.shown("orders")
        alter = world.kafka.alter_configs

        async def revoked_after_the_check(topics: Any, *, validate_only: bool = False) -> Any:
            answer = await alter(topics, validate_only=validate_only)
            if validate_only:
                allow(world)
                await asyncio.sleep(0.1)
            return answer

        world.kafka.alter_configs = revoked_after_the_check
        world.kube.apply(tenant_topic("orders", partitions=2, config={"retention.ms": "1000"}))
        await world.run(5)

        assert world.kafka.shown("orders") == before
        assert world.kube.ready(topic_key("orders"))[1] == "NotAllowed"


@in_virtual_time
async def test_a_forged_status_is_in_no_way_of_the_owner() -> None:
    """A Reassignment of a namespace without a right is no rival, whatever its status contains."""
    async with running() as world:
        world.kafka.add("orders", [(1, 2, 3)])
        raw = tenant_move("squat", plan=raw_plan(p0=[2, 3, 4]))
        raw["metadata"]["annotations"] = {PAUSE: "true"}
        world.kube.apply(raw)
        await world.run(1)
        throttle = {"bytesPerSecond": 1, "rates": [1], "brokers": [{"id": n} for n in (1, 2, 3, 4)]}
        world.kube.forge(move_key("squat"), forged(raw_plan(p0=[2, 3, 4]), raw_plan(p0=[1, 2, 3]), throttle=throttle))
        world.kube.apply(raw_reassignment("own", plan=raw_plan(p0=[3, 4, 1]), throttle={"bytesPerSecond": 5000}))
        own = Key(kinds.REASSIGNMENT, "shop", "own")
        rates: set[str] = set()

        def ended() -> bool:
            rates.update(rate for config in world.kafka.broker_configs.values() for rate in config.values())
            return state_of(world, own) in {"Completed", "Failed"}

        await world.until(ended)
        assert state_of(world, own) == "Completed"
        assert rates == {"5000"}

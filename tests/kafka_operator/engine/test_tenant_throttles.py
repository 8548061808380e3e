"""Throttles of several namespaces on the same brokers, over fakes and virtual time.

A broker has one rate for all replication that is throttled (KIP-73), so the rates of all Reassignments have to agree.
"""

from __future__ import annotations

from typing import Any

import pytest

from reconciler.names import PAUSE
from tests.kafka_operator.makers import raw_plan, raw_reassignment
from tests.kafka_operator.tenants import TEAM, allow, move_key, state_of, tenant_move
from tests.kafka_operator.world import World, running
from tests.reconciler.virtual_time import in_virtual_time

FAST, SLOW = 50_000_000, 2_000_000
RULE = {"namespaces": ["team-*"], "topicNames": ["${namespace}.*"]}
OWN = move_key("own", "shop")


def own_move(**spec: Any) -> dict[str, Any]:
    """Return a Reassignment of the Cluster's own namespace."""
    return raw_reassignment("own", plan=raw_plan(p0=[2, 3, 4]), **spec)


def team_move(name: str, rate: int | None, namespace: str = TEAM) -> dict[str, Any]:
    """Return a Reassignment of another namespace for its own topic."""
    spec = {} if rate is None else {"throttle": {"bytesPerSecond": rate}}
    return tenant_move(name, namespace, plan=raw_plan(f"{namespace}.t", p0=[2, 3, 4]), **spec)


async def prepared(world: World, **rule: Any) -> None:
    """Have a topic of the owner and one of each team, and the rule in force."""
    world.kafka.move_s = 100
    for name in ("orders", "team-a.t", "team-b.t"):
        world.kafka.add(name, [(1, 2, 3)])
    allow(world, {**RULE, **rule})
    await world.run(1)


def rates(world: World) -> set[str]:
    """Return every rate that is set on a broker now."""
    return {rate for config in world.kafka.broker_configs.values() for rate in config.values()}


@pytest.mark.shows("O14")
@in_virtual_time
async def test_another_namespace_never_lowers_the_owners_rate() -> None:
    """O14: Otherwise a tenant could stall the owner's moves."""
    async with running() as world:
        await prepared(world, minBytesPerSecond=1)
        world.kube.apply(own_move(throttle={"bytesPerSecond": FAST}))
        await world.until(lambda: len(world.kafka.moves) == 1)
        world.kube.apply(team_move("mine", 1))
        await world.until(lambda: len(world.kafka.moves) == 2)
        await world.run(10)
        assert rates(world) == {str(FAST)}
        await world.until(lambda: state_of(world, OWN) == "Completed", 200)
        await world.until(lambda: state_of(world, move_key("mine")) == "Completed", 200)
        await world.run(5)

        assert world.kafka.throttled() == {}


@in_virtual_time
async def test_the_owners_rate_replaces_one_of_another_namespace_that_was_there_before() -> None:
    """And when the owner's move has ended, the other rate is set again and removed at its own end."""
    async with running() as world:
        await prepared(world)
        world.kube.apply(team_move("mine", SLOW))
        await world.until(lambda: len(world.kafka.moves) == 1)
        assert rates(world) == {str(SLOW)}
        world.kafka.move_s = 20
        world.kube.apply(own_move(throttle={"bytesPerSecond": FAST}))
        await world.until(lambda: len(world.kafka.moves) == 2)
        assert rates(world) == {str(FAST)}
        await world.until(lambda: state_of(world, OWN) == "Completed")
        await world.until(lambda: rates(world) == {str(SLOW)})
        await world.until(lambda: state_of(world, move_key("mine")) == "Completed", 200)
        await world.run(5)

        assert world.kafka.throttled() == {}


@pytest.mark.shows("O14")
@in_virtual_time
async def test_a_move_of_the_owner_without_a_throttle_stays_without_one() -> None:
    """O14: A rate on a broker counts only for the replicas that a topic lists, and the owner's topic lists none."""
    async with running() as world:
        await prepared(world)
        world.kube.apply(own_move())
        world.kube.apply(team_move("mine", SLOW))
        await world.until(lambda: len(world.kafka.moves) == 2)
        await world.run(5)

        assert world.kafka.topics["orders"].config == {}
        assert set(world.kafka.topics["team-a.t"].config) == {
            "leader.replication.throttled.replicas",
            "follower.replication.throttled.replicas",
        }


@in_virtual_time
async def test_of_two_other_namespaces_the_higher_rate_is_in_force() -> None:
    """Neither slows the other down; the last one leaves nothing behind, whichever that is."""
    for slow_first in (True, False):
        async with running() as world:
            await prepared(world)
            pair = [team_move("x", SLOW), team_move("x", FAST, "team-b")]
            for raw in pair if slow_first else reversed(pair):
                world.kube.apply(raw)
                await world.until(
                    lambda w=world, n=raw["metadata"]["namespace"]: state_of(w, move_key("x", n)) == "Running"
                )
                await world.run(10)
            assert rates(world) == {str(FAST)}
            for namespace in (TEAM, "team-b"):
                await world.until(lambda w=world, n=namespace: state_of(w, move_key("x", n)) == "Completed", 300)
            await world.run(10)

            assert world.kafka.throttled() == {}


@in_virtual_time
async def test_a_rate_that_was_set_by_hand_is_left_alone_by_other_namespaces() -> None:
    """It is the administrator's; it is neither lowered nor raised nor removed."""
    async with running() as world:
        await prepared(world)
        world.kafka.broker_configs[2] = {"leader.replication.throttled.rate": "700"}
        world.kube.apply(team_move("mine", SLOW))
        await world.until(lambda: len(world.kafka.moves) == 1)
        await world.run(5)
        assert world.kafka.broker_configs[2]["leader.replication.throttled.rate"] == "700"
        await world.until(lambda: state_of(world, move_key("mine")) == "Completed", 200)
        await world.run(5)

        assert world.kafka.throttled() == {"2": {"leader.replication.throttled.rate": "700"}}


@pytest.mark.parametrize(
    ("rule", "asked", "expected"),
    [
        ({}, 1, 1_000_000),
        ({"minBytesPerSecond": 5_000_000}, 1, 5_000_000),
        ({"maxBytesPerSecond": 5_000_000}, FAST, 5_000_000),
        ({"maxBytesPerSecond": 5_000_000}, None, 5_000_000),
        ({"minBytesPerSecond": 5_000_000}, FAST, FAST),
    ],
)
def test_a_throttle_of_another_namespace_stays_within_its_rule(
    rule: dict[str, int], asked: int | None, expected: int
) -> None:
    """allowedNamespaces[].minBytesPerSecond and maxBytesPerSecond; without a throttle the upper bound is one."""

    @in_virtual_time
    async def scenario() -> None:
        async with running() as world:
            await prepared(world, **rule)
            world.kube.apply(team_move("mine", asked))
            await world.until(lambda: len(world.kafka.moves) == 1)
            assert rates(world) == {str(expected)}
            assert world.kube.objects[move_key("mine")]["status"]["throttle"]["bytesPerSecond"] == expected

    scenario()


@pytest.mark.shows("O14")
@in_virtual_time
async def test_an_edit_of_a_running_throttle_does_not_leave_the_bounds() -> None:
    """O14: Bounds hold at each step, whatever was accepted before."""
    async with running() as world:
        await prepared(world, maxBytesPerSecond=FAST)
        raw = team_move("mine", SLOW)
        world.kube.apply(raw)
        await world.until(lambda: len(world.kafka.moves) == 1)
        for asked, expected in ((1, 1_000_000), (10**12, FAST)):
            raw["spec"]["throttle"] = {"bytesPerSecond": asked}
            world.kube.apply(raw)
            await world.until(lambda e=expected: rates(world) == {str(e)})


@in_virtual_time
async def test_a_forged_record_of_what_was_set_before_sets_no_rate() -> None:
    """`status.throttle.brokers[].leaderBefore` of another namespace is not put back: the status could name any rate."""
    async with running() as world:
        await prepared(world)
        world.kube.apply(team_move("mine", SLOW))
        key = move_key("mine")
        await world.until(lambda: len(world.kafka.moves) == 1)
        world.kube.annotate(key, PAUSE, "true")
        await world.run(2)
        status = dict(world.kube.objects[key]["status"])
        status["throttle"]["brokers"] = [
            {"id": broker, "leaderBefore": "1", "followerBefore": "1"} for broker in (1, 2, 3, 4)
        ]
        world.kube.forge(key, status)
        world.kube.annotate(key, PAUSE, None)
        await world.until(lambda: state_of(world, key) == "Completed", 200)
        await world.run(5)

        assert world.kafka.throttled() == {}

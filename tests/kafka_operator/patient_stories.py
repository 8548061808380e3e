"""Stories whose users wait for a state before their next action.

Under faults everything takes longer, and a plan that never started ends in another way.
"""

from __future__ import annotations

from collections.abc import Callable

from kafka_operator import kinds
from kafka_operator.resources.reassignment import Partition
from reconciler.names import Key
from tests.kafka_operator.engine.test_crash_anywhere import create, reassign, refused
from tests.kafka_operator.makers import raw_election, raw_plan, raw_reassignment, raw_topic
from tests.kafka_operator.world import RESYNC_S, World

ORDERS = Key(kinds.TOPIC, "shop", "orders")
MOVE = Key(kinds.REASSIGNMENT, "shop", "move")
PLAN = raw_plan(p0=[2, 3, 4], p1=[3, 4, 2])

PATIENCE_S = 2 * RESYNC_S
"""Time in which a resync finds what a lost event did not report."""

__all__ = ["cancel", "change", "conflict", "create", "delete", "delete_running", "elect", "reassign", "refused"]


async def until(world: World, condition: Callable[[], bool]) -> None:
    """Let time pass until a condition holds, a moment at least."""
    await world.run(2)
    await world.until(condition, PATIENCE_S)


async def change(world: World) -> None:
    """A Topic is Ready; its partitions grow, one setting changes, one is added, one is removed."""
    world.kube.apply(raw_topic(config={"retention.ms": "1", "cleanup.policy": "compact"}))
    await until(world, lambda: world.kube.ready(ORDERS)[0] == "True")
    world.kube.apply(raw_topic(partitions=8, config={"retention.ms": "2", "min.insync.replicas": "2"}))


async def delete(world: World) -> None:
    """A Topic is Ready, and is deleted."""
    world.kube.apply(raw_topic())
    await until(world, lambda: world.kube.ready(ORDERS)[0] == "True")
    world.kube.delete(ORDERS)


async def conflict(world: World) -> None:
    """Two Topics for one Kafka topic; the older one is deleted."""
    second = Key(kinds.TOPIC, "shop", "second")
    world.kube.apply(raw_topic())
    await until(world, lambda: world.kube.ready(ORDERS)[0] == "True")
    world.kube.apply(raw_topic("second", topicName="orders", partitions=2))
    await until(world, lambda: world.kube.ready(second)[1] == "Conflict")
    world.kube.delete(ORDERS)


async def elect(world: World) -> None:
    """Leaders return to where they are preferred; one of them is there already."""
    world.kafka.add("orders", [(1, 2, 3), (2, 3, 1), (3, 1, 2)])
    world.kafka.leaders |= {Partition("orders", 0): 3, Partition("orders", 2): 1}
    key = world.kube.apply(raw_election(topics=["orders"]))
    await until(world, lambda: world.kube.ready(key)[0] == "True")


async def begun(world: World) -> None:
    """A plan is in progress and never ends."""
    world.kafka.move_s = 1000
    world.kafka.add("orders", [(1, 2, 3)] * 2)
    world.kube.apply(raw_reassignment(plan=PLAN))
    await until(world, lambda: world.kube.ready(MOVE)[1] == "Running" and len(world.kafka.moves) == len(PLAN))


async def cancel(world: World) -> None:
    """A plan is cancelled on the way."""
    await begun(world)
    world.kube.apply(raw_reassignment(plan=PLAN, action="Cancel"))


async def delete_running(world: World) -> None:
    """A plan is deleted on the way."""
    await begun(world)
    world.kube.delete(MOVE)

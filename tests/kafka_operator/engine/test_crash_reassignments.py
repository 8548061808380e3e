"""The operator killed after its effects for a Reassignment: the end is always the same (O3).

As in test_crash_anywhere, with what only Reassignments do: waves, throttles, goals and their approval, plans in ConfigMaps, the way back.
No throttle is left in Kafka, whichever call was the last.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import pytest

from kafka_operator import kinds
from kafka_operator.decide.plans.plan_document import digest_of
from kafka_operator.decide.reassignments import plan_preparation
from kafka_operator.resources.reassignment import Partition
from reconciler.names import Key
from tests.effort import in_soak
from tests.kafka_operator.crash_stories import ends_alike
from tests.kafka_operator.engine.test_log_dirs import GOAL, approved, have_uneven_directories
from tests.kafka_operator.makers import assignments, raw_plan, raw_reassignment
from tests.kafka_operator.plans import raw_config_map
from tests.kafka_operator.tenants import allow, tenant_move
from tests.kafka_operator.world import World

pytestmark = pytest.mark.slow

Story = Callable[[World], Awaitable[None]]

MOVE = Key(kinds.REASSIGNMENT, "shop", "move")
PLAN = raw_plan(p0=[2, 3, 4], p1=[3, 4, 2])
THROTTLE = {"bytesPerSecond": 5_000_000}
TARGET = assignments(p0=(2, 3, 4), p1=(3, 4, 2))


def have_orders(world: World, move_s: float = 3.0, size: int = 1_000_000) -> None:
    """Topic `orders` of two partitions, with a throttle of another owner on a broker."""
    world.kafka.move_s = move_s
    world.kafka.add("orders", [(1, 2, 3)] * 2)
    world.kafka.sizes = {Partition("orders", index): size for index in range(2)}
    world.kafka.broker_configs = {1: {"leader.replication.throttled.rate": "777"}}


async def waves(world: World) -> None:
    """One partition after the other."""
    have_orders(world)
    world.kube.apply(raw_reassignment(plan=PLAN, concurrency={"cluster": 1}))


async def throttled(world: World) -> None:
    """A plan is carried out under a throttle, one partition after the other."""
    have_orders(world)
    world.kube.apply(raw_reassignment(plan=PLAN, throttle=THROTTLE, concurrency={"cluster": 1}))


async def throttled_cancel(world: World) -> None:
    """It is cancelled on the way."""
    have_orders(world, move_s=1000)
    world.kube.apply(raw_reassignment(plan=PLAN, throttle=THROTTLE))
    await world.run(14)
    world.kube.apply(raw_reassignment(plan=PLAN, throttle=THROTTLE, action="Cancel"))


async def throttled_delete(world: World) -> None:
    """It is deleted on the way."""
    have_orders(world, move_s=1000)
    world.kube.apply(raw_reassignment(plan=PLAN, throttle=THROTTLE))
    await world.run(14)
    world.kube.delete(MOVE)


async def rollback_on_the_way(world: World) -> None:
    """It goes back before it has arrived."""
    have_orders(world, move_s=1000)
    world.kube.apply(raw_reassignment(plan=PLAN))
    await world.run(4)
    world.kube.apply(raw_reassignment(plan=PLAN, action="Rollback"))


async def rollback_after_the_end(world: World) -> None:
    """It goes back after it has arrived, under a throttle."""
    have_orders(world, move_s=1)
    world.kube.apply(raw_reassignment(plan=PLAN, throttle=THROTTLE))
    await world.run(20)
    world.kube.apply(raw_reassignment(plan=PLAN, throttle=THROTTLE, action="Rollback"))


async def rollback_deleted(world: World) -> None:
    """It is deleted on the way back."""
    have_orders(world, move_s=1)
    world.kube.apply(raw_reassignment(plan=PLAN))
    await world.run(14)
    world.kafka.move_s = 1000
    world.kube.apply(raw_reassignment(plan=PLAN, action="Rollback"))
    await world.run(4)
    world.kube.delete(MOVE)


async def goal(world: World) -> None:
    """A goal is proposed, approved, and carried out."""
    have_orders(world)
    world.kube.apply(raw_reassignment(goal={"removeBrokers": [1]}))
    await world.run(4)
    digest = world.kube.objects[MOVE]["status"]["digest"]
    world.kube.apply(raw_reassignment(goal={"removeBrokers": [1]}, approvedDigest=digest))


async def log_dirs(world: World) -> None:
    """Replicas move between the directories of their brokers under a throttle, one partition after the other."""
    have_uneven_directories(world)
    await approved(world, throttle=THROTTLE, concurrency={"cluster": 1})


async def log_dirs_cancelled(world: World) -> None:
    """They are cancelled on the way."""
    have_uneven_directories(world, move_s=1000)
    await approved(world, throttle=THROTTLE)
    await world.until(lambda: bool(world.kafka.futures), 60)
    digest = world.kube.objects[MOVE]["spec"]["approvedDigest"]
    world.kube.apply(raw_reassignment(goal=GOAL, throttle=THROTTLE, approvedDigest=digest, action="Cancel"))


async def log_dirs_rolled_back(world: World) -> None:
    """They go back on the way, before one of them has arrived."""
    have_uneven_directories(world, move_s=1000)
    await approved(world)
    await world.until(lambda: bool(world.kafka.futures), 60)
    digest = world.kube.objects[MOVE]["spec"]["approvedDigest"]
    world.kube.apply(raw_reassignment(goal=GOAL, approvedDigest=digest, action="Rollback"))


async def from_config_maps(world: World) -> None:
    """A plan in two ConfigMaps, too large for the status."""
    have_orders(world)
    world.kube.config_maps["shop", "a"] = raw_config_map("a", TARGET[:1])
    world.kube.config_maps["shop", "b"] = raw_config_map("b", TARGET[1:], packed=True)
    world.kube.apply(raw_reassignment(planFrom={"configMaps": ["a", "b"], "digest": digest_of(TARGET)}))


TEAM_RULE = {"namespaces": ["team-a"], "topicNames": ["orders", "team-a.t"]}


async def revoked_on_the_way(world: World) -> None:
    """The namespace loses its right: what moves arrives, nothing more moves, and the throttle goes."""
    have_orders(world, move_s=20)
    allow(world, TEAM_RULE)
    world.kube.apply(tenant_move("move", plan=PLAN, throttle=THROTTLE, concurrency={"cluster": 1}))
    await world.run(18)
    allow(world)


async def two_namespaces(world: World) -> None:
    """The owner and another namespace throttle the same brokers; the owner's rate comes and goes."""
    have_orders(world, move_s=30)
    world.kafka.add("team-a.t", [(1, 2, 3)])
    allow(world, TEAM_RULE)
    world.kube.apply(
        tenant_move("theirs", plan=raw_plan("team-a.t", p0=[2, 3, 4]), throttle={"bytesPerSecond": 2_000_000})
    )
    await world.run(8)
    world.kafka.move_s = 3
    world.kube.apply(raw_reassignment(plan=PLAN, throttle=THROTTLE))


async def windows(world: World) -> None:
    """One partition after the other under a throttle, in a window of each second minute; the first runs past the window's end."""
    have_orders(world, move_s=58, size=3)  # few bytes are few writes of progress
    windows = [{"schedule": "*/2 * * * *", "duration": "1m"}]
    world.kube.apply(raw_reassignment(plan=PLAN, throttle=THROTTLE, concurrency={"cluster": 1}, windows=windows))
    await world.run(90)
    world.kafka.move_s = 1


async def guarded_rollback(world: World) -> None:
    """A consumer group falls behind after the first partition has arrived: the guard pauses, then rolls back, under a throttle."""
    have_orders(world, move_s=12, size=3)
    world.kafka.lags["billing"] = 0
    guard = {"consumerLag": [{"group": "billing", "maxRecords": 9}], "action": "Rollback"}
    world.kube.apply(raw_reassignment(plan=PLAN, throttle=THROTTLE, concurrency={"cluster": 1}, guard=guard))
    await world.until(lambda: world.kafka.topics["orders"].replicas[0] == (2, 3, 4), 60)
    world.kafka.lags["billing"] = 10
    await world.run(20)


async def guarded_pause(world: World) -> None:
    """The group falls behind and catches up again: the plan arrives."""
    have_orders(world, move_s=12, size=3)
    world.kafka.lags["billing"] = 0
    guard = {"consumerLag": [{"group": "billing", "maxRecords": 9}], "resumeAfterSeconds": 15}
    world.kube.apply(raw_reassignment(plan=PLAN, throttle=THROTTLE, concurrency={"cluster": 1}, guard=guard))
    await world.until(lambda: bool(world.kafka.moves), 60)
    world.kafka.lags["billing"] = 10
    await world.run(25)
    world.kafka.lags["billing"] = 0


async def canary(world: World) -> None:
    """The first partition moves, is healthy for a while, and the other one moves after the approval."""
    have_orders(world)
    first = {"partitions": 1, "soakSeconds": 10}
    world.kube.apply(raw_reassignment(plan=PLAN, throttle=THROTTLE, canary=first))
    await world.until(lambda: world.kube.ready(MOVE)[1] == "CanaryApprovalRequired", 60)
    approved = {**first, "approvedDigest": world.kube.objects[MOVE]["status"]["digest"]}
    world.kube.apply(raw_reassignment(plan=PLAN, throttle=THROTTLE, canary=approved))


STORIES: tuple[Story, ...] = (
    waves,
    canary,
    guarded_rollback,
    throttled,
    throttled_cancel,
    throttled_delete,
    rollback_on_the_way,
    rollback_after_the_end,
    rollback_deleted,
    goal,
    log_dirs,
    log_dirs_cancelled,
    log_dirs_rolled_back,
    from_config_maps,
    revoked_on_the_way,
    two_namespaces,
)


LOG_DIRS = {log_dirs, log_dirs_cancelled, log_dirs_rolled_back}


@pytest.mark.shows("F19", "F44", "E3", "O3", "O9")
@pytest.mark.parametrize("story", [*STORIES, *in_soak(windows, guarded_pause)], ids=lambda story: story.__name__)
def test_killed_at_any_call_the_end_is_the_same(story: Story, monkeypatch: pytest.MonkeyPatch) -> None:
    """O1, O3, O9: no throttle is left that is ours, either."""
    if story is from_config_maps:
        monkeypatch.setattr(plan_preparation, "INLINE_PARTITIONS", 1)
    _, kafka = ends_alike(story)

    assert kafka["dir_moves"] == []
    others = {} if story in LOG_DIRS else {1: {"leader.replication.throttled.rate": "777"}}
    assert kafka["brokers"] == others
    assert kafka["moves"] == {}

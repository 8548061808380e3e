"""A Topic's replication factor edited, with the operator killed after its effects (O3): Topic and Reassignment together."""

from __future__ import annotations

import pytest

from tests.kafka_operator.crash_stories import Story, ends_alike
from tests.kafka_operator.makers import raw_topic
from tests.kafka_operator.topics import ORDERS
from tests.kafka_operator.world import World

pytestmark = pytest.mark.slow


async def fewer(world: World) -> None:
    """A copy of each partition less."""
    world.kube.apply(raw_topic(partitions=2))
    await world.run(2)
    world.kube.apply(raw_topic(partitions=2, replicationFactor=2))


async def more_under_a_throttle(world: World) -> None:
    """One more replica, no faster than the throttle."""
    world.kube.apply(raw_topic(partitions=2, replicationFactor=2))
    await world.run(2)
    world.kube.apply(raw_topic(partitions=2, throttle={"bytesPerSecond": 1_000_000}))


async def too_many(world: World) -> None:
    """More copies than there are brokers."""
    world.kube.apply(raw_topic(partitions=2))
    await world.run(2)
    world.kube.apply(raw_topic(partitions=2, replicationFactor=5))


async def deleted_on_the_way(world: World) -> None:
    """The Topic goes while its copies are being made, and its Reassignment with it."""
    world.kafka.move_s = 1000
    world.kube.apply(raw_topic(partitions=2, replicationFactor=2))
    await world.run(2)
    world.kube.apply(raw_topic(partitions=2))
    await world.run(4)
    world.kube.delete(ORDERS)


async def change_of_mind(world: World) -> None:
    """The factor is edited, and edited back while copies are being made."""
    world.kafka.move_s = 1000
    world.kube.apply(raw_topic(partitions=2, replicationFactor=2))
    await world.run(2)
    world.kube.apply(raw_topic(partitions=2))
    await world.run(4)
    world.kube.apply(raw_topic(partitions=2, replicationFactor=2))


STORIES: tuple[Story, ...] = (fewer, more_under_a_throttle, too_many, deleted_on_the_way, change_of_mind)


@pytest.mark.shows("F5", "O3")
@pytest.mark.parametrize("story", STORIES, ids=lambda story: story.__name__)
def test_killed_at_any_call_the_end_is_the_same(story: Story) -> None:
    """O1, O3: all kinds of effects, in the soak every call; one Reassignment, whenever the process died."""
    ends_alike(story)

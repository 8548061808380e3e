"""Reassignments that a Cluster makes by itself, with the operator killed after its effects (O3): one, whenever it died."""

from __future__ import annotations

import pytest

from tests.kafka_operator.crash_stories import ends_alike
from tests.kafka_operator.engine.test_rebalances import BOTH, have
from tests.kafka_operator.makers import raw_cluster
from tests.kafka_operator.world import World

pytestmark = pytest.mark.slow


async def one_more_broker(world: World) -> None:
    """A broker comes and gets its part."""
    world.kafka.broker_ids = (1, 2, 3)
    world.kafka.move_s = 1
    have(world, partitions=3)
    world.kube.apply(raw_cluster(autoRebalance={**BOTH, "approval": "Automatic"}))
    await world.run(12)
    world.kafka.broker_ids = (1, 2, 3, 4)
    await world.run(60)


@pytest.mark.shows("F21")
def test_killed_at_any_call_the_end_is_the_same() -> None:
    """O1, O3: all kinds of effects, in the soak every call; one Reassignment of one name."""
    ends_alike(one_more_broker)

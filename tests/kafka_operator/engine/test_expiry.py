"""Deletion of Reassignments and Elections after their end (ttlSecondsAfterFinished, as of a Job)."""

from __future__ import annotations

from datetime import timedelta

import pytest

from kafka_operator import kinds
from reconciler.decide.expiry import MAX_WAIT_S, decide_expiry
from reconciler.decide.steps import DeleteResource, Done, Wait
from reconciler.names import Key
from reconciler.resources.metadata import write_time
from tests.kafka_operator.makers import NOW, raw_election, raw_plan, raw_reassignment
from tests.kafka_operator.world import running
from tests.reconciler.virtual_time import in_virtual_time

MOVE = Key(kinds.REASSIGNMENT, "shop", "move")
ELECT = Key(kinds.ELECTION, "shop", "elect")

EXPIRIES = [
    (None, 5, Done()),
    (600, None, Done()),
    (600, 5, Wait(595)),
    (600, 600, DeleteResource()),
    (0, 0, DeleteResource()),
    (86_400, 5, Wait(MAX_WAIT_S)),
]


@pytest.mark.parametrize(("limit_s", "ago_s", "step"), EXPIRIES)
def test_a_resource_that_has_ended_is_deleted_after_its_time_to_live(
    limit_s: int | None, ago_s: int | None, step: object
) -> None:
    """Without a limit, or before its end, it stays."""
    ended = None if ago_s is None else write_time(NOW - timedelta(seconds=ago_s))

    assert decide_expiry(ended, limit_s, NOW) == step


@pytest.mark.shows("F41")
@in_virtual_time
async def test_a_reassignment_and_an_election_are_deleted_after_their_time_to_live() -> None:
    """The finalizer goes first; what has no time to live stays."""
    async with running() as world:
        world.kafka.add("orders", [(1, 2, 3)])
        world.kube.apply(raw_election(topics=["orders"], ttlSecondsAfterFinished=60))
        world.kube.apply(raw_election("kept", topics=["orders"]))
        await world.run(5)
        world.kube.apply(raw_reassignment(plan=raw_plan(p0=[2, 3, 4]), ttlSecondsAfterFinished=60))
        await world.until(lambda: world.kube.objects[MOVE].get("status", {}).get("state") == "Completed")

        await world.run(50)
        assert world.kube.objects[MOVE]["metadata"].get("finalizers") == []
        await world.run(15)

        assert set(world.kube.objects) == {Key(kinds.CLUSTER, "shop", "main"), Key(kinds.ELECTION, "shop", "kept")}
        assert world.kafka.topics["orders"].replicas == [(2, 3, 4)]


@in_virtual_time
async def test_a_time_to_live_expires_while_the_cluster_is_away_and_no_rollback_is_lost() -> None:
    """Deletion needs no broker. A rollback that was requested before is carried out first, and its end counts."""
    async with running() as world:
        world.kafka.add("orders", [(1, 2, 3)])
        plan = raw_plan(p0=[2, 3, 4])
        world.kube.apply(raw_reassignment(plan=plan, ttlSecondsAfterFinished=60))
        await world.until(lambda: world.kube.objects[MOVE].get("status", {}).get("state") == "Completed")
        await world.run(30)
        world.kube.apply(raw_reassignment(plan=plan, ttlSecondsAfterFinished=60, action="Rollback"))
        await world.until(lambda: world.kube.objects[MOVE]["status"]["state"] == "RolledBack")
        assert world.kafka.topics["orders"].replicas == [(1, 2, 3)]

        world.kafka.reachable = False
        await world.run(200)

        assert MOVE not in world.kube.objects

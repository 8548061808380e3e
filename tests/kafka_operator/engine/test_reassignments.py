"""Reassignments from apply to their end, over fakes and virtual time."""

from __future__ import annotations

from typing import Any

import pytest

from kafka_operator import kinds
from kafka_operator.decide.kafka.observed import Failure
from kafka_operator.resources.reassignment import Partition
from reconciler.names import FINALIZER, Key
from tests.kafka_operator.makers import raw_plan, raw_reassignment, raw_topic
from tests.kafka_operator.world import World, running
from tests.reconciler.virtual_time import in_virtual_time

MOVE = Key(kinds.REASSIGNMENT, "shop", "move")
PLAN = raw_plan(p0=[2, 3, 4], p1=[3, 4, 2], p2=[4, 2, 3])


def status(world: World, key: Key = MOVE) -> dict[str, Any]:
    """The status of a Reassignment."""
    found: dict[str, Any] = world.kube.objects[key].get("status", {})
    return found


async def orders(world: World, partitions: int = 3) -> None:
    """Have topic `orders` on brokers 1, 2, 3."""
    world.kafka.add("orders", [(1, 2, 3)] * partitions)
    await world.run(1)
    world.gate.calls.clear()
    world.kube.writes.clear()


@in_virtual_time
async def test_a_plan_moves_shows_progress_and_ends_ready_with_exactly_the_target() -> None:
    """From brokers 1, 2, 3 to 2, 3, 4."""
    async with running() as world:
        await orders(world)
        world.kube.apply(raw_reassignment(plan=PLAN))
        seen: list[str] = []
        while world.kube.ready(MOVE)[0] != "True":
            await world.run(0.25)
            shown = status(world).get("progress", {}).get("partitions", "")
            if shown and shown not in seen:
                seen.append(shown)

        assert seen == ["0/3", "1/3", "2/3", "3/3"]
        assert world.kafka.topics["orders"].replicas == [(2, 3, 4), (3, 4, 2), (4, 2, 3)]
        assert status(world)["state"] == "Completed"
        assert status(world)["base"][0]["replicas"] == [1, 2, 3]
        assert status(world)["progress"]["percent"] == 100
        assert world.gate.count("kafka alter_reassignments") == 1
        assert [event.reason for event in world.kube.events] == ["Running", "Completed"]


@pytest.mark.shows("O7")
@in_virtual_time
async def test_a_long_move_writes_only_when_something_arrived() -> None:
    """O7: polled each second, written only on a change."""
    async with running() as world:
        world.kafka.move_s = 100
        await orders(world)
        world.kube.apply(raw_reassignment(plan=PLAN))
        await world.run(5)
        world.kube.writes.clear()

        await world.run(90)

        assert world.kube.writes == []
        assert world.gate.count("kafka list_reassignments") >= 80


@in_virtual_time
async def test_topics_and_brokers_are_worked_out_and_written_down() -> None:
    """The compact form: status.plan contains what is executed."""
    async with running() as world:
        await orders(world)
        world.kube.apply(raw_reassignment(topics=[{"name": "orders", "brokers": [2, 3, 4]}]))

        await world.until(lambda: world.kube.ready(MOVE)[0] == "True", seconds=30)

        executed = [tuple(item["replicas"]) for item in status(world)["plan"]]
        assert executed == world.kafka.topics["orders"].replicas
        assert all({2, 3, 4} == set(replicas) for replicas in executed)


@in_virtual_time
async def test_bad_plans_have_a_reason_each_and_move_nothing() -> None:
    """Unknown topic, partition or broker, a repeated replica."""
    async with running() as world:
        await orders(world)
        plans = {
            "UnknownTopic": [*PLAN, *raw_plan("nope", p0=[2, 3, 4])],
            "UnknownPartition": raw_plan(p0=[2, 3, 4], p9=[2, 3, 4]),
            "UnknownBroker": raw_plan(p0=[2, 3, 4], p1=[2, 3, 9]),
            "DuplicateReplica": raw_plan(p0=[2, 3, 4], p1=[2, 2, 3]),
        }
        for reason, plan in plans.items():
            world.kube.apply(raw_reassignment(reason.lower(), plan=plan))
        await world.run(3)

        for reason in plans:
            key = Key(kinds.REASSIGNMENT, "shop", reason.lower())
            assert world.kube.ready(key)[:2] == ("False", reason)
        await world.run(60)
        for reason in plans:
            key = Key(kinds.REASSIGNMENT, "shop", reason.lower())
            assert world.kube.ready(key)[:2] == ("False", reason)
            assert status(world, key)["state"] == "Failed"
        assert world.kafka.submitted == []


@in_virtual_time
async def test_an_overlap_with_a_running_one_is_reported_and_moves_nothing() -> None:
    """By a Reassignment, or by another tool."""
    async with running() as world:
        world.kafka.move_s = 50
        await orders(world)
        world.kube.apply(raw_reassignment(plan=PLAN))
        await world.run(3)
        world.kube.apply(raw_reassignment("second", plan=raw_plan(p2=[1, 2, 4])))
        await world.run(3)
        second = Key(kinds.REASSIGNMENT, "shop", "second")
        status_, reason, message = world.kube.ready(second)
        assert (status_, reason) == ("False", "Overlap")
        assert "Reassignment move" in message

        world.kafka.add("other", [(1, 2)])
        await world.kafka.alter_reassignments({Partition("other", 0): (3, 4)})
        world.kube.apply(raw_reassignment("third", plan=raw_plan("other", p0=[2, 3])))
        await world.run(3)
        assert world.kube.ready(Key(kinds.REASSIGNMENT, "shop", "third"))[1] == "Overlap"
        assert len(world.kafka.submitted) == 2


@in_virtual_time
async def test_two_plans_that_overlap_and_come_together_end_with_one() -> None:
    """The older one begins; a tie is broken the same way each time."""
    async with running() as world:
        await orders(world)
        await world.kill()
        for name in ("a", "b"):
            world.kube.apply(raw_reassignment(name, plan=PLAN))
        world.start()
        await world.run(30)

        reasons = {name: world.kube.ready(Key(kinds.REASSIGNMENT, "shop", name))[1] for name in ("a", "b")}
        assert reasons == {"a": "Completed", "b": "Overlap"}


@in_virtual_time
async def test_a_plan_for_a_topic_that_is_applied_with_it_waits_for_it() -> None:
    """`kubectl apply -f examples/` applies the Reassignment first."""
    async with running() as world:
        await world.run(1)
        world.kube.apply(raw_reassignment(plan=PLAN))
        await world.run(1)
        world.kube.apply(raw_topic(partitions=3))

        await world.until(lambda: world.kube.ready(MOVE)[0] == "True", seconds=60)


@in_virtual_time
async def test_cancel_returns_what_still_moves() -> None:
    """spec.cancel: true."""
    async with running() as world:
        world.kafka.move_s = 5
        await orders(world)
        world.kube.apply(raw_reassignment(plan=PLAN))
        await world.until(lambda: status(world).get("progress", {}).get("partitions") == "1/3")

        world.kube.apply(raw_reassignment(plan=PLAN, action="Cancel"))
        await world.until(lambda: status(world)["state"] == "Cancelled", seconds=5)

        assert world.kafka.topics["orders"].replicas == [(2, 3, 4), (1, 2, 3), (1, 2, 3)]
        assert world.kafka.moves == {}
        assert world.kube.ready(MOVE)[:2] == ("False", "Cancelled")


@in_virtual_time
async def test_deleting_a_running_one_cancels_and_then_it_goes() -> None:
    """The finalizer holds it until nothing moves for it."""
    async with running() as world:
        world.kafka.move_s = 50
        await orders(world)
        world.kube.apply(raw_reassignment(plan=PLAN))
        await world.run(5)
        assert world.kube.objects[MOVE]["metadata"]["finalizers"] == [FINALIZER]

        world.kube.delete(MOVE)
        await world.until(lambda: MOVE not in world.kube.objects, seconds=5)

        assert world.kafka.moves == {}
        assert world.kafka.topics["orders"].replicas == [(1, 2, 3)] * 3


@in_virtual_time
async def test_a_refusal_of_one_partition_moves_nothing() -> None:
    """All or nothing, though Kafka takes the others."""
    async with running() as world:
        await orders(world)
        world.kafka.refuse_partitions = {
            Partition("orders", 1): Failure(39, "INVALID_REPLICA_ASSIGNMENT", "Broker 4 is not alive.")
        }
        world.kube.apply(raw_reassignment(plan=PLAN))
        await world.run(10)

        assert world.kube.ready(MOVE)[:2] == ("False", "InvalidReplicaAssignment")
        assert status(world)["state"] == "Failed"
        assert world.kafka.moves == {}
        assert world.kafka.topics["orders"].replicas == [(1, 2, 3)] * 3


@in_virtual_time
async def test_an_answer_that_is_lost_is_found_out_by_looking() -> None:
    """The controller took the plan; the connection broke before its response."""
    async with running() as world:
        await orders(world)
        world.kube.apply(raw_reassignment(plan=PLAN))
        await world.until(lambda: "base" in status(world))
        world.kafka.lose_answers = 1

        await world.until(lambda: world.kube.ready(MOVE)[0] == "True", seconds=30)


@in_virtual_time
async def test_an_unreachable_cluster_is_reported_and_the_move_continues() -> None:
    """Ready=Unknown until then; the state is kept, and followed when the cluster is back."""
    async with running() as world:
        world.kafka.move_s = 50
        await orders(world)
        world.kube.apply(raw_reassignment(plan=PLAN))
        await world.run(5)
        world.kafka.reachable = False
        await world.run(30)
        assert world.kube.ready(MOVE)[:2] == ("Unknown", "ClusterUnreachable")
        assert status(world)["state"] == "Running"

        world.kafka.reachable = True

        await world.until(lambda: world.kube.ready(MOVE)[0] == "True", seconds=200)
        assert len(world.kafka.submitted) == 1


@pytest.mark.shows("O9")
@in_virtual_time
async def test_moves_that_were_cancelled_outside_are_not_started_again() -> None:
    """O9."""
    async with running() as world:
        world.kafka.move_s = 50
        await orders(world)
        world.kube.apply(raw_reassignment(plan=PLAN))
        await world.run(5)
        world.kafka.moves.clear()

        await world.run(60)

        assert world.kube.ready(MOVE)[:2] == ("False", "Interrupted")
        assert len(world.kafka.submitted) == 1

"""Canary of a Reassignment: its first partitions move, then the others wait for health, time and consent."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from kafka_operator import kinds
from kafka_operator.decide.kafka.observed import KafkaPartition, KafkaTopic
from kafka_operator.decide.reassignments.canary import CANARY_POLL_S
from kafka_operator.decide.reassignments.reassignment_view import ReassignmentView
from kafka_operator.resources.canary import CanaryRecord
from kafka_operator.resources.reassignment import Partition, Reassignment, State
from reconciler.decide.steps import Wait
from reconciler.names import Key
from tests.kafka_operator.decide.test_reassignment import BASE, TARGET, at, written
from tests.kafka_operator.engine.test_cluster_pods import reasons
from tests.kafka_operator.engine.test_throttles import FIXED, orders, status
from tests.kafka_operator.makers import NOW, decide, moving, raw_plan, raw_reassignment, ready, view
from tests.kafka_operator.world import World, running
from tests.reconciler.virtual_time import in_virtual_time

MOVE = Key(kinds.REASSIGNMENT, "shop", "move")
PLAN = raw_plan(p0=[2, 3, 4], p1=[3, 4, 2], p2=[4, 2, 3])
DIGEST, OTHER = f"sha256:{'1' * 64}", f"sha256:{'0' * 64}"


def with_canary(moved: int = 1, **canary: Any) -> Reassignment:
    """One of two partitions with a canary of one, which has been submitted."""
    item = at(State.RUNNING, canary={"partitions": 1, "soakSeconds": 600, **canary})
    return replace(item, status=replace(item.status, digest=DIGEST, handed_over=moved, handing_over=moved))


def arrived(*, at_s: float = 0, isr: tuple[int, ...] = TARGET, leader: int = 2) -> ReassignmentView:
    """The first partition has arrived; the second is where it was."""
    partitions = (KafkaPartition(0, leader, TARGET, isr), KafkaPartition(1, 1, BASE, BASE))
    return replace(view(KafkaTopic("orders", None, partitions)), now=NOW + timedelta(seconds=at_s))


def soaking(item: Reassignment) -> Reassignment:
    """The same once its canary has been found healthy."""
    return replace(item, status=written(decide(item, arrived())))


def test_only_the_canarys_partitions_are_submitted_while_they_move() -> None:
    """Within the limits there is room for both."""
    item = with_canary(0)
    base = (KafkaPartition(0, 1, BASE, BASE), KafkaPartition(1, 1, BASE, BASE))
    begun = written(decide(item, view(KafkaTopic("orders", None, base))))
    assert begun.handing_over == 1

    one_moves = view(KafkaTopic("orders", None, base), moves=moving("orders", 0, BASE, TARGET))
    shown = written(decide(replace(item, status=begun), one_moves))

    assert (shown.handing_over, ready(shown.conditions)) == (1, ("False", "Running"))


def test_the_others_wait_until_the_canary_has_been_healthy_for_the_soak_time() -> None:
    """With approval Automatic they move then by themselves."""
    item = soaking(with_canary(approval="Automatic"))
    assert (ready(item.status.conditions), item.status.handing_over) == (("False", "CanaryWaiting"), 1)
    assert item.status.canary == CanaryRecord("2026-01-01T12:00:00Z")
    assert "The others wait until 2026-01-01T12:10:00Z" in item.status.conditions[0].message
    assert decide(item, arrived(at_s=599)) == Wait(1.0)

    resumed = written(decide(item, arrived(at_s=600)))

    assert (ready(resumed.conditions), resumed.handing_over) == (("False", "Running"), 2)


@pytest.mark.parametrize("sick", [{"isr": (2, 3)}, {"leader": -1}])
def test_the_soak_time_begins_again_when_a_partition_of_the_canary_is_unhealthy(sick: dict[str, Any]) -> None:
    """A leader and all replicas in sync, without interruption."""
    item = soaking(with_canary(approval="Automatic"))

    status = written(decide(item, arrived(at_s=599, **sick)))

    assert status.canary is None
    assert "but not healthy: orders-0" in status.conditions[0].message
    again = written(decide(replace(item, status=status), arrived(at_s=620)))
    assert again.canary == CanaryRecord("2026-01-01T12:10:20Z")


def test_with_approval_required_the_others_wait_for_the_digest_of_the_plan() -> None:
    """The default; another digest is no consent."""
    item = soaking(with_canary())

    status = written(decide(item, arrived(at_s=600)))

    assert ready(status.conditions) == ("False", "CanaryApprovalRequired")
    assert f"set spec.canary.approvedDigest to {DIGEST}" in status.conditions[0].message
    assert decide(replace(item, status=status), arrived(at_s=9999)) == Wait(CANARY_POLL_S)
    wrong = replace(with_canary(approvedDigest=OTHER), status=status)
    refused = written(decide(wrong, arrived(at_s=700)))
    assert (refused.handing_over, ready(refused.conditions)) == (1, ("False", "CanaryApprovalRequired"))
    assert "The current value refers to another plan." in refused.conditions[0].message

    approved = replace(with_canary(approvedDigest=DIGEST), status=status)

    assert written(decide(approved, arrived(at_s=700))).handing_over == 2


@pytest.mark.parametrize("approval", ["Required", "Automatic"])
def test_the_approval_ends_the_soak_time_but_not_the_wait_for_health(approval: str) -> None:
    """As a promotion ends a pause of Argo Rollouts."""
    item = with_canary(approval=approval, approvedDigest=DIGEST)

    sick = written(decide(item, arrived(isr=(2,))))

    assert (sick.handing_over, ready(sick.conditions)) == (1, ("False", "CanaryWaiting"))
    assert written(decide(item, arrived())).handing_over == 2


def test_a_canary_that_is_not_smaller_than_the_plan_holds_nothing() -> None:
    """Nor does one that is added after other partitions have been submitted."""
    assert written(decide(with_canary(0, partitions=2), arrived())).handing_over == 2
    moves = moving("orders", 1, BASE, TARGET)
    late = written(decide(with_canary(2), replace(arrived(), moves=moves)))
    assert ready(late.conditions) == ("False", "Running")


def canary_move(**canary: Any) -> dict[str, Any]:
    """Three partitions under a throttle, the first of them a canary."""
    return raw_reassignment(plan=PLAN, throttle=FIXED, canary={"partitions": 1, "soakSeconds": 30, **canary})


async def until_soaked(world: World) -> None:
    """Wait until the canary asks for consent."""
    await world.until(lambda: world.kube.ready(MOVE)[1] == "CanaryApprovalRequired", seconds=90)


@pytest.mark.shows("E17")
@in_virtual_time
async def test_a_canary_moves_soaks_and_waits_for_consent_without_a_throttle() -> None:
    """One partition, then the others; one event for each change."""
    async with running() as world:
        world.kafka.move_s = 10
        await orders(world)
        world.kube.apply(canary_move())
        await until_soaked(world)
        assert [set(call) for call in world.kafka.submitted] == [{Partition("orders", 0)}]
        assert world.kafka.throttled() == {}
        writes = len(world.kube.writes)
        await world.run(300)
        assert (len(world.kube.writes), len(world.kafka.submitted)) == (writes, 1)

        world.kube.apply(canary_move(approvedDigest=status(world)["digest"]))
        await world.until(lambda: status(world)["state"] == "Completed", seconds=90)

        assert world.kafka.throttled() == {}
        assert reasons(world) == ["Running", "CanaryWaiting", "CanaryApprovalRequired", "Running", "Completed"]


@pytest.mark.shows("E17")
@in_virtual_time
async def test_a_breach_of_the_guard_during_the_soak_begins_it_again() -> None:
    """It goes on by itself only when the guard has been quiet for the whole time."""
    async with running() as world:
        world.kafka.move_s = 10
        world.kafka.lags["billing"] = 0
        await orders(world)
        guard = {"consumerLag": [{"group": "billing", "maxRecords": 9}], "resumeAfterSeconds": 20}
        raw = canary_move(approval="Automatic", soakSeconds=60)
        raw["spec"]["guard"] = guard
        world.kube.apply(raw)
        await world.until(lambda: world.kube.ready(MOVE)[1] == "CanaryWaiting", seconds=60)
        await world.run(40)
        world.kafka.lags["billing"] = 10
        await world.until(lambda: world.kube.ready(MOVE)[1] == "GuardBreached", seconds=20)
        world.kafka.lags["billing"] = 0
        await world.until(lambda: world.kube.ready(MOVE)[1] == "CanaryWaiting", seconds=60)
        await world.run(50)
        assert len(world.kafka.submitted) == 1

        await world.until(lambda: status(world)["state"] == "Completed", seconds=90)


@pytest.mark.parametrize("action", ["Cancel", "Rollback"])
def test_a_waiting_canary_can_be_cancelled_and_rolled_back(action: str) -> None:
    """Without an approval; a rollback has no canary."""

    @in_virtual_time
    async def story() -> None:
        async with running() as world:
            world.kafka.move_s = 5
            await orders(world)
            world.kube.apply(canary_move())
            await until_soaked(world)
            raw = canary_move()
            raw["spec"]["action"] = action
            world.kube.apply(raw)

            await world.until(lambda: status(world)["state"] in {"Cancelled", "RolledBack"}, seconds=60)

            first = (2, 3, 4) if action == "Cancel" else (1, 2, 3)
            assert world.kafka.topics["orders"].replicas == [first, (1, 2, 3), (1, 2, 3)]
            assert world.kafka.throttled() == {}

    story()

"""Reassignments under Steward's controller with all of their features: a goal, its approval, a throttle, the rollback."""

from __future__ import annotations

import pytest

from lab.processes.waiting import wait_until
from tests.integration.conftest import CHROOT, PATIENCE_S, Held
from tests.integration.kubernetes import CLUSTER, User, manifest
from tests.integration.moves import on_1_2_3

pytestmark = [pytest.mark.kafka, pytest.mark.kubernetes]

GOAL = {"removeBrokers": [1], "topics": ["drained"]}
THROTTLE = {"adaptive": {"minBytesPerSecond": 1_000_000, "maxBytesPerSecond": 500_000_000}}


def test_a_goal_is_approved_reached_under_a_throttle_and_rolled_back(held: Held, user: User) -> None:
    """Features (e) 1, 2, 4, 10: proposed with its limit, executed as approved, rolled back; no throttle stays behind."""
    before = on_1_2_3(held, user, "drained", 3)

    def apply(**spec: object) -> None:
        user.apply(
            manifest("Reassignment", "drain-1", clusterRef={"name": CLUSTER}, goal=GOAL, throttle=THROTTLE, **spec)
        )

    def until(state: str) -> dict[str, object]:
        wait_until(
            lambda: user.read("reassignments", "drain-1").get("status", {}).get("state") == state,
            timeout_s=PATIENCE_S,
            what=f"drain-1 is {state}",
            context=lambda: str(user.read("reassignments", "drain-1").get("status")),
        )
        return dict(user.read("reassignments", "drain-1")["status"])

    apply()
    proposed = until("Proposed")
    assert before == held.cluster.assignment("drained")

    apply(approvedDigest=proposed["digest"])
    done = until("Completed")

    assert proposed["plan"] == done["plan"]
    assert "throttle" not in done
    after = held.cluster.assignment("drained")
    assert all(1 not in replicas for replicas in after.values())
    apply(approvedDigest=proposed["digest"], action="Rollback")
    back = until("RolledBack")
    assert "throttle" not in back
    assert before == held.cluster.assignment("drained")
    for entity in ("/config/topics/drained", *(f"/config/brokers/{broker}" for broker in (1, 2, 3, 4))):
        data = held.cluster.zookeeper.read(f"{CHROOT}{entity}") or b""
        assert b"throttled" not in data

"""Conditions that follow from Ready, and what tools that wait for a resource make of them (kstatus, `kubectl wait`)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from kafka_operator import kinds
from kafka_operator.decide.clusters.cluster import ClusterSnapshot, decide_cluster
from kafka_operator.decide.kafka.observed import Failure, ObservedCluster, Unavailable
from kafka_operator.decide.reassignments.reassignment import decide_reassignment
from kafka_operator.decide.reassignments.reassignment_view import ReassignmentView
from kafka_operator.decide.topics.topic import BROKERS_START_S, decide_topic
from kafka_operator.resources.reassignment import read_reassignment
from reconciler.decide.conditions import FALSE, TRUE, UNKNOWN, condition_of, with_job_ready, with_ready
from reconciler.decide.steps import WriteStatus
from reconciler.names import Key
from reconciler.resources.metadata import Condition, write_time
from spark_operator.decide.schedule import ScheduleView, decide_schedule
from tests.kafka_operator.makers import (
    CREATED,
    NOW,
    cluster,
    raw_cluster,
    raw_election,
    raw_plan,
    raw_reassignment,
    raw_topic,
    topic,
    topic_view,
)
from tests.kafka_operator.world import World, running
from tests.reconciler.virtual_time import in_virtual_time
from tests.spark_operator.fake_spark import APPLICATION
from tests.spark_operator.makers import raw_spark, schedule, spark_running
from tests.twins.kstatus import kstatus

ORDERS = Key(kinds.TOPIC, "shop", "orders")
MOVE = Key(kinds.REASSIGNMENT, "shop", "move")


def types_of(conditions: tuple[Condition, ...]) -> list[str]:
    """Types of the conditions that are True."""
    return [condition.type for condition in conditions if condition.status == TRUE]


READY_VALUES = [
    (TRUE, False, ["Ready"]),
    (TRUE, True, ["Ready"]),
    (FALSE, False, ["Reconciling"]),
    (FALSE, True, ["Stalled"]),
    (UNKNOWN, False, ["Reconciling"]),
    (UNKNOWN, True, ["Stalled"]),
]


@pytest.mark.parametrize(("status", "stalled", "types"), READY_VALUES)
def test_exactly_one_of_ready_reconciling_and_stalled_is_true(status: str, stalled: bool, types: list[str]) -> None:
    """kstatus: conditions that are absent are False, and one of the three states how it continues (ADR 36)."""
    found = with_ready((), status=status, reason="R", message="M", generation=1, now=NOW, stalled=stalled)

    assert types_of(found) == types
    assert {(condition.reason, condition.message) for condition in found} == {("R", "M")}


JOB_VALUES = [
    (FALSE, False, ["Reconciling"]),
    (UNKNOWN, False, ["Reconciling"]),
    (TRUE, True, ["Ready", "Complete"]),
    (FALSE, True, ["Stalled", "Failed"]),
]


@pytest.mark.parametrize(("status", "ended", "types"), JOB_VALUES)
def test_a_resource_that_runs_once_ends_complete_or_failed(status: str, ended: bool, types: list[str]) -> None:
    """Conditions of a Job (batch/v1): `kubectl wait --for=condition=Complete`."""
    found = with_job_ready((), status=status, reason="R", message="M", generation=1, now=NOW, ended=ended)

    assert types_of(found) == types


def test_a_rollback_takes_the_end_back() -> None:
    """A Reassignment that has ended and is rolled back is neither complete nor failed."""
    done = with_job_ready((), status=TRUE, reason="Completed", message="M", generation=1, now=NOW, ended=True)

    back = with_job_ready(done, status=FALSE, reason="RollingBack", message="M", generation=2, now=NOW, ended=False)

    assert types_of(back) == ["Reconciling"]


def test_the_transition_time_of_a_condition_that_stays_true_is_kept() -> None:
    """metav1.Condition: lastTransitionTime is the time of the last change of the status, not of the reason."""
    first = with_ready((), status=FALSE, reason="A", message="M", generation=1, now=NOW)

    second = with_ready(first, status=FALSE, reason="B", message="M", generation=1, now=NOW + timedelta(hours=1))

    shown = condition_of(second, "Reconciling")
    assert shown is not None
    assert (shown.reason, shown.last_transition_time) == ("B", write_time(NOW))


def status_of(step: object) -> Mapping[str, Any]:
    """The status that a step writes, in the API's form."""
    assert isinstance(step, WriteStatus), step
    return {name: value for name, value in step.status.to_patch().items() if value is not None}


def judged_by_tools(step: object, generation: int = 1) -> str:
    """Return the result of kstatus for the resource after a step."""
    return kstatus({"metadata": {"generation": generation}, "status": status_of(step)})


FAILURES = [
    (Failure(40, "INVALID_CONFIG", "Unknown topic config name"), 0.0, "Failed"),
    (Failure(38, "INVALID_REPLICATION_FACTOR", "Broker count 1"), 0.0, "InProgress"),
    (Failure(38, "INVALID_REPLICATION_FACTOR", "Broker count 1"), BROKERS_START_S, "Failed"),
    (Failure(7, "REQUEST_TIMED_OUT", "Timed out"), 300.0, "InProgress"),
]


@pytest.mark.shows("F40")
@pytest.mark.parametrize(("failure", "waited_s", "expected"), FAILURES)
def test_tools_fail_at_once_where_the_brokers_reject_a_topic_and_wait_where_it_may_pass(
    failure: Failure, waited_s: float, expected: str
) -> None:
    """field: a refused Topic stayed InProgress until the tool's timeout."""
    assert judged_by_tools(decide_topic(topic(), topic_view(failure=failure, waited_s=waited_s))) == expected


def test_tools_fail_at_once_for_a_topic_that_another_one_owns() -> None:
    """It waits until a user deletes one of the two."""
    assert judged_by_tools(decide_topic(topic(), topic_view(owner=Key(kinds.TOPIC, "shop", "older")))) == "Failed"


UNAVAILABLE = [
    ("ClusterUnreachable", "InProgress"),
    ("SecretNotFound", "InProgress"),
    ("AuthenticationFailed", "Failed"),
]


@pytest.mark.parametrize(("reason", "expected"), UNAVAILABLE)
def test_tools_wait_for_a_cluster_that_is_away_and_fail_for_rejected_credentials(reason: str, expected: str) -> None:
    """Brokers and Secrets may be applied after their Cluster; a password that Kafka rejects needs a user."""
    assert judged_by_tools(decide_cluster(cluster(), Unavailable(reason, "Words."), NOW, 0.0)) == expected


def test_a_cluster_with_partitions_out_of_sync_is_current() -> None:
    """Healthy is no readiness: brokers that restart would fail each deployment."""
    step = decide_cluster(cluster(), ClusterSnapshot(ObservedCluster("id", 1, (1, 2))), NOW, 0.0)

    assert judged_by_tools(step) == "Current"


def test_tools_fail_at_once_for_a_schedule_that_cannot_be_read() -> None:
    """It runs nothing until it is edited."""
    assert judged_by_tools(decide_schedule(schedule(schedule="61 * * * *"), ScheduleView(NOW))) == "Failed"


def test_a_reassignment_that_ended_under_release_0_1_0_gets_the_conditions_of_its_end() -> None:
    """Upgrade: what had failed would stay InProgress forever."""
    ready = Condition("Ready", FALSE, "UnknownTopic", "No such topic.", 1, CREATED).to_json()
    raw = raw_reassignment(plan=raw_plan(p0=[1]))
    raw["metadata"] |= {"uid": "u", "resourceVersion": "9", "generation": 1, "creationTimestamp": CREATED}
    raw["status"] = {"observedGeneration": 1, "state": "Failed", "conditions": [ready]}

    step = decide_reassignment(read_reassignment(raw), ReassignmentView(NOW))

    assert isinstance(step, WriteStatus)
    assert types_of(step.status.conditions) == ["Stalled", "Failed"]
    assert judged_by_tools(step) == "Failed"
    assert step.event is None
    after = replace(read_reassignment(raw), status=step.status)
    assert not isinstance(decide_reassignment(after, ReassignmentView(NOW)), WriteStatus)


async def seen_while(world: World, key: Key, seconds: float) -> list[str]:
    """Return the results of kstatus for a resource over a time, each change once."""
    found: list[str] = []
    for _ in range(int(seconds / 0.05)):
        shown = kstatus(world.kube.objects[key])
        if shown not in found[-1:]:
            found.append(shown)
        await world.run(0.05)
    return found


@pytest.mark.shows("F40")
@in_virtual_time
async def test_tools_wait_for_a_move_and_see_its_end() -> None:
    """A Reassignment is InProgress from its first status until all replicas are in place."""
    async with running() as world:
        world.kafka.add("orders", [(1, 2, 3)])
        world.kube.apply(raw_reassignment(plan=raw_plan(p0=[2, 3, 4])))
        await world.until(lambda: "status" in world.kube.objects[MOVE])

        assert await seen_while(world, MOVE, 30) == ["InProgress", "Current"]

        world.kube.apply(raw_reassignment("bad", plan=[{"topic": "no", "partition": 0, "replicas": [1]}]))
        bad = replace(MOVE, name="bad")
        await world.until(lambda: "status" in world.kube.objects[bad])
        assert await seen_while(world, bad, 60) == ["InProgress", "Failed"]


@in_virtual_time
async def test_tools_wait_for_an_election_and_a_spark_application() -> None:
    """Both run once: InProgress until they have ended."""
    async with spark_running() as world:
        world.kube.apply(raw_cluster())
        world.kafka.add("orders", [(1, 2, 3)])
        world.kube.apply(raw_election(topics=["orders"]))
        world.kube.apply(raw_spark())
        elect = Key(kinds.ELECTION, "shop", "elect")
        await world.until(lambda: "status" in world.kube.objects[APPLICATION])

        assert await seen_while(world, APPLICATION, 60) == ["InProgress", "Current"]
        assert kstatus(world.kube.objects[elect]) == "Current"


@in_virtual_time
async def test_an_edited_topic_is_in_progress_until_the_edit_has_taken_effect() -> None:
    """O6: observedGeneration is written after the effect, so no tool takes the old Ready for the new generation's."""
    async with running() as world:
        world.kube.apply(raw_topic())
        await world.until(lambda: world.kube.ready(ORDERS)[0] == "True")

        world.kube.apply(raw_topic(partitions=8))

        assert await seen_while(world, ORDERS, 5) == ["InProgress", "Current"]
        assert len(world.kafka.topics["orders"].replicas) == 8

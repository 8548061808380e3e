"""Decisions on a Reassignment that is not being deleted."""

from __future__ import annotations

from dataclasses import replace

import pytest

from kafka_operator import kinds
from kafka_operator.decide.kafka.observed import Failure, Unavailable
from kafka_operator.decide.reassignments.reassignment import decide_reassignment_unavailable
from kafka_operator.decide.reassignments.reassignment_view import CHECK_TIMEOUT_S, POLL_INTERVAL_S, STRAY_TIMEOUT_S
from kafka_operator.decide.steps import Claim, Submit
from kafka_operator.decide.timeouts import CLUSTER_LEAVING_TIMEOUT_S
from kafka_operator.resources.reassignment import Partition, Reassignment, ReassignmentStatus, State
from kafka_operator.resources.reassignment_records import Progress
from reconciler.decide.steps import Done, Release, Retry, Wait, WriteStatus
from reconciler.names import Key
from tests.kafka_operator.makers import (
    NOW,
    assignments,
    decide,
    kafka_topic,
    moving,
    raw_plan,
    ready,
    reassignment,
    view,
    with_replicas,
)

BASE, TARGET = (1, 2, 3), (2, 3, 4)
P0, P1 = Partition("orders", 0), Partition("orders", 1)
AT_BASE = kafka_topic(partitions=2, replicas=BASE)
ONE_ARRIVED = with_replicas(AT_BASE, 0, TARGET)
ALL_ARRIVED = kafka_topic(partitions=2, replicas=TARGET)
FIRST_MOVES = moving("orders", 0, BASE, TARGET)
BOTH_MOVE = FIRST_MOVES | moving("orders", 1, BASE, TARGET)
PLAN = raw_plan(p0=[2, 3, 4], p1=[2, 3, 4])


def fresh(**fields: object) -> Reassignment:
    """One that was applied a moment ago."""
    return reassignment(plan=PLAN, **fields)


def at(state: State, **fields: object) -> Reassignment:
    """One whose plan and base are recorded; once it runs, the controller has taken all of it."""
    handed = 0 if state is State.PENDING else 2
    recorded = ReassignmentStatus(
        observed_generation=1,
        state=state,
        handed_over=handed,
        handing_over=2,
        plan=assignments(p0=TARGET, p1=TARGET),
        base=assignments(p0=BASE, p1=BASE),
        progress=Progress(0, 2),
    )
    return replace(fresh(**fields), status=recorded)


def written(step: object) -> ReassignmentStatus:
    """The status that a step writes."""
    assert isinstance(step, WriteStatus), step
    assert isinstance(step.status, ReassignmentStatus)
    return step.status


def test_a_good_plan_is_claimed_then_recorded_with_its_base_then_handed_over_once() -> None:
    """The base is written down before anything moves; Running follows what the controller shows (O9)."""
    assert decide(fresh(held=False), view(AT_BASE)) == Claim()

    recorded = written(decide(fresh(), view(AT_BASE)))
    assert recorded.state is State.PENDING
    assert assignments(p0=BASE, p1=BASE) == recorded.base
    assert assignments(p0=TARGET, p1=TARGET) == recorded.plan

    recorded = replace(recorded, plan=assignments(p0=TARGET, p1=TARGET), base=assignments(p0=BASE, p1=BASE))
    reported = written(decide(replace(fresh(), status=recorded), view(AT_BASE)))
    assert (reported.handed_over, reported.handing_over) == (0, 2)

    handed = decide(replace(fresh(), status=reported), view(AT_BASE))
    assert handed == Submit({P0: TARGET, P1: TARGET})

    running = written(decide(at(State.PENDING), view(AT_BASE, moves=BOTH_MOVE)))
    assert (State.RUNNING, Progress(0, 2)) == (running.state, running.progress)


def test_only_what_is_still_at_its_base_is_handed_over() -> None:
    """Killed between the call and the status: what moves or has arrived is not handed over again."""
    seen = view(AT_BASE, moves=FIRST_MOVES)
    reported = written(decide(at(State.PENDING), seen))

    assert (reported.handed_over, reported.handing_over) == (0, 2)
    assert decide(replace(at(State.PENDING), status=reported), seen) == Submit({P1: TARGET})


def test_progress_is_written_when_it_changes_and_looked_at_each_second() -> None:
    """Progress in kubectl get; no write when nothing changed."""
    seen = view(ONE_ARRIVED, moves=moving("orders", 1, BASE, TARGET))

    status = written(decide(at(State.RUNNING), seen))

    assert status.progress is not None
    assert (status.progress.done, status.progress.total, status.progress.percent) == (1, 2, 50)
    assert ready(status.conditions) == ("False", "Running")
    assert decide(replace(at(State.RUNNING), status=status), seen) == Wait(POLL_INTERVAL_S)


def test_it_is_ready_when_every_partition_has_exactly_the_target() -> None:
    """Completed; its finalizer is released, since it cannot be undone any more, and nothing is done or written afterwards."""
    status = written(decide(at(State.RUNNING), view(ALL_ARRIVED)))

    assert status.state is State.COMPLETED
    assert ready(status.conditions) == ("True", "Completed")
    assert status.completion_time is not None
    assert decide(replace(at(State.RUNNING), status=status), view(AT_BASE)) == Release()
    assert decide(replace(at(State.RUNNING, held=False), status=status), view(AT_BASE)) == Done()


def test_a_running_one_that_was_let_go_of_is_held_again() -> None:
    """Its Cluster has not existed for a while: then nothing that only the operator could delete is left."""
    gone = Unavailable("ClusterNotFound", "Namespace shop has no Cluster main.", leaving=True)
    reported = written(decide_reassignment_unavailable(at(State.RUNNING), gone, NOW, 0))

    assert isinstance(decide_reassignment_unavailable(replace(at(State.RUNNING), status=reported), gone, NOW, 0), Retry)
    assert (
        decide_reassignment_unavailable(
            replace(at(State.RUNNING), status=reported), gone, NOW, CLUSTER_LEAVING_TIMEOUT_S
        )
        == Release()
    )
    assert decide(at(State.RUNNING, held=False), view(ALL_ARRIVED)) == Claim()


def test_a_partition_that_still_moves_has_not_arrived() -> None:
    """The union of old and new holds until the controller reports the end of the move."""
    seen = view(ALL_ARRIVED, moves=FIRST_MOVES)

    status = written(decide(at(State.RUNNING), seen))

    assert status.progress == Progress(1, 2)


def test_the_order_of_replicas_counts() -> None:
    """Exactly the target: the first replica is the preferred leader."""
    reordered = kafka_topic(partitions=2, replicas=(3, 2, 4))

    assert isinstance(decide(at(State.RUNNING), view(reordered)), Retry)


def test_a_plan_that_is_fulfilled_already_completes_without_a_call() -> None:
    """O2."""
    recorded = written(decide(fresh(), view(ALL_ARRIVED)))

    done = written(decide(replace(fresh(), status=recorded), view(ALL_ARRIVED)))

    assert done.state is State.COMPLETED


def test_a_transient_problem_is_reported_and_waited_for_and_then_final() -> None:
    """A Topic that was applied in the same breath is still being created."""
    missing = view(kafka_topic("other"))

    status = written(decide(fresh(), missing))
    assert (status.state, ready(status.conditions)) == (State.PENDING, ("False", "UnknownTopic"))
    waiting = replace(fresh(), status=status)
    assert isinstance(decide(waiting, missing), Retry)
    final = written(decide(waiting, replace(missing, waited_s=CHECK_TIMEOUT_S)))
    assert (final.state, ready(final.conditions)) == (State.FAILED, ("False", "UnknownTopic"))
    assert "No replica was moved." in final.conditions[0].message


def test_an_overlap_is_final_at_once() -> None:
    """It would surprise if it began by itself when the other ends."""
    other = Key(kinds.REASSIGNMENT, "shop", "other")

    status = written(decide(fresh(), view(AT_BASE, rivals={P1: other})))

    assert (status.state, ready(status.conditions)) == (State.FAILED, ("False", "Overlap"))


def test_a_refused_part_takes_the_rest_back() -> None:
    """All or nothing, though the controller answers for each partition."""
    refused = {P1: Failure(39, "INVALID_REPLICA_ASSIGNMENT", "Broker 4 is not alive.")}
    pending = at(State.PENDING)

    step = decide(pending, view(AT_BASE, moves=FIRST_MOVES, submitted=True, failures=refused))
    assert step == Submit({P0: None})

    status = written(decide(pending, view(AT_BASE, submitted=True, failures=refused)))
    assert (status.state, ready(status.conditions)) == (State.FAILED, ("False", "InvalidReplicaAssignment"))
    assert "Broker 4 is not alive." in status.conditions[0].message


def test_a_passing_refusal_is_tried_again() -> None:
    """The controller was replaced while it answered."""
    passing = {P1: Failure(41, "NOT_CONTROLLER", "I am not the controller.")}

    seen = view(AT_BASE, submitted=True, failures=passing)
    reported = written(decide(at(State.PENDING), seen))

    assert isinstance(decide(replace(at(State.PENDING), status=reported), seen), Retry)


@pytest.mark.shows("O9")
@pytest.mark.parametrize(
    "seen",
    [
        view(AT_BASE),
        view(with_replicas(ONE_ARRIVED, 1, (1, 4))),
        view(AT_BASE, moves=moving("orders", 0, BASE, (1, 4)) | moving("orders", 1, BASE, (1, 4))),
        view(),
    ],
    ids=["cancelled by hand", "moved elsewhere", "moving elsewhere", "topic deleted"],
)
def test_changes_of_other_clients_are_reported_and_not_undone(seen: object) -> None:
    """O9: a plan is applied once. It is believed only after a while, since metadata lags."""
    assert isinstance(seen, type(view()))

    assert isinstance(decide(at(State.RUNNING), seen), Retry)
    status = written(decide(at(State.RUNNING), replace(seen, waited_s=STRAY_TIMEOUT_S)))

    assert (status.state, ready(status.conditions)) == (State.FAILED, ("False", "Interrupted"))


def test_cancel_stops_what_moves_and_leaves_what_arrived() -> None:
    """spec.cancel: null targets for those still moving."""
    cancelled = at(State.RUNNING, action="Cancel")
    seen = view(ONE_ARRIVED, moves=moving("orders", 1, BASE, TARGET))

    assert decide(cancelled, seen) == Submit({P1: None})
    assert isinstance(decide(cancelled, replace(seen, submitted=True)), Retry)
    status = written(decide(cancelled, view(ONE_ARRIVED)))
    assert (status.state, ready(status.conditions)) == (State.CANCELLED, ("False", "Cancelled"))
    assert "1 of 2 partitions" in status.conditions[0].message


def test_cancel_before_the_start_moves_nothing() -> None:
    """Also where the plan has a problem."""
    status = written(decide(fresh(action="Cancel"), view()))

    assert status.state is State.CANCELLED


def test_cancel_after_the_end_changes_nothing_but_the_observed_generation() -> None:
    """An end is never left; and clients that wait for the generation do not wait forever."""
    done = replace(
        at(State.COMPLETED, action="Cancel"), status=replace(at(State.COMPLETED).status, observed_generation=0)
    )

    status = written(decide(done, view(AT_BASE)))

    assert (status.state, status.observed_generation) == (State.COMPLETED, 1)


def test_an_unreachable_cluster_is_reported_and_the_state_stays() -> None:
    """It continues from the current state when the cluster is reachable again."""
    away = Unavailable("ClusterUnreachable", "No broker answers.")

    status = written(decide_reassignment_unavailable(at(State.RUNNING), away, NOW, 0))

    assert (status.state, ready(status.conditions)) == (State.RUNNING, ("Unknown", "ClusterUnreachable"))
    assert assignments(p0=BASE, p1=BASE) == status.base
    assert decide_reassignment_unavailable(at(State.COMPLETED), away, NOW, 0) == Done()


def test_events_report_the_start_and_the_end() -> None:
    """Not each step of the progress."""
    started = decide(at(State.PENDING), view(AT_BASE, moves=BOTH_MOVE))
    assert isinstance(started, WriteStatus)
    running = replace(at(State.RUNNING), status=written(started))
    further = decide(running, view(ONE_ARRIVED, moves=moving("orders", 1, BASE, TARGET)))
    ended = decide(running, view(ALL_ARRIVED))

    assert started.event is not None
    assert (started.event.warning, started.event.reason) == (False, "Running")
    assert isinstance(further, WriteStatus)
    assert further.event is None
    assert isinstance(ended, WriteStatus)
    assert ended.event is not None
    assert ended.event.reason == "Completed"

"""Decisions on a Reassignment that is being deleted."""

from __future__ import annotations

from dataclasses import replace

from kafka_operator.decide.kafka.observed import Unavailable
from kafka_operator.decide.plans.plan import PlanProblem
from kafka_operator.decide.reassignments.reassignment_deletion import decide_reassignment_deletion_unavailable
from kafka_operator.decide.steps import Submit
from kafka_operator.decide.timeouts import DELETION_TIMEOUT_S
from kafka_operator.resources.reassignment import Partition, Reassignment, ReassignmentStatus, State
from kafka_operator.resources.reassignment_records import Stored
from reconciler.decide.steps import Done, Release, Retry
from tests.kafka_operator.makers import assignments, decide, kafka_topic, moving, raw_plan, reassignment, view

P0 = Partition("orders", 0)
SEEN = kafka_topic(partitions=1, replicas=(1, 2))
MOVES = moving("orders", 0, (1, 2), (2, 3))
AWAY = Unavailable("ClusterUnreachable", "No broker answers.")


def deleted(state: State, *, held: bool = True) -> Reassignment:
    """One that is being deleted."""
    status = ReassignmentStatus(state=state, plan=assignments(p0=(2, 3)), base=assignments(p0=(1, 2)))
    return replace(reassignment(deleted=True, held=held, plan=raw_plan(p0=[2, 3])), status=status)


def test_what_moves_is_cancelled_before_it_goes() -> None:
    """A Reassignment deleted while it runs: cancels, then goes."""
    running = deleted(State.RUNNING)

    assert decide(running, view(SEEN, moves=MOVES)) == Submit({P0: None})
    assert isinstance(decide(running, view(SEEN, moves=MOVES, submitted=True)), Retry)
    gone = decide(running, view(SEEN))
    assert isinstance(gone, Release)
    assert gone.event is not None
    assert gone.event.reason == "Cancelled"


def test_the_moves_of_others_are_left_alone() -> None:
    """The partition got another target from outside in the meantime."""
    others = moving("orders", 0, (1, 2), (1, 4))

    assert isinstance(decide(deleted(State.RUNNING), view(SEEN, moves=others)), Release)


def test_one_that_ended_goes_at_once() -> None:
    """Even while its cluster is away, and though its partitions move again for another."""
    for state in (State.COMPLETED, State.FAILED, State.CANCELLED):
        assert decide(deleted(state), view(SEEN, moves=MOVES)) == Release()
        assert decide_reassignment_deletion_unavailable(deleted(state), AWAY, 0) == Release()


def test_one_that_never_began_goes_at_once() -> None:
    """Nothing was recorded, so nothing was handed over."""
    assert decide(reassignment(deleted=True, plan=raw_plan(p0=[2])), view()) == Release()
    assert decide(deleted(State.PENDING, held=False), view()) == Done()


def test_unknown_state_is_reported() -> None:
    """Plan and base are gone from their ConfigMaps: it goes, and whatever moves goes on."""
    running = deleted(State.RUNNING)
    kept = replace(running, status=replace(running.status, plan=None, base=None, stored=Stored(("gone",), 1)))

    gone = decide(kept, view(SEEN, moves=MOVES, recorded=PlanProblem("PlanLost", "ConfigMap gone is gone.")))

    assert isinstance(gone, Release)
    assert gone.event is not None
    assert (gone.event.reason, gone.event.warning) == ("MovesGoOn", True)
    assert "ConfigMap gone is gone." in gone.event.message


def test_deletion_never_blocks_a_namespace() -> None:
    """Bounded wait, then the event reports that the moves continue."""
    running = deleted(State.RUNNING)

    assert isinstance(decide_reassignment_deletion_unavailable(running, AWAY, DELETION_TIMEOUT_S - 1), Retry)
    late = decide_reassignment_deletion_unavailable(running, AWAY, DELETION_TIMEOUT_S)
    assert isinstance(late, Release)
    assert late.event is not None
    assert late.event.reason == "MovesGoOn"

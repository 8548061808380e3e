"""What to do for a Reassignment that is being deleted: what still moves for it is cancelled, then it goes, in bounded time."""

from __future__ import annotations

from kafka_operator.decide.observed import Away
from kafka_operator.decide.patience import give_up_late
from kafka_operator.decide.reassignment import ReassignmentView, find_places
from kafka_operator.decide.steps import (
    Announcement,
    Done,
    Release,
    Retry,
    Submit,
)
from kafka_operator.resources.reassignment import Reassignment

Step = Submit | Release | Retry | Done


def decide_reassignment_deletion(reassignment: Reassignment, view: ReassignmentView) -> Step:
    """Return the next step for a Reassignment that is being deleted, on a cluster that answers."""
    assert reassignment.metadata.deleted is not None, reassignment.key
    if not reassignment.metadata.held:
        return Done()
    status = reassignment.status
    if status.plan is None or status.base is None or (status.state is not None and status.state.ended):
        return Release()
    moving = find_places(status.plan, status.base, view).moving
    if not moving:
        return Release(Announcement(False, "Cancelled", "Deleted before its end; what still moved was cancelled."))
    if view.submitted:
        return give_up_late(view.waited_s, _moves_go_on("The controller does not end the moves."))
    return Submit({item.partition: None for item in moving})


def decide_reassignment_deletion_away(reassignment: Reassignment, away: Away, waited_s: float) -> Step:
    """Return the next step for a Reassignment that is being deleted while its cluster cannot be looked at."""
    assert reassignment.metadata.deleted is not None, reassignment.key
    if not reassignment.metadata.held:
        return Done()
    state = reassignment.status.state
    if reassignment.status.plan is None or (state is not None and state.ended):
        return Release()
    return give_up_late(waited_s, _moves_go_on(away.message), away)


def _moves_go_on(why: str) -> Announcement:
    return Announcement(True, "MovesGoOn", f"What still moved could not be cancelled and goes on. {why}")

"""Completion of a Reassignment: remaining moves are cancelled if required, the throttle is removed, then the status is final.

A throttle that a broker keeps (it is away, or refuses) stays recorded after the end, and is tried again until it is gone.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from dataclasses import replace

from kafka_operator.decide.kafka_errors import message_of
from kafka_operator.decide.observed import Failure
from kafka_operator.decide.places import Places
from kafka_operator.decide.plan import listed
from kafka_operator.decide.reassignment_status import THROTTLE_LEFT, ended, flagged, written
from kafka_operator.decide.reassignment_steps import AlterThrottle, LookAtThrottle, ThrottleStands
from kafka_operator.decide.reassignment_view import ReassignmentView, Step
from kafka_operator.decide.steps import RETRY_LATER_S, Done, Retry, Submit
from kafka_operator.decide.throttle import NOTHING, Wish, changes, settled, unseen
from kafka_operator.resources.reassignment import Assignment, Reassignment, ReassignmentStatus, State
from kafka_operator.resources.reassignment_records import Progress
from kafka_operator.resources.throttle import ThrottleRecord


def finish(
    reassignment: Reassignment,
    view: ReassignmentView,
    state: State,
    *,
    reason: str,
    message: str,
    progress: Progress | None,
) -> Step:
    """Take the throttle away, then write the end."""
    step, left, words = taken_away(reassignment, view)
    if step is not None:
        return step
    if progress is not None:
        progress = _final(progress, reassignment.status.progress)
    status = ended(reassignment, state, reason=reason, message=message, progress=progress, now=view.now)
    status = replace(status, handed_over=0, handing_over=0)
    return written(reassignment, with_left(reassignment, status, left, words, view)) or Done()


def _final(progress: Progress, before: Progress | None) -> Progress:
    """Return the last progress: all bytes where all arrived; else none, since what was half copied is thrown away."""
    total = progress.bytes_total
    if total is None and before is not None:
        total = before.bytes_total
    if progress.done < progress.total:
        total = None
    return replace(progress, bytes_moved=total, bytes_total=total, eta_s=None)


def clean_up(reassignment: Reassignment, view: ReassignmentView) -> Step:
    """Try again to take away what was left at the end."""
    step, left, words = taken_away(reassignment, view)
    if step is not None:
        return step
    status = replace(reassignment.status, observed_generation=reassignment.metadata.generation)
    return written(reassignment, with_left(reassignment, status, left, words, view)) or Retry(RETRY_LATER_S)


def taken_away(reassignment: Reassignment, view: ReassignmentView) -> tuple[Step | None, ThrottleRecord | None, str]:
    """Return the next step towards no throttle; None when there is none, with what could not be taken away, and why."""
    record = reassignment.status.throttle
    if record is None:
        return None, None, ""
    step = throttle_step(reassignment, view, NOTHING, look_in_any_case=True)
    if step is not None and not isinstance(step, ThrottleStands):
        return step, record, ""
    _, left = changes(record, NOTHING, view.throttle, view.other_throttles, view.unaltered)
    return None, settled(record, NOTHING, left), _why(left, view)


def throttle_step(
    reassignment: Reassignment, view: ReassignmentView, wish: Wish, *, look_in_any_case: bool = False
) -> AlterThrottle | LookAtThrottle | ThrottleStands | Retry | None:
    """Return the next step towards exactly this throttle, which is recorded; None when Kafka was seen with it."""
    record = reassignment.status.throttle
    if record is None:
        return None
    seen_as = as_seen(wish, view)
    if seen_as == view.in_force and not look_in_any_case:
        return None
    look = unseen(record, wish, view.throttle)
    if look is not None:
        return look
    change, _ = changes(record, wish, view.throttle, view.other_throttles, view.unaltered)
    if change is None:
        return ThrottleStands(seen_as)
    return Retry() if view.altered else change


def as_seen(wish: Wish, view: ReassignmentView) -> Hashable:
    """Return what stands for a throttle as it should be; another Reassignment's rate plays a part in it."""
    topics = tuple(sorted(wish.topics.items()))
    present = view.other_throttles
    others = tuple(
        tuple(sorted((record.rates, tuple(item.broker_id for item in record.brokers)) for record in records))
        for records in (present.peers, present.owners, *present.tenants, present.without_right)
    )
    return (wish.rate, wish.brokers, topics, others)


def stop(places: Places, view: ReassignmentView) -> Step | None:
    """Cancel what moves; None when nothing does."""
    if not places.moving:
        return None
    return Retry() if view.submitted and not view.failures else taken_back(places.moving)


def taken_back(items: Iterable[Assignment]) -> Submit:
    """Cancel moves."""
    return Submit({item.partition: None for item in items})


def with_left(
    reassignment: Reassignment,
    status: ReassignmentStatus,
    left: ThrottleRecord | None,
    words: str,
    view: ReassignmentView,
) -> ReassignmentStatus:
    """Return a status with what is left of the throttle's record, and the condition that reports it."""
    trouble = None if left is None else (THROTTLE_LEFT, words)
    shown = replace(status, throttle=left)
    return flagged(shown, THROTTLE_LEFT, trouble, reassignment.metadata.generation, view.now)


def _why(left: Iterable[object], view: ReassignmentView) -> str:
    names = sorted(map(str, left))
    failures = [*view.unaltered.values(), *view.throttle.brokers.values(), *view.throttle.topics.values()]
    words = next((message_of(item) for item in failures if isinstance(item, Failure)), "")
    return f"The throttle could not be removed from {listed(names)}, and will be retried: {words}"

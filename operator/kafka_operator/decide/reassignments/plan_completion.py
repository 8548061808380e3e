"""Completion of a Reassignment: remaining moves are cancelled if required, the throttle is removed, then the status is final.

A throttle that could not be removed (the broker is offline, or rejects the change) stays recorded after the end, and is retried.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import replace

from kafka_operator.decide.kafka.kafka_errors import message_of
from kafka_operator.decide.kafka.observed import Failure
from kafka_operator.decide.kafka.replica_dirs import targets_of, targets_to_cancel
from kafka_operator.decide.reassignments.partition_progress import CurrentPartitions, PartitionProgress
from kafka_operator.decide.reassignments.reassignment_status import THROTTLE_LEFT, ended, flagged, written
from kafka_operator.decide.reassignments.reassignment_steps import AlterThrottle, ReadThrottle, ThrottleInForce
from kafka_operator.decide.reassignments.reassignment_view import ReassignmentView, Step
from kafka_operator.decide.reassignments.throttle import NOTHING, DesiredThrottle, changes, settled, unread_throttles
from kafka_operator.decide.steps import MoveLogDirs, Submit
from kafka_operator.resources.reassignment import Assignment, Reassignment, ReassignmentStatus, State
from kafka_operator.resources.reassignment_records import Progress
from kafka_operator.resources.throttle import ThrottleRecord
from reconciler.decide.listed import listed
from reconciler.decide.steps import RETRY_LATER_S, Done, Retry


def finish(
    reassignment: Reassignment,
    view: ReassignmentView,
    state: State,
    *,
    reason: str,
    message: str,
    progress: Progress | None,
) -> Step:
    """Remove the throttle, then write the final status."""
    step, left, text = remove_throttle(reassignment, view)
    if step is not None:
        return step
    if progress is not None:
        progress = _final(progress, reassignment.status.progress)
    status = ended(reassignment, state, reason=reason, message=message, progress=progress, now=view.now)
    status = replace(status, handed_over=0, handing_over=0)
    return written(reassignment, with_left(reassignment, status, left, text, view)) or Done()


def _final(progress: Progress, before: Progress | None) -> Progress:
    """Return the final progress: all bytes if all partitions completed; otherwise none, since partial copies are discarded."""
    total = progress.bytes_total
    if total is None and before is not None:
        total = before.bytes_total
    if progress.done < progress.total:
        total = None
    return replace(progress, bytes_moved=total, bytes_total=total, eta_s=None)


def clean_up(reassignment: Reassignment, view: ReassignmentView) -> Step:
    """Retry the removal of a throttle that was left at the end."""
    step, left, message = remove_throttle(reassignment, view)
    if step is not None:
        return step
    status = replace(reassignment.status, observed_generation=reassignment.metadata.generation)
    return written(reassignment, with_left(reassignment, status, left, message, view)) or Retry(RETRY_LATER_S)


def remove_throttle(
    reassignment: Reassignment, view: ReassignmentView
) -> tuple[Step | None, ThrottleRecord | None, str]:
    """Return the next step of the removal; None when nothing is left to do, with what could not be removed, and why."""
    record = reassignment.status.throttle
    if record is None:
        return None, None, ""
    step = throttle_step(reassignment, view, NOTHING, always_read=True)
    if step is not None and not isinstance(step, ThrottleInForce):
        return step, record, ""
    _, left = changes(record, NOTHING, view.throttle, view.other_throttles, view.unaltered)
    return None, settled(record, NOTHING, left), _why(left, view)


def throttle_step(
    reassignment: Reassignment, view: ReassignmentView, desired: DesiredThrottle, *, always_read: bool = False
) -> AlterThrottle | ReadThrottle | ThrottleInForce | Retry | None:
    """Return the next step towards exactly this throttle, which is recorded; None when Kafka was seen with it."""
    record = reassignment.status.throttle
    if record is None:
        return None
    identity = throttle_identity(desired, view)
    if identity == view.in_force and not always_read:
        return None
    read_step = unread_throttles(record, desired, view.throttle)
    if read_step is not None:
        return read_step
    change, _ = changes(record, desired, view.throttle, view.other_throttles, view.unaltered)
    if change is None:
        return ThrottleInForce(identity)
    return Retry() if view.altered else change


def throttle_identity(desired: DesiredThrottle, view: ReassignmentView) -> Hashable:
    """Return the identity of a desired throttle; the rates of other Reassignments are part of it."""
    topics = tuple(sorted(desired.topics.items()))
    current = view.other_throttles
    others = tuple(
        tuple(sorted((record.rates, tuple(item.broker_id for item in record.brokers)) for record in records))
        for records in (current.peers, current.owners, *current.tenants, current.without_right)
    )
    return (desired.rate, desired.brokers, topics, others)


def stop(partitions: PartitionProgress, view: ReassignmentView) -> Step | None:
    """Cancel the moves in progress; None if there are none."""
    if not partitions.under_way:
        return None
    if view.submitted and not view.failures:
        return Retry()
    return cancel_moves(partitions.under_way, view.current) or Retry(RETRY_LATER_S)


def start_moves(items: Sequence[Assignment], current: CurrentPartitions) -> Submit | MoveLogDirs:
    """Start moves of a plan, which are all between brokers or all between log directories."""
    if items[0].log_dirs:
        return MoveLogDirs(targets_of(items, current.dirs))
    return Submit({item.partition: item.replicas for item in items})


def cancel_moves(items: Sequence[Assignment], current: CurrentPartitions) -> Submit | MoveLogDirs | None:
    """Cancel moves; None if they are on brokers that do not answer, which continue them when they are back."""
    if items[0].log_dirs:
        targets = targets_to_cancel(items, current.dirs)
        return MoveLogDirs(targets) if targets else None
    return Submit({item.partition: None for item in items})


def with_left(
    reassignment: Reassignment,
    status: ReassignmentStatus,
    left: ThrottleRecord | None,
    message: str,
    view: ReassignmentView,
) -> ReassignmentStatus:
    """Return a status with the rest of the throttle's record, and the condition that reports it."""
    problem = None if left is None else (THROTTLE_LEFT, message)
    shown = replace(status, throttle=left)
    return flagged(shown, THROTTLE_LEFT, problem, reassignment.metadata.generation, view.now)


def _why(left: Iterable[object], view: ReassignmentView) -> str:
    names = sorted(map(str, left))
    failures = [*view.unaltered.values(), *view.throttle.brokers.values(), *view.throttle.topics.values()]
    message = next((message_of(item) for item in failures if isinstance(item, Failure)), "")
    return f"The throttle could not be removed from {listed(names)}, and will be retried: {message}"

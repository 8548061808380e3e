"""Execution and rollback of a Reassignment: moves are submitted in waves under a throttle and monitored until they complete.

Each round records what may have been submitted and what may be throttled, then sets the throttle, then submits moves. After a crash
between any two of these, the status contains what may exist, and the cluster shows what exists.
"""

from __future__ import annotations

from dataclasses import replace

from kafka_operator.decide.kafka.kafka_errors import message_of, passes_by_itself, reason_of
from kafka_operator.decide.kafka.observed import NO_LEADER, Failure
from kafka_operator.decide.plans.plan_packing import Recorded
from kafka_operator.decide.reassignments.hold import PENDING
from kafka_operator.decide.reassignments.move_progress import STUCK_AFTER_S, seconds_left
from kafka_operator.decide.reassignments.partition_progress import PartitionProgress
from kafka_operator.decide.reassignments.permission import Permission
from kafka_operator.decide.reassignments.plan_completion import (
    finish,
    start_moves,
    stop,
    throttle_identity,
    throttle_step,
)
from kafka_operator.decide.reassignments.reassignment_status import (
    STUCK,
    THROTTLE_TOO_LOW,
    flagged,
    held,
    judged,
    released,
    running,
    written,
)
from kafka_operator.decide.reassignments.reassignment_steps import ReadThrottle
from kafka_operator.decide.reassignments.reassignment_view import (
    STRAY_TIMEOUT_S,
    ReassignmentView,
    Step,
    poll_interval_s,
)
from kafka_operator.decide.reassignments.throttle import (
    NOTHING,
    DesiredThrottle,
    desired_throttle_for,
    recorded,
    settled,
    unread_throttles,
)
from kafka_operator.decide.reassignments.throttle_rate import Need, need_of, rate_of, too_low
from kafka_operator.decide.reassignments.waves import hand_over_up_to
from kafka_operator.resources.reassignment import Assignment, Partition, Reassignment, ReassignmentStatus, State
from kafka_operator.resources.reassignment_records import Progress
from kafka_operator.resources.throttle import ThrottleRecord
from reconciler.decide.conditions import FALSE
from reconciler.decide.listed import listed
from reconciler.decide.steps import RETRY_LATER_S, Retry, Wait


def decide_execution(
    reassignment: Reassignment,
    view: ReassignmentView,
    directed: Recorded,
    partitions: PartitionProgress,
    permission: Permission,
) -> Step:
    """Return the next step towards `directed.plan`, which has not been reached."""
    astray = partitions.lost + partitions.stray
    if view.failures and not any(passes_by_itself(failure) for failure in view.failures.values()):
        return refused(reassignment, view, partitions)
    if astray and not partitions.moving:
        if view.waited_s < STRAY_TIMEOUT_S:
            return Retry(cap_s=RETRY_LATER_S)
        return _fail(reassignment, view, partitions, "Interrupted", _interrupted(astray))
    if permission.hold is None and not reassignment.status.handing_over:
        held_up = _held_up_by_throttle(reassignment, view, partitions, permission)
        if held_up is not None:
            return held_up
    return _advance(reassignment, view, directed, partitions, permission)


def _advance(
    reassignment: Reassignment,
    view: ReassignmentView,
    directed: Recorded,
    partitions: PartitionProgress,
    permission: Permission,
) -> Step:
    """Start moves as far as limits and permission allow, and keep the throttle to what moves or is about to move."""
    status, hold = reassignment.status, permission.hold
    end = status.handing_over
    if hold is None and not (partitions.lost or partitions.stray or partitions.due):
        order = directed.plan[: permission.up_to]
        end = hand_over_up_to(partitions, order, end, view.moves, reassignment.concurrency)
    beginning = _between(directed.plan, status.handing_over, end, partitions.later)
    starting = () if hold is not None else (*partitions.due, *beginning)
    desired = _desired_throttle(reassignment, view, partitions, starting)
    record = _record(status.throttle, desired, view)
    if isinstance(record, ReadThrottle):
        return record
    if record is not None and record == status.throttle and view.in_force == throttle_identity(desired, view):
        record = settled(record, desired, ())
    unset = _unset_throttle(desired, view)
    if unset is not None:
        return _wait_for_throttle(reassignment, view, unset)
    shown = _shown(reassignment, view, partitions)
    if hold is None:
        shown = released(shown, reassignment.metadata.generation, view.now)
    else:
        shown = held(reassignment, shown, hold, len(partitions.under_way), view.now)
    handed_over = status.handed_over if partitions.due else status.handing_over
    shown = replace(
        shown,
        handed_over=handed_over,
        handing_over=end,
        throttle=record,
        guard=permission.guard,
        canary=permission.canary,
    )
    write = written(reassignment, shown)
    if write is not None:
        return write
    step = throttle_step(reassignment, view, desired)
    if step is not None:
        return step
    if hold is not None and not partitions.under_way:
        return Wait(hold.recheck_s)
    if hold is None and partitions.due:
        return Retry() if view.submitted else start_moves(partitions.due, view.current)
    return Wait(poll_interval_s(partitions.total))


def refused(reassignment: Reassignment, view: ReassignmentView, partitions: PartitionProgress) -> Step:
    """Cancel the remaining moves when the controller rejected some of them."""
    partition, failure = min(view.failures.items())
    message = (
        f"The controller rejected partition {partition}: {message_of(failure)} Moves in progress were cancelled; "
        f"{len(partitions.arrived)} of {partitions.total} partitions had completed."
    )
    return stop(partitions, view) or _fail(reassignment, view, partitions, reason_of(failure), message)


def progress_of(reassignment: Reassignment, view: ReassignmentView, partitions: PartitionProgress) -> Progress:
    """Return the progress; bytes are those of the last sample."""
    before, now = reassignment.status.progress, partitions.progress
    total = None if before is None else before.bytes_total
    if total is None and view.measured is not None:
        total = view.measured.total or None
    if total is None:
        return now
    if view.measured is None:
        assert before is not None, reassignment.key
        return replace(now, bytes_moved=before.bytes_moved, bytes_total=total, eta_s=before.eta_s)
    moved = min(view.measured.copied, total)
    return replace(now, bytes_moved=moved, bytes_total=total, eta_s=seconds_left(view.measured))


def _shown(reassignment: Reassignment, view: ReassignmentView, partitions: PartitionProgress) -> ReassignmentStatus:
    """Return the status with the progress; unchanged before the first move."""
    status, generation = reassignment.status, reassignment.metadata.generation
    begun = bool(partitions.moving or partitions.arrived or status.handed_over or status.rollback)
    if not begun and status.state is State.PENDING:
        shown = judged(reassignment, FALSE, PENDING, "The plan is being submitted to the controller.", view.now)
    else:
        shown = running(reassignment, progress_of(reassignment, view, partitions), view.now)
    shown = flagged(shown, THROTTLE_TOO_LOW, None, generation, view.now)
    if view.measured is None:
        return shown
    return flagged(shown, STUCK, _stuck(reassignment, view, partitions), generation, view.now)


def _between(
    order: tuple[Assignment, ...], start: int, end: int, later: tuple[Assignment, ...]
) -> tuple[Assignment, ...]:
    if start == end:
        return ()
    waiting = {item.partition for item in later[: end - start]}
    return tuple(item for item in order[start:end] if item.partition in waiting)


def _desired_throttle(
    reassignment: Reassignment,
    view: ReassignmentView,
    partitions: PartitionProgress,
    starting: tuple[Assignment, ...],
) -> DesiredThrottle:
    spec = reassignment.throttle
    if spec is None:
        return NOTHING
    need = _need(reassignment, view, partitions)
    rate = rate_of(spec, reassignment.status.throttle, view.measured, need)
    return desired_throttle_for((*partitions.under_way, *starting), partitions, rate, view.broker_ids)


def _record(
    current: ThrottleRecord | None, desired: DesiredThrottle, view: ReassignmentView
) -> ThrottleRecord | ReadThrottle | None:
    """Return the record that covers a desired throttle, or the read that it requires."""
    if not desired.brokers and not desired.topics:
        return current
    if current is not None and _covers(current, desired):
        return current
    read_step = unread_throttles(current, desired, view.throttle)
    return read_step or recorded(current, desired, view.throttle, view.other_throttles)


def _covers(current: ThrottleRecord, desired: DesiredThrottle) -> bool:
    topics = {item.topic: item for item in current.topics}
    return (
        current.bytes_per_second == desired.rate
        and desired.brokers <= {item.broker_id for item in current.brokers}
        and all(
            name in topics and leader <= topics[name].leader and follower <= topics[name].follower
            for name, (leader, follower) in desired.topics.items()
        )
    )


def _unset_throttle(desired: DesiredThrottle, view: ReassignmentView) -> tuple[object, Failure] | None:
    """Return a broker or topic on which the throttle could not be set, with the failure; None if there is none."""
    wanted: set[object] = {*desired.brokers, *desired.topics}
    observed = (*view.throttle.brokers.items(), *view.throttle.topics.items(), *view.unaltered.items())
    failures = ((name, found) for name, found in observed if isinstance(found, Failure))
    return next((pair for pair in failures if pair[0] in wanted), None)


def _wait_for_throttle(reassignment: Reassignment, view: ReassignmentView, unset: tuple[object, Failure]) -> Step:
    name, failure = unset
    what = f"broker {name}" if isinstance(name, int) else f"topic {name}"
    message = f"The throttle cannot be set on {what}: {message_of(failure)} No further move starts before it is set."
    updated = judged(reassignment, FALSE, "ThrottleNotSet", message, view.now)
    return written(reassignment, updated) or Retry(RETRY_LATER_S)


def _need(reassignment: Reassignment, view: ReassignmentView, partitions: PartitionProgress) -> Need | None:
    if view.measured is None or view.measured.growth is None:
        return None
    items = (*partitions.moving, *partitions.due, *partitions.later)
    return need_of(items, partitions, view.measured.growth, reassignment.concurrency)


def _held_up_by_throttle(
    reassignment: Reassignment, view: ReassignmentView, partitions: PartitionProgress, permission: Permission
) -> Step | None:
    """Return the wait of a plan that has not started while its throttle is too low, or while that is not known yet."""
    spec = reassignment.throttle
    if spec is None:
        return None
    if view.measured is None or view.measured.growth is None:
        return Wait(poll_interval_s(partitions.total))
    message = too_low(spec, _need(reassignment, view, partitions))
    if message is None:
        return None
    status = judged(reassignment, FALSE, THROTTLE_TOO_LOW, message, view.now)
    generation = reassignment.metadata.generation
    shown = flagged(status, THROTTLE_TOO_LOW, ("BelowTraffic", message), generation, view.now)
    shown = replace(released(shown, generation, view.now), guard=permission.guard)
    same = _already_reported(reassignment) and permission.guard == reassignment.status.guard
    return (None if same else written(reassignment, shown)) or Wait(poll_interval_s(partitions.total))


def _already_reported(reassignment: Reassignment) -> bool:
    """Return whether the status already reports it: numbers that change with each sample do not justify a write."""
    conditions = {item.type: item for item in reassignment.status.conditions}
    ready, too_low_condition = conditions.get("Ready"), conditions.get(THROTTLE_TOO_LOW)
    return (
        ready is not None
        and too_low_condition is not None
        and (ready.reason, too_low_condition.status) == (THROTTLE_TOO_LOW, "True")
        and ready.observed_generation == reassignment.metadata.generation
    )


def _stuck(reassignment: Reassignment, view: ReassignmentView, partitions: PartitionProgress) -> tuple[str, str] | None:
    """Return reason and message for stuck moves, with the likely cause of the first one."""
    stuck = () if view.measured is None else view.measured.stuck
    if not stuck:
        return None
    targets = {item.partition: item.replicas for item in partitions.moving}
    reason, cause = _cause(reassignment, view, partitions, stuck[0], targets.get(stuck[0], ()))
    names = listed([str(name) for name in stuck])
    return reason, f"No data was copied for {STUCK_AFTER_S:.0f} s for {names}. Likely cause: {cause}"


def _cause(
    reassignment: Reassignment,
    view: ReassignmentView,
    partitions: PartitionProgress,
    name: Partition,
    target: tuple[int, ...],
) -> tuple[str, str]:
    known = partitions.current.get(name)
    before = () if known is None else known.replicas
    dead = sorted(set(target) - set(before) - set(view.broker_ids))
    if dead:
        return "BrokerDead", f"broker {listed(dead)}, a target of {name}, is offline. Start it, or cancel."
    if known is None or known.leader == NO_LEADER:
        return (
            "NoLeader",
            f"{name} has no leader, because no in-sync replica is live. Start one of brokers {listed(before)}.",
        )
    record = reassignment.status.throttle
    if record is not None:
        rate = record.bytes_per_second
        return (
            "Throttled",
            f"the throttle of {rate} bytes per second is used up by other moves or by traffic. Increase it.",
        )
    if reassignment.is_between_log_dirs:
        return (
            "NoProgress",
            f"the brokers of {name} copy nothing between their log directories; check their logs and disks.",
        )
    return (
        "NoProgress",
        f"broker {known.leader} leads {name} and sends no data; check the logs of the brokers of the new replicas.",
    )


def _fail(
    reassignment: Reassignment, view: ReassignmentView, partitions: PartitionProgress, reason: str, message: str
) -> Step:
    progress = progress_of(reassignment, view, partitions)
    return finish(reassignment, view, State.FAILED, reason=reason, message=message, progress=progress)


def _interrupted(items: tuple[Assignment, ...]) -> str:
    names = listed([item.partition for item in items])
    return (
        f"Partitions of the plan are neither moving nor completed ({len(items)}: {names}): they were cancelled, moved elsewhere or "
        "deleted by another client. They are not retried."
    )

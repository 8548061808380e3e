"""Canary of a Reassignment: its first partitions move, then the others wait.

    moving          the canary's partitions move within the usual limits
    CanaryWaiting   they have arrived; they must be healthy for the soak time without interruption: led, all replicas in sync, guard quiet
    ... then        with approval Automatic the others move; with Required the condition CanaryApprovalRequired asks for
                    spec.canary.approvedDigest, the digest of plan and base that spec.approvedDigest names too

The approval ends the soak time, as a promotion ends a pause of Argo Rollouts, but not the wait for health. Once a partition after the
canary's has been submitted the canary is over, so that nothing of it has to be remembered.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta

from kafka_operator.decide.kafka.observed import NO_LEADER
from kafka_operator.decide.reassignments.hold import CANARY_APPROVAL_REQUIRED, CANARY_WAITING, Hold
from kafka_operator.decide.reassignments.partition_progress import PartitionProgress
from kafka_operator.resources.canary import Canary, CanaryRecord
from kafka_operator.resources.reassignment import Assignment, Partition, Reassignment
from kafka_operator.resources.reassignment_terms import Approval
from reconciler.decide.listed import listed
from reconciler.resources.metadata import read_time, write_time

CANARY_POLL_S = 10.0
"""Interval of the checks of a canary's health while nothing moves."""


def is_over(canary: Canary, reassignment: Reassignment, total: int) -> bool:
    """Return whether the canary no longer limits the plan: others have been submitted, or there are none."""
    return canary.partitions >= total or reassignment.status.handing_over > canary.partitions


def health_of(
    plan: Sequence[Assignment], partitions: PartitionProgress, record: CanaryRecord | None, now: datetime
) -> tuple[tuple[Partition, ...] | None, CanaryRecord | None]:
    """Return the unhealthy partitions of the canary, None while they have not all arrived; and since when all are healthy."""
    arrived = {item.partition for item in partitions.arrived}
    if not all(item.partition in arrived for item in plan):
        return None, None
    unhealthy = tuple(item.partition for item in plan if not _is_healthy(item.partition, partitions))
    return unhealthy, None if unhealthy else record or CanaryRecord(write_time(now))


def canary_hold(
    canary: Canary, digest: str | None, unhealthy: Sequence[Partition], record: CanaryRecord | None, now: datetime
) -> Hold | None:
    """Return why the partitions after an arrived canary do not move; None if they may."""
    count = f"The {canary.partitions} partitions of the canary are moved"
    if record is None:
        names = listed([str(name) for name in unhealthy])
        text = f"{count}, but not healthy: {names}. " if unhealthy else f"{count}. "
        message = f"{text}The others wait until these have been healthy for {canary.soak_s} s."
        return Hold(CANARY_WAITING, message, CANARY_POLL_S)
    if canary.approved_digest is not None and canary.approved_digest == digest:
        return None
    soaked = read_time(record.healthy_time) + timedelta(seconds=canary.soak_s)
    automatic = canary.approval is Approval.AUTOMATIC
    request = f"set spec.canary.approvedDigest to {digest}"
    if now >= soaked and automatic:
        return None
    if now < soaked:
        then = f"or {request} to continue now" if automatic else f"then {request}"
        message = (
            f"{count} and healthy since {record.healthy_time}. The others wait until {write_time(soaked)}; {then}."
        )
        return Hold(CANARY_WAITING, message, min(CANARY_POLL_S, (soaked - now).total_seconds()))
    differs = "" if canary.approved_digest is None else " The current value refers to another plan."
    message = f"{count} and healthy since {record.healthy_time}. To move the others, {request}.{differs}"
    return Hold(CANARY_APPROVAL_REQUIRED, message, CANARY_POLL_S)


def _is_healthy(name: Partition, partitions: PartitionProgress) -> bool:
    known = partitions.current.get(name)
    return known is not None and known.leader != NO_LEADER and set(known.replicas) <= set(known.isr)

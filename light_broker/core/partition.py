"""State of a partition on a broker: leader or follower.

The control plane moves a partition between the two with a state of the cluster (`lead`, `follow`); a leader changes by its followers' fetches
and by the controller's answers. All functions return the next state. Source: Kafka's Partition.

The high watermark is the lowest end offset among the leader's log and the logs of the maximal ISR, and of replicas that are about to
join: a consumer reads only below it, and a producer with acks=all is answered once it has passed. It never falls.
"""

from collections.abc import Container, Mapping
from dataclasses import dataclass, replace

from kafka_wire import ErrorCode
from light_broker.core.follower_progress import FollowerProgress
from light_broker.core.isr import (
    AfterAnswer,
    AlterPartitionAnswer,
    Committed,
    Isr,
    Pending,
    PendingExpansion,
    PendingShrink,
    after_answer,
    is_eligible,
)
from light_broker.core.metadata_view import PartitionView


@dataclass(frozen=True, slots=True)
class IsrRules:
    """Settings of a topic for its ISR, with Kafka's defaults."""

    min_insync_replicas: int = 1
    max_lag_ms: int = 30_000
    """Longest time for which a follower may lack records and stay in the ISR (replica.lag.time.max.ms)."""


@dataclass(frozen=True, slots=True)
class Follower:
    """A replica that fetches from the leader, or waits for one."""

    leader_id: int
    leader_epoch: int
    partition_epoch: int


@dataclass(frozen=True, slots=True)
class Leader:
    """The replica that takes appends."""

    leader_id: int
    leader_epoch: int
    partition_epoch: int
    epoch_start_offset: int
    """End of the log when the leader epoch began. A follower without it may miss records that the epochs before have committed."""
    isr: Isr
    followers: Mapping[int, FollowerProgress]

    def min_isr(self, rules: IsrRules) -> int:
        """Return min.insync.replicas, at most the number of replicas."""
        return min(rules.min_insync_replicas, len(self.followers) + 1)

    def is_under_min_isr(self, rules: IsrRules) -> bool:
        """Return whether too few replicas are in sync for acks=all."""
        return len(self.isr.members) < self.min_isr(rules)


Role = Leader | Follower


def lead(current: Role | None, view: PartitionView, broker_id: int, *, end_offset: int, now_ms: int) -> Leader | None:
    """Return the state of a partition that this broker leads; None if `view` is older than `current`."""
    if current is not None and view.partition_epoch < current.partition_epoch:
        return None
    is_new_epoch = current is None or view.leader_epoch > current.leader_epoch
    leader = current if isinstance(current, Leader) else None
    known = leader.followers if leader is not None else {}
    followers = {}
    for replica in view.replicas:
        if replica == broker_id:
            continue
        progress = known.get(replica, FollowerProgress())
        if is_new_epoch or leader is None:
            progress = progress.at_new_epoch(
                is_in_isr=replica in view.isr, is_new_leader=leader is None, leader_end_offset=end_offset, now_ms=now_ms
            )
        followers[replica] = progress
    start = end_offset if is_new_epoch or leader is None else leader.epoch_start_offset
    return Leader(broker_id, view.leader_epoch, view.partition_epoch, start, Committed(tuple(view.isr)), followers)


def follow(current: Role | None, view: PartitionView) -> Follower | None:
    """Return the state of a partition that another broker leads, or none; None if `view` is older than `current`."""
    if current is not None and view.partition_epoch < current.partition_epoch:
        return None
    return Follower(view.leader, view.leader_epoch, view.partition_epoch)


def epoch_error(role: Role, current_leader_epoch: int) -> ErrorCode:
    """Compare the leader epoch in a request, -1 for none, with that of the partition (KIP-320)."""
    if current_leader_epoch < 0 or current_leader_epoch == role.leader_epoch:
        return ErrorCode.NONE
    if current_leader_epoch < role.leader_epoch:
        return ErrorCode.FENCED_LEADER_EPOCH
    return ErrorCode.UNKNOWN_LEADER_EPOCH


def access_error(role: Role, current_leader_epoch: int, *, only_leader: bool) -> ErrorCode:
    """Return why a request may not be served here, NONE if it may."""
    if (error := epoch_error(role, current_leader_epoch)) is not ErrorCode.NONE:
        return error
    if only_leader and isinstance(role, Follower):
        return ErrorCode.NOT_LEADER_OR_FOLLOWER
    return ErrorCode.NONE


def follower_error(leader: Leader, broker_id: int, broker_epoch: int, current_leader_epoch: int) -> ErrorCode:
    """Return why a follower's fetch may not be served, NONE if it may.

    A replica that is unknown here although the epochs are equal was added by a state that this leader has yet to get.
    """
    progress = leader.followers.get(broker_id)
    if progress is None:
        return ErrorCode.UNKNOWN_LEADER_EPOCH if current_leader_epoch >= 0 else ErrorCode.NOT_LEADER_OR_FOLLOWER
    if progress.broker_epoch is not None and 0 <= broker_epoch < progress.broker_epoch:
        return ErrorCode.NOT_LEADER_OR_FOLLOWER
    return ErrorCode.NONE


def with_progress(leader: Leader, broker_id: int, progress: FollowerProgress) -> Leader:
    """Return the leader with the progress of a follower."""
    return replace(leader, followers={**leader.followers, broker_id: progress})


def next_high_watermark(
    leader: Leader,
    high_watermark: int,
    rules: IsrRules,
    eligible_epochs: Mapping[int, int],
    *,
    end_offset: int,
    now_ms: int,
) -> int:
    """Return the high watermark, which stays where it is while the ISR is below min.insync.replicas (KIP-966)."""
    if leader.is_under_min_isr(rules):
        return high_watermark
    lowest = end_offset
    maximal = leader.isr.maximal
    for broker_id, progress in leader.followers.items():
        if progress.end_offset >= lowest:
            continue
        if broker_id in maximal or (
            progress.is_caught_up(leader_end_offset=end_offset, now_ms=now_ms, max_lag_ms=rules.max_lag_ms)
            and is_eligible(broker_id, progress.broker_epoch, eligible_epochs)
        ):
            lowest = progress.end_offset
    return max(high_watermark, lowest)


def produce_error(leader: Leader, rules: IsrRules) -> ErrorCode:
    """Return why a batch with acks=all is not appended, NONE if it is."""
    return ErrorCode.NOT_ENOUGH_REPLICAS if leader.is_under_min_isr(rules) else ErrorCode.NONE


def replication_error(role: Role, rules: IsrRules, *, high_watermark: int, required_offset: int) -> ErrorCode | None:
    """Return the result of a batch with acks=all that ends at `required_offset`; None while replicas lack it."""
    if isinstance(role, Follower):
        return ErrorCode.NOT_LEADER_OR_FOLLOWER
    if high_watermark < required_offset:
        return None
    enough = role.min_isr(rules) <= len(role.isr.maximal)
    return ErrorCode.NONE if enough else ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND


def low_watermark(leader: Leader, start_offset: int, live_brokers: Container[int]) -> int:
    """Return the lowest start offset among the logs of the live replicas (DeleteRecords)."""
    live = [progress.start_offset for broker_id, progress in leader.followers.items() if broker_id in live_brokers]
    return min([start_offset, *live])


def expansion(
    leader: Leader, broker_id: int, high_watermark: int, eligible_epochs: Mapping[int, int]
) -> PendingExpansion | None:
    """Return the ISR with a follower that has caught up, None if it may not join.

    It has caught up with the high watermark, and with the start of the leader epoch.
    """
    if not isinstance(leader.isr, Committed) or broker_id in leader.isr.members:
        return None
    progress = leader.followers[broker_id]
    if progress.end_offset < max(high_watermark, leader.epoch_start_offset):
        return None
    if not is_eligible(broker_id, progress.broker_epoch, eligible_epochs):
        return None
    return PendingExpansion(leader.isr.members, broker_id)


def shrink(leader: Leader, rules: IsrRules, *, end_offset: int, now_ms: int) -> PendingShrink | None:
    """Return the ISR without the followers that lag for too long, None if all are in sync."""
    if not isinstance(leader.isr, Committed):
        return None
    slow = frozenset(
        broker_id
        for broker_id in leader.isr.members
        if broker_id != leader.leader_id
        and not leader.followers.get(broker_id, FollowerProgress()).is_caught_up(
            leader_end_offset=end_offset, now_ms=now_ms, max_lag_ms=rules.max_lag_ms
        )
    )
    return PendingShrink(leader.isr.members, slow) if slow else None


def with_isr(leader: Leader, isr: Isr) -> Leader:
    """Return the leader with another ISR."""
    return replace(leader, isr=isr)


def answered(leader: Leader, pending: Pending, answer: AlterPartitionAnswer) -> tuple[Leader, AfterAnswer]:
    """Return the leader after the controller's answer to a change of the ISR, and what follows."""
    if leader.isr != pending:
        return leader, AfterAnswer.IGNORED
    outcome = after_answer(answer, leader_epoch=leader.leader_epoch, partition_epoch=leader.partition_epoch)
    if outcome is AfterAnswer.COMMITTED:
        return replace(leader, isr=Committed(answer.isr), partition_epoch=answer.partition_epoch), outcome
    if outcome is AfterAnswer.WITHDRAWN:
        return replace(leader, isr=Committed(pending.members)), outcome
    return leader, outcome

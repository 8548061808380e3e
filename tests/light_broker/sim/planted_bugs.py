"""Bugs of replication, each planted in one function of the core, that the checks of the simulation must find."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from kafka_log.format.epochs import EpochStart
from kafka_wire import ErrorCode
from light_broker.core import partition
from light_broker.core.isr import Committed, PendingExpansion, PendingShrink
from light_broker.core.partition import IsrRules, Leader
from light_broker.core.purgatory import Purgatory
from light_broker.core.truncation import Truncation, truncation_after
from tests.light_broker.sim.replica import Rules


def _high_watermark_of_a_minority(leader: Leader, high_watermark: int, *_: Any, end_offset: int, **__: Any) -> int:
    return max(high_watermark, end_offset) if leader.followers else high_watermark


def _high_watermark_of_the_committed_isr(leader: Leader, *arguments: Any, **named: Any) -> int:
    followers = {
        broker_id: progress for broker_id, progress in leader.followers.items() if broker_id in leader.isr.members
    }
    return partition.next_high_watermark(
        replace(leader, isr=Committed(leader.isr.members), followers=followers), *arguments, **named
    )


def _shrink_that_counts_before_its_answer(leader: Leader, *arguments: Any, **named: Any) -> int:
    if not isinstance(leader.isr, PendingShrink):
        return partition.next_high_watermark(leader, *arguments, **named)
    followers = {
        broker_id: progress for broker_id, progress in leader.followers.items() if broker_id not in leader.isr.removed
    }
    isr = Committed(leader.isr.proposed)
    return partition.next_high_watermark(replace(leader, isr=isr, followers=followers), *arguments, **named)


def _high_watermark_below_min_isr(
    leader: Leader, high_watermark: int, rules: IsrRules, *rest: Any, **named: Any
) -> int:
    return partition.next_high_watermark(leader, high_watermark, IsrRules(1, rules.max_lag_ms), *rest, **named)


def _join_below_the_epoch_start(leader: Leader, *arguments: Any) -> PendingExpansion | None:
    return partition.expansion(replace(leader, epoch_start_offset=0), *arguments)


def _join_below_the_high_watermark(leader: Leader, broker_id: int, _: int, live: Mapping[int, int]) -> Any:
    return partition.expansion(leader, broker_id, 0, live)


def _answer_before_replication(role: partition.Role, *_: Any, **__: Any) -> ErrorCode | None:
    return ErrorCode.NONE if isinstance(role, Leader) else ErrorCode.NOT_LEADER_OR_FOLLOWER


def _truncation_below_the_divergence(end: EpochStart, *arguments: Any, **named: Any) -> Truncation:
    found = truncation_after(end, *arguments, **named)
    return replace(found, offset=max(found.offset - 5, 0))


def _no_truncation(*_: Any, **__: Any) -> bool:
    return False


class _PurgatoryThatForgetsNothing(Purgatory[str]):
    """Completed operations stay under their key."""

    def check(self, key: str) -> int:
        completed = 0
        for operation in list(self._by_key.get(key, {}).values()):
            if operation.is_satisfied(key):
                operation.complete(expired=False)
                completed += 1
        return completed


@dataclass(frozen=True)
class Bug:
    """A planted bug, and the first seed whose run violates an invariant by it."""

    rules: Rules
    seed: int


BUGS: Mapping[str, Bug] = {
    "the high watermark is the end of the leader's log": Bug(
        Rules(next_high_watermark=_high_watermark_of_a_minority), 0
    ),
    "the high watermark ignores a pending expansion": Bug(
        Rules(next_high_watermark=_high_watermark_of_the_committed_isr), 0
    ),
    "a shrink counts before its answer": Bug(Rules(next_high_watermark=_shrink_that_counts_before_its_answer), 5),
    "the high watermark rises below min.insync.replicas": Bug(
        Rules(next_high_watermark=_high_watermark_below_min_isr, produce_error=lambda *_: ErrorCode.NONE), 12
    ),
    "a replica joins below the start of the epoch": Bug(Rules(expansion=_join_below_the_epoch_start), 60),
    "a replica joins below the high watermark": Bug(Rules(expansion=_join_below_the_high_watermark), 8),
    "a produce is answered before replication": Bug(Rules(replication_error=_answer_before_replication), 0),
    "a follower truncates below the divergence": Bug(Rules(truncation_after=_truncation_below_the_divergence), 2),
    "a follower does not truncate": Bug(Rules(is_diverging=_no_truncation), 20),
    "a produce is answered twice": Bug(Rules(purgatory=_PurgatoryThatForgetsNothing), 0),
}
"""By what is wrong."""

"""Rounds: the planned times of samples, whole multiples of the interval since 1970. Two samplers, or one after a restart, use the same.

Pure. If a sample takes longer than the interval, the rounds in the meantime are skipped and counted; samples never queue up.

>>> plan = first_round(now_ms=1_000_030_500, interval_ms=60_000)
>>> plan.round_ms % 60_000, plan.skipped
(0, 0)
>>> next_round(plan.round_ms, now_ms=plan.round_ms + 61_000, interval_ms=60_000)
Round(round_ms=1000200000, skipped=1)
"""

from typing import NamedTuple


class Round(NamedTuple):
    """The planned time of a sample, and the number of rounds before it that were skipped."""

    round_ms: int
    skipped: int


def current_round(now_ms: int, interval_ms: int) -> int:
    """Return the round of a sample that is taken now."""
    return now_ms - now_ms % interval_ms


def first_round(now_ms: int, interval_ms: int) -> Round:
    """Return the first round that is not in the past."""
    return Round(-(-now_ms // interval_ms) * interval_ms, 0)


def next_round(previous_ms: int, now_ms: int, interval_ms: int) -> Round:
    """Return the round after one whose sample has finished now.

    If the clock was set back by more than an interval, rounds follow the new time: otherwise sampling would pause until the clock reaches
    the old time again. If by less, the round after the previous one is returned, so that no round has two samples.
    """
    due_ms = previous_ms + interval_ms
    if now_ms < previous_ms - interval_ms:
        return first_round(now_ms, interval_ms)
    next_ms = max(due_ms, first_round(now_ms, interval_ms).round_ms)
    return Round(next_ms, (next_ms - due_ms) // interval_ms)

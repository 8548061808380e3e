"""When looks are due: on whole multiples of the interval since 1970, so that two samplers, and one after a restart, agree.

Pure. A look that takes too long makes the rounds that it overruns fall out, counted: they never pile up.

>>> plan = first_round(now_ms=1_000_030_500, interval_ms=60_000)
>>> plan.round_ms % 60_000, plan.skipped
(0, 0)
>>> next_round(plan.round_ms, now_ms=plan.round_ms + 61_000, interval_ms=60_000)
Round(round_ms=1000200000, skipped=1)
"""

from typing import NamedTuple


class Round(NamedTuple):
    """The planned time of a look, and how many before it were overrun."""

    round_ms: int
    skipped: int


def present_round(now_ms: int, interval_ms: int) -> int:
    """Return the round that the present moment belongs to: of a look that is taken at once."""
    return now_ms - now_ms % interval_ms


def first_round(now_ms: int, interval_ms: int) -> Round:
    """Return the first round that is not over yet."""
    return Round(-(-now_ms // interval_ms) * interval_ms, 0)


def next_round(previous_ms: int, now_ms: int, interval_ms: int) -> Round:
    """Return the round after one whose look has ended now.

    A clock that was set back by more than an interval is followed, as nobody waits an hour for it to come round again; by
    less, the round after the previous one is taken, so that no round has two looks.
    """
    due_ms = previous_ms + interval_ms
    if now_ms < previous_ms - interval_ms:
        return first_round(now_ms, interval_ms)
    later_ms = max(due_ms, first_round(now_ms, interval_ms).round_ms)
    return Round(later_ms, (later_ms - due_ms) // interval_ms)

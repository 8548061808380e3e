"""Parts of every benchmark: alternate runs of Steward and the peer, medians, and one row for each figure.

Steward and the peer take turns, so that a machine that is busy for a while slows both. In code and in the results file, `ours` is
Steward's side.
"""

import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum

RUNS = 7
"""Runs of each side: the fewest whose median changes little with one or two slow runs."""

QUICK_RUNS = 3
"""With --quick: enough to check that a benchmark works, too few for published figures."""

Run = Callable[[], float]
"""Does the work once and returns its time in seconds."""


class Better(StrEnum):
    """Direction in which a figure improves."""

    HIGHER = "higher"
    LOWER = "lower"


@dataclass(frozen=True, slots=True)
class Effort:
    """Size of a run: `quick` limits a benchmark to a few seconds; `rounds` overrides a benchmark's own number of runs."""

    quick: bool = False
    rounds: int | None = None

    def runs(self, usual: int = RUNS) -> int:
        """Return the number of runs of each side."""
        return self.rounds or (min(QUICK_RUNS, usual) if self.quick else usual)


@dataclass(frozen=True, slots=True)
class Side:
    """One side's figures over its runs, in the row's unit."""

    median: float
    lowest: float
    highest: float

    @property
    def spread(self) -> float:
        """Return the difference of highest and lowest, relative to the median."""
        return (self.highest - self.lowest) / self.median if self.median else 0.0


@dataclass(frozen=True, slots=True)
class Row:
    """One figure of Steward and of the peer.

    `name` is BENCHMARK.FIGURE and never changes its meaning; `what` and `peer_is` describe the two sides. `promise` is the
    number of the promise that the figure belongs to, and `at_least` the promised ratio. `also` has further figures of Steward's
    side from the same runs, by what they are and their unit, such as `processor time, s`.
    """

    name: str
    what: str
    peer_is: str
    unit: str
    better: Better
    ours: Side
    peer: Side
    runs: int
    promise: str = ""
    at_least: float | None = None
    also: Mapping[str, float] = field(default_factory=dict)

    @property
    def ratio(self) -> float:
        """Return how many times better Steward is; below 1 the peer is better."""
        mine, theirs = self.ours.median, self.peer.median
        over, under = (mine, theirs) if self.better is Better.HIGHER else (theirs, mine)
        return over / under if under else float("inf")

    @property
    def kept(self) -> bool:
        """Return whether the ratio reaches the promised one; true without a promise."""
        return self.at_least is None or self.ratio >= self.at_least


def promised(row: Row, promise: str, at_least: float | None = None) -> Row:
    """Add a promise to a figure.

    >>> promised(duration("a.b", "", "", ([1.0], [8.0])), "P3", 5.0).kept
    True
    """
    return replace(row, promise=promise, at_least=at_least)


def side_of(figures: Sequence[float]) -> Side:
    """Summarise one side's runs.

    >>> side_of([3.0, 1.0, 2.0])
    Side(median=2.0, lowest=1.0, highest=3.0)
    """
    return Side(statistics.median(figures), min(figures), max(figures))


def timed(work: Callable[[], object], repeat: int = 1) -> Run:
    """Return a run of `work`, `repeat` times in a row; its seconds are those of one."""

    def run() -> float:
        started = time.perf_counter()
        for _ in range(repeat):
            work()
        return (time.perf_counter() - started) / repeat

    return run


def alternate(ours: Run, peer: Run, runs: int) -> tuple[list[float], list[float]]:
    """Run Steward and the peer in turn and return both sides' seconds."""
    pairs = [(ours(), peer()) for _ in range(runs)]
    return [mine for mine, _ in pairs], [theirs for _, theirs in pairs]


def throughput(
    name: str, what: str, peer_is: str, unit: str, amount: float, seconds: tuple[Sequence[float], Sequence[float]]
) -> Row:
    """Return a row of `amount` per second from both sides' seconds."""
    ours, peer = ([amount / duration_s for duration_s in side] for side in seconds)
    return Row(name, what, peer_is, unit, Better.HIGHER, side_of(ours), side_of(peer), len(ours))


def duration(name: str, what: str, peer_is: str, seconds: tuple[Sequence[float], Sequence[float]]) -> Row:
    """Return a row of milliseconds from both sides' seconds."""
    ours, peer = ([duration_s * 1000 for duration_s in side] for side in seconds)
    return Row(name, what, peer_is, "ms", Better.LOWER, side_of(ours), side_of(peer), len(ours))


def limited(name: str, what: str, unit: str, figure: Side, limit: float, promise: str) -> Row:
    """Return a row that compares a figure with its promised limit.

    >>> limited("a.b", "", "s", side_of([8.0]), 10.0, "P8").ratio
    1.25
    """
    row = Row(name, what, "the limit", unit, Better.LOWER, figure, side_of([limit]), 1)
    return promised(row, promise, 1.0)

"""Speed of the quorum's simulator: simulated time over processor time, and seeds a minute, on one core (P12).

The seeds are those that draw three voters and no other node, each with the faults, rates and settings that it draws, 15 s of faults and
then the time to converge. Leaves out larger clusters, and the search for a planted bug.
"""

import time
from collections.abc import Iterator

from bench.harness import Better, Effort, Row, promised, side_of
from tests.sim.run import run
from tests.sim.swarm import draw

NAME = "quorum-simulator"
ABOUT = "simulated time of a KRaft quorum of three over processor time (half a minute)"

VOTERS = 3
SEEDS = 40
QUICK_SEEDS = 4
ROUNDS = 3

GOAL = 300.0
"""Simulated seconds a second that the simulator is compared with."""

LEAST_RATIO = 1 / 3
"""100 simulated seconds a second: 20,000 seeds take an hour of one core."""


def measure(effort: Effort) -> Iterator[Row]:
    """Yield the speed; the processor's seconds of a round are those of all seeds."""
    seeds = _seeds(QUICK_SEEDS if effort.quick else SEEDS)
    rounds = effort.rounds or (1 if effort.quick else ROUNDS)
    speeds, seeds_a_minute = zip(*(_round(seeds) for _ in range(rounds)), strict=True)
    what = f"simulated seconds in a second of one core, {len(seeds)} seeds of three voters under faults"
    peer = side_of([GOAL])
    also = {"seeds a minute": min(seeds_a_minute)}
    row = Row(
        f"{NAME}.speed", what, "300 simulated seconds", "x", Better.HIGHER, side_of(speeds), peer, rounds, also=also
    )
    yield promised(row, "P12", LEAST_RATIO)


def _seeds(count: int) -> list[int]:
    found: list[int] = []
    seed = 0
    while len(found) < count:
        drawn = draw(seed)
        if (drawn.voters, drawn.controllers, drawn.brokers) == (VOTERS, 0, 0):
            found.append(seed)
        seed += 1
    return found


def _round(seeds: list[int]) -> tuple[float, float]:
    """Run the seeds; return simulated seconds a second and seeds a minute."""
    started = time.process_time()
    simulated_ms = sum(run(seed).simulated_ms for seed in seeds)
    taken_s = time.process_time() - started
    return simulated_ms / 1000 / taken_s, 60 * len(seeds) / taken_s

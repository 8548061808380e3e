"""The smallest form of a failing run: what the failure does not need is taken away, one part after another.

`python -m tests.sim.minimal 17` prints a seed, settings and a time with which the run still fails. A change of the settings changes what a
seed draws, so that other seeds are tried as well.
"""

import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace

from tests.sim.run import FAULTS_MS, run
from tests.sim.scenarios import CALM
from tests.sim.swarm import Swarm, draw

OTHER_SEEDS = range(20)
"""Seeds that are tried in addition to the failing one."""

PARTS = (
    "damage",
    "wipes",
    "auto_join",
    "changes",
    "upgrades",
    "brokers",
    "snapshot_every_ms",
    "fetch_snapshot_max_bytes",
    "fetch_timeout_spread_ms",
    "fetch_max_bytes",
    "pauses",
    "drift_percent",
    "partitions",
    "weather",
    "crash",
    "restart_every_ms",
    "flush_ms",
    "append_every_ms",
)
"""What is replaced by the value of a calm cluster. A wiped voter needs `auto_join`; the voters and their rules stay."""


@dataclass(frozen=True)
class Failing:
    """A run that breaks an invariant."""

    seed: int
    swarm: Swarm
    faults_ms: int
    failure: str

    def needs(self) -> list[str]:
        """Return the parts in which it differs from a calm cluster."""
        return [part for part in PARTS if getattr(self.swarm, part) != getattr(CALM, part)]


def failing(seed: int, swarm: Swarm, faults_ms: int) -> Failing | None:
    """Return the run if it fails."""
    try:
        run(seed, swarm, faults_ms=faults_ms)
    except AssertionError as error:
        return Failing(seed, swarm, faults_ms, str(error) or "an assertion without a text")
    return None


def minimal(found: Failing) -> Failing:
    """Return a failing run that has no part without which it still fails, and whose time cannot be halved."""
    while smaller := next(_smaller(found), None):
        found = smaller
    return found


def _smaller(found: Failing) -> Iterator[Failing]:
    """Yield failing runs that are smaller by one part, or shorter."""
    swarms = [
        (replace(found.swarm, **{part: getattr(CALM, part)}), found.faults_ms)
        for part in found.needs()
        if part != "auto_join" or not found.swarm.wipes
    ]
    for swarm, faults_ms in (*swarms, (found.swarm, found.faults_ms // 2)):
        for seed in (found.seed, *OTHER_SEEDS):
            if smaller := failing(seed, swarm, faults_ms):
                yield smaller


if __name__ == "__main__":
    for word in sys.argv[1:]:
        first = failing(int(word), draw(int(word)), FAULTS_MS)
        sys.stdout.write(f"seed {word} passes\n" if first is None else f"{minimal(first)}\n")

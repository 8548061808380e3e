"""One run: a phase with faults, in which only safety is checked, then one without, in which the cluster must converge.

`python -m tests.sim.run 17` runs one seed and prints what it drew.
"""

import sys
from dataclasses import dataclass

from tests.sim.cluster import Cluster
from tests.sim.swarm import Swarm, draw

FAULTS_MS = 15_000
"""About seven fetch timeouts: several elections."""

CONVERGENCE_MS = 60_000
"""Far more than elections need without faults; the simulation takes only as long as there are events."""

PROGRESS = 5
"""Offsets that must be committed after the faults."""


@dataclass(frozen=True)
class Outcome:
    """Figures of a run that has kept all invariants."""

    trace: str
    events: int
    simulated_ms: int
    committed: int
    leaders: int
    converged_ms: int


def run(seed: int, swarm: Swarm | None = None, *, faults_ms: int = FAULTS_MS) -> Outcome:
    """Run one seed; a broken invariant is an AssertionError."""
    cluster = Cluster(seed, swarm or draw(seed))
    scheduler = cluster.scheduler
    cluster.start_all()
    cluster.schedule_work()
    cluster.schedule_faults()
    scheduler.run_until(faults_ms)
    cluster.end_faults()
    healed_ms, goal = scheduler.now_ms, cluster.checks.committed_end + PROGRESS
    converged = scheduler.run_until(healed_ms + CONVERGENCE_MS, done=lambda: cluster.has_converged(goal))
    states = [(host.id, host.node and (host.node.state, host.node.log)) for host in cluster.hosts.values()]
    assert converged, ("Q16", goal, states)
    checks = cluster.checks
    return Outcome(
        scheduler.trace_hash(),
        scheduler.events,
        scheduler.now_ms,
        checks.committed_end,
        len(checks.leaders),
        scheduler.now_ms - healed_ms,
    )


if __name__ == "__main__":
    for word in sys.argv[1:]:
        sys.stdout.write(f"{draw(int(word))}\n{run(int(word))}\n")

"""One run of the whole controller: a phase with faults, in which only safety is checked, then one without, in which all must settle.

`python -m tests.sim.kraft.run 17` runs one seed and prints what it drew and what it did.
"""

import logging
import math
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any
from unittest.mock import patch

from controller_core.metadata import payloads
from controller_core.shell.kraft import follower
from controller_core.shell.kraft.active_term import ActiveTerm
from tests.sim.kraft.cluster import KRaftCluster
from tests.sim.kraft.controller_host import ControllerHost
from tests.sim.kraft.swarm import Wishes, draw

FAULTS_MS = 8_000
"""Several sessions of brokers, and an election or two of the quorum."""

SETTLING_MS = 60_000
"""Far more than sessions, elections and moves take without faults."""

RECOVERY_MS = 2_000
"""Interval of what persons do after the faults."""


@dataclass(frozen=True)
class Outcome:
    """Figures of a run that has kept all invariants."""

    trace: str
    simulated_ms: int
    settled_ms: int
    committed: int
    terms: int
    handed_over_moves: int
    """Moves that were running when another controller became active."""
    rises: int
    """Rises of metadata.version in mid-run."""
    loaded_snapshots: int
    """Snapshots that a restarted or late controller has loaded."""
    records: tuple[tuple[str, int], ...]
    """Committed records by type."""


def run(seed: int, wishes: Wishes | None = None, *, faults_ms: int = FAULTS_MS) -> Outcome:
    """Run one seed; a broken invariant is an AssertionError."""
    chosen = wishes or draw(seed)
    with _simulated(chosen.max_records):
        cluster = KRaftCluster(seed, chosen)
        scheduler, metadata = cluster.scheduler, cluster.metadata
        cluster.start_all()
        cluster.schedule_work()
        cluster.schedule_faults()
        for broker in cluster.brokers.values():
            broker.start()
        scheduler.run_until(faults_ms)
        cluster.end_faults()
        healed_ms = scheduler.now_ms
        scheduler.every(RECOVERY_MS, cluster.recover)
        is_settled = scheduler.run_until(healed_ms + SETTLING_MS, done=cluster.has_settled)
        assert is_settled, ("does not settle", cluster.metadata.image, cluster.checks.committed_end)
        metadata.settled()
    return Outcome(
        scheduler.trace_hash(),
        scheduler.now_ms,
        scheduler.now_ms - healed_ms,
        cluster.checks.committed_end,
        metadata.terms,
        metadata.handed_over_moves,
        metadata.rises,
        sum(host.loaded_snapshots for host in cluster.controllers),
        tuple(sorted(metadata.records.items())),
    )


@contextmanager
def _simulated(max_records: int) -> Iterator[None]:
    """Let batches be small, note which are of one decision, count decisions, and let nothing depend on how long a computation takes."""
    append, process = ActiveTerm._append_parts, ActiveTerm.process

    def noted(term: ActiveTerm, *parts: Any, **options: Any) -> int:
        begin = append(term, *parts, **options)
        host = term._quorum
        assert isinstance(host, ControllerHost)
        host.cluster.metadata.appended(term, begin)
        return begin

    def counted(term: ActiveTerm, *begin: Any) -> Any:
        host = term._quorum
        assert isinstance(host, ControllerHost)
        host.cluster.scheduler.step()
        return process(term, *begin)

    with (
        patch.object(follower, "SLICE_S", math.inf),
        patch.object(payloads, "MAX_RECORDS", max_records),
        patch.object(ActiveTerm, "_append_parts", noted),
        patch.object(ActiveTerm, "process", counted),
    ):
        yield


if __name__ == "__main__":
    logging.disable(logging.WARNING)
    for word in sys.argv[1:]:
        sys.stdout.write(f"{draw(int(word))}\n{run(int(word))}\n")

"""A store that answers 503, or not in time, once at each operation; and one that lists new files late.

Hadoop's clients retry by themselves; here every answer is final. Either the run goes on, or it ends with one sentence (`AnalyticsError`),
and the next run gives the results of one run over all samples.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from time import sleep

from balance_analytics.jobs.problems import AnalyticsError
from bench.soaking.balance.kills import PROGRESS, short, wrong_after_kill
from bench.soaking.balance.results import read_results
from bench.soaking.balance.scenario import Prepared
from bench.soaking.balance.store import HALT, FaultyStore

MAX_OPERATIONS = 2000
"""Reads included, a run has some hundreds."""

LATE_MS = 1500
"""Longer than the pause between two listings of the analytics."""

Show = Callable[[str], None]


def refuse_everywhere(prepared: Prepared, faults: FaultyStore, fault: str, show: Show) -> int:
    """Refuse each operation once, reads included except with `HALT`; show counts, and return the number of differences."""
    scenario = prepared.scenario
    ends: Counter[str] = Counter()
    differences = 0
    for at in range(1, MAX_OPERATIONS):
        scenario.reset()
        faults.arm(scenario.folder, fault, at, reads=fault != HALT)
        wrong = []
        try:
            scenario.run(scenario.stages)
            end = "went on"
        except AnalyticsError:
            end = "ended with a sentence"
        except Exception as error:  # noqa: BLE001 - any other exception is a defect
            end = "failed"
            wrong = [f"{type(error).__name__}: {str(error)[:200]}"]
        operation, reached = short(faults.last, str(scenario.folder)), faults.count >= at
        faults.disarm()
        if fault == HALT:
            wrong += wrong_after_kill(read_results(scenario.folder), prepared)
        if not reached:
            break
        ends[end] += 1
        scenario.run(scenario.following)
        wrong += read_results(scenario.folder).differences(prepared.expected, scenario.files)
        for difference in wrong:
            show(f"  DIFFERENT: {difference}, {fault} at operation {at}: {operation}")
        differences += len(wrong)
        if at % PROGRESS == 0:
            show(f"{scenario.title}: {fault} at {at} operations so far, {differences} differences")
    counted = ", ".join(f"{count} {end}" for end, count in sorted(ends.items()))
    show(f"{scenario.title}: {fault} at {ends.total()} operations: {counted}; {differences} differences")
    return differences


def list_late(prepared: Prepared, faults: FaultyStore, show: Show) -> int:
    """Run while each new file is listed late, by the run that wrote it and by the next one. Return the number of differences."""
    scenario = prepared.scenario
    faults.list_late(LATE_MS)
    try:
        scenario.run(scenario.stages)
        scenario.run(scenario.following)
    finally:
        faults.list_late(0)
    wrong = read_results(scenario.folder).differences(prepared.expected, scenario.files)
    sleep(LATE_MS / 1000)
    for difference in wrong:
        show(f"  DIFFERENT: {difference}, files listed {LATE_MS} ms late")
    show(f"{scenario.title}: files listed {LATE_MS} ms late: 2 runs, {len(wrong)} differences")
    return len(wrong)

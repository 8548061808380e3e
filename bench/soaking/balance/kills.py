"""SIGKILL of a driver at each of its file operations, one after the other until a run ends without.

After each kill readers must see the results of the run before or those of the killed one, whole; and after the next run those of one run
over all samples. Between two operations nothing in the storage changes, so that these are all moments at which a kill matters.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from bench.soaking.balance import samples
from bench.soaking.balance.driver import Driven, drive
from bench.soaking.balance.results import Results, read_results
from bench.soaking.balance.scenario import Prepared
from bench.soaking.balance.store import Settings

MAX_OPERATIONS = 500
"""A run has some 30 to 90; one that has more and more never ends."""

PROGRESS = 20
"""A line after so many operations: a scenario takes up to two hours."""

Show = Callable[[str], None]


def kill_everywhere(prepared: Prepared, settings: Settings, show: Show) -> int:
    """Kill at each operation; show counts, and a line for each difference. Return the number of differences."""
    scenario = prepared.scenario
    kills = differences = 0
    for at in range(1, MAX_OPERATIONS):
        scenario.reset()
        log = scenario.work / f"operations-{at}"
        arguments = scenario.arguments(scenario.stages)
        ended = drive(Driven(settings, arguments, samples.SECOND_RUN_MS, str(scenario.folder), at, str(log)))
        log.unlink()
        wrong = list(wrong_after_kill(read_results(scenario.folder), prepared))
        if ended.killed:
            kills += 1
            scenario.run(scenario.following)
            found = read_results(scenario.folder)
            wrong += [f"{name} after the next run" for name in found.differences(prepared.expected, scenario.files)]
        for error in wrong:
            show(f"  DIFFERENT: {error}, killed at operation {at}: {short(ended.operation, str(scenario.folder))}")
        differences += len(wrong)
        if not ended.killed:
            break
        if at % PROGRESS == 0:
            show(f"{scenario.title}: {kills} kills so far, {differences} differences")
    show(
        f"{scenario.title}: {kills} kills, one at each file operation, {kills + 1} next runs, {differences} differences"
    )
    return differences


def wrong_after_kill(found: Results, prepared: Prepared) -> Iterator[str]:
    """Yield what is neither that of before nor that expected; `moves.json` may be away until the moves are planned again."""
    for name in ("facts", "loads"):
        if getattr(found, name) not in (getattr(prepared.before, name), getattr(prepared.expected, name)):
            yield f"{name} that readers see"
    for name, data in found.files.items():
        if data not in (prepared.before.files.get(name), prepared.expected.files.get(name)):
            yield f"{name} that readers see"


def short(operation: str, folder: str) -> str:
    """Return an operation without the names that each run makes up.

    >>> short("rename /w/facts/v=0a1b2c3d4e5f/part-00000-9b55d80e-299d-4c9a-a1d4-5331567d4e22-c000.parquet", "/w")
    'rename facts/v=*/part-*.parquet'
    """
    text = operation.replace(f"{folder}/", "").removesuffix("\n")
    text = re.sub(r"part-[^/]*\.parquet", "part-*.parquet", text)
    text = re.sub(r"\.spark-staging-[^/]*", ".spark-staging-*", text)
    text = re.sub(r"(attempt|task)_[^/]*", r"\1_*", text)
    return re.sub(r"\b[0-9a-f]{12}\b", "*", text)

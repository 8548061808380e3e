"""A scenario: results of a first run, more samples, and the results that a second run must have whatever happens to it.

The expected results are those of one run over all samples with an empty folder for facts.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from balance_analytics.jobs.main import parser, run
from bench.soaking.balance import samples
from bench.soaking.balance.results import FILES, Results, read_results
from bench.soaking.balance.store import address

FACTS = "facts"
OTHERS = "loads,study,moves,report"
FOLLOWING = "facts,loads,study,moves"
"""After a fault in the stage `facts`; the report follows from the result and the moves."""

GOAL = ("--min-hours", "1", "--min-minutes", "1", "--cluster", "main")


@dataclass(frozen=True)
class Scenario:
    """`scheme` is the kind of storage, `topic` the address of the samples topic, or None where samples are in a folder.

    `stages` are those that get the faults, `following` those of the run after them.
    """

    title: str
    work: Path
    scheme: str
    stages: str
    following: str
    topic: str | None = None

    @property
    def folder(self) -> Path:
        """Samples, facts and output of the run; the same path for all runs, as results name it."""
        return self.work / "run"

    @property
    def files(self) -> tuple[str, ...]:
        """The single files that the following stages write."""
        return FILES if "report" in self.following else ("result.json", "moves.json", "reassignment.json")

    def arguments(self, stages: str) -> list[str]:
        """Return the job's arguments."""
        root = address(self.scheme, self.folder)
        place = self.topic or f"{root}/samples"
        return ["--samples", place, "--facts", f"{root}/facts", "--out", f"{root}/out", "--stage", stages, *GOAL]

    def run(self, stages: str, now_ms: int = samples.SECOND_RUN_MS) -> None:
        """Run stages in this process. Raises `AnalyticsError`."""
        run(parser().parse_args(self.arguments(stages)), now_ms)

    def reset(self) -> None:
        """Put everything back to after the first run, with all samples."""
        shutil.rmtree(self.folder, ignore_errors=True)
        shutil.copytree(self.work / "base", self.folder)


@dataclass(frozen=True)
class Prepared:
    """A scenario with the results of its first run, and those expected after the second."""

    scenario: Scenario
    before: Results
    expected: Results


@contextmanager
def prepared(scenario: Scenario, bootstrap: str | None = None) -> Iterator[Prepared]:
    """Write samples, run twice and yield the scenario after `reset`."""
    folder = scenario.folder
    shutil.rmtree(folder, ignore_errors=True)
    topic = None if scenario.topic is None else scenario.topic.rpartition("/")[2]
    if topic is not None and bootstrap is not None:
        samples.create_topic(bootstrap, topic)
        samples.produce(samples.FIRST, bootstrap, topic)
        folder.mkdir()
    else:
        samples.write_parquet(samples.FIRST, folder / "samples", "first")
    scenario.run("facts,loads,study,moves,report", samples.FIRST_RUN_MS)
    before = read_results(folder)
    if topic is not None and bootstrap is not None:
        samples.produce(samples.MORE, bootstrap, topic)
    else:
        samples.write_parquet(samples.MORE, folder / "samples", "more")
    if "facts" not in scenario.stages:
        scenario.run(FACTS)
        before = read_results(folder)
    folder.rename(scenario.work / "base")
    if topic is None:
        shutil.copytree(scenario.work / "base" / "samples", folder / "samples")
    else:
        folder.mkdir()
    scenario.run("facts,loads,study,moves,report")
    expected = read_results(folder)
    assert before.facts != expected.facts or "facts" not in scenario.stages
    scenario.reset()
    try:
        yield Prepared(scenario, before, expected)
    finally:
        shutil.rmtree(scenario.work / "base")
        shutil.rmtree(folder)

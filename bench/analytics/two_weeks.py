"""Two weeks of hourly facts to loads and a study, in Spark and in one process of polars, on the same two cores (P11).

Both read the same generated Parquet files and compute the same figures: mean, 95th percentile, peak and trend of each partition, bytes in
by broker and hour, disk by broker and hour. Spark runs the shipped job, stages `loads` and `study`; its JVM runs already, as it does in a
driver. The peer is the shortest complete program for these figures, in a process of its own. The last row is the promised one: the growth
of data from 100,000 partitions to 1,000,000, divided by the growth of cost. Spark itself counts shuffled bytes. Several machines, which
Spark is made for, are not measured.
"""

import json
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

from bench.harness import Better, Effort, Row, alternate, duration, promised, side_of, timed
from lab.downloads.cache import cached

NAME = "analytics"
ABOUT = "loads and study of two weeks of hourly facts of 10 k, 100 k and 1 M partitions, compared with polars (P11)"

SIZES = (10_000, 100_000, 1_000_000)
QUICK_SIZES = (1_000, 10_000)
DAYS, QUICK_DAYS = 14, 3
BROKERS = 100
RUNS = 3
LONG_FROM, LONG_RUNS = 1_000_000, 1
"""Runs take many minutes each, so that variation between runs and warm-up are small."""

PEER = "polars, one process, lazy scan"
PEER_TIMEOUT_S = 3600
SETTINGS = {
    "spark.driver.memory": "8g",
    "spark.sql.shuffle.partitions": "64",
    "spark.ui.showConsoleProgress": "false",
    "spark.log.level": "ERROR",
}


def measure(effort: Effort) -> Iterator[Row]:
    """Yield each row when it is measured."""
    sizes, days = (QUICK_SIZES, QUICK_DAYS) if effort.quick else (SIZES, DAYS)
    spark = _session()
    medians = []
    with tempfile.TemporaryDirectory(prefix="analytics-") as name:
        for partitions in sizes:
            facts = _facts(partitions, days)
            ours = timed(partial(_study, facts, Path(name) / "out"))
            if partitions < LONG_FROM:
                ours()  # warm-up: code is generated once, files are in the page cache for both sides
            before = _shuffled(spark)
            runs = effort.runs(RUNS if partitions < LONG_FROM else LONG_RUNS)
            seconds = alternate(ours, partial(_peer, facts, partitions), runs)
            what = f"loads and study of {partitions:,} partitions, {days} days of hours, {BROKERS} brokers"
            row = promised(duration(f"{NAME}.p{partitions}", what, PEER, seconds), "P11")
            medians.append(row.ours.median)
            yield row
            yield _amount(partitions, what, (_shuffled(spark) - before) / runs, _size(facts))
    yield _growth(sizes, medians)


def _growth(sizes: tuple[int, ...], medians: list[float]) -> Row:
    """Return the row of growth: data divided by cost, between the two largest sizes."""
    data, cost = sizes[-1] / sizes[-2], medians[-1] / medians[-2]
    what = f"growth from {sizes[-2]:,} to {sizes[-1]:,} partitions: data, over wall time (peer's column)"
    row = Row(f"{NAME}.growth", what, "growth of cost", "times", Better.HIGHER, side_of([data]), side_of([cost]), 1)
    return promised(row, "P11", 1.0)


def _amount(partitions: int, what: str, shuffled: float, size: int) -> Row:
    name, peer = f"{NAME}.shuffle.p{partitions}", "the Parquet files that are read"
    return promised(
        Row(
            name,
            f"bytes shuffled: {what}",
            peer,
            "MB",
            Better.LOWER,
            side_of([shuffled / 1e6]),
            side_of([size / 1e6]),
            1,
        ),
        "P11",
    )


def _session() -> Any:
    from balance_analytics.jobs.session import session

    return session(SETTINGS)


def _facts(partitions: int, days: int) -> Path:
    """Return the folder of the facts, which are generated once."""
    from lab.generated_load import LoadSpec, lay_out
    from lab.generated_load.hourly_facts import write_day_facts

    spec = LoadSpec(partitions=partitions, topics=partitions // 100, brokers=BROKERS, days=days, hot=50)
    return cached(f"generated-facts-2-{partitions}-{days}", lambda folder: write_day_facts(lay_out(spec), folder))


def _study(facts: Path, out: Path) -> None:
    from balance_analytics.jobs.main import parser, run

    shutil.rmtree(out, ignore_errors=True)
    options = parser().parse_args(["--facts", str(facts), "--out", str(out), "--stage", "loads,study"])
    result = run(options, 0).result
    assert result is not None, "the study ran"


def _peer(facts: Path, partitions: int) -> float:
    """Run the peer and return its own seconds, without the start of Python: Spark's JVM has started as well."""
    command = [sys.executable, "-m", "bench.analytics.two_weeks_peer", str(facts), str(partitions)]
    done = subprocess.run(command, check=True, capture_output=True, text=True, timeout=PEER_TIMEOUT_S)
    return float(json.loads(done.stdout.splitlines()[-1])["seconds"])


def _shuffled(spark: Any) -> float:
    """Return the bytes that this application has written to shuffles so far."""
    store = spark.sparkContext._jsc.sc().statusStore()  # noqa: SLF001 - Python has no other way to it
    statuses = store.executorList(False)
    return float(sum(statuses.apply(at).totalShuffleWrite() for at in range(statuses.size())))


def _size(folder: Path) -> int:
    return sum(file.stat().st_size for file in folder.rglob("*.parquet"))

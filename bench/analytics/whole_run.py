"""A whole run of the analytics with one new day, as a user waits for it: from samples to `report.html`, in a process of its own (P11).

The window is 14 days. Facts of 13 days are stored, as earlier runs leave them; the samples of the last day are new: one a minute. A run has
all stages and begins with the start of Python and of Spark's session. It is repeated with nothing new, when it must read no samples, and
with the samples of the new day in the samples topic of a real broker. The peer is a program of polars that computes the same facts and
loads from the same files; it plans no moves and draws no report. Sums of both must agree.

What each run needed is stored with its time: processor time of all its processes, bytes shuffled, Spark's jobs, scans and rows read. One
machine is measured; several machines, which Spark is made for, are not.
"""

import datetime as dt
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import pyarrow.compute as pc
import pyarrow.parquet as pq

from balance_analytics.model.manifest import FOLDER as MANIFESTS
from balance_analytics.model.manifest import Manifest, decode
from bench.harness import Effort, Row, duration, promised, side_of
from bench.harness import limited as limit_row
from lab.downloads.cache import cache_folder, cached
from lab.generated_load import Layout, LoadSpec, lay_out

NAME = "night"
ABOUT = "a run of the analytics from samples to the report, one new day of 10 k and 100 k partitions, with polars (P11)"

SIZES, QUICK_SIZES = (10_000, 100_000), (500,)
KAFKA_SIZE = 10_000
BROKERS = 100
DAYS = 14
RUNS, LONG_RUNS = 3, 1
LONG_FROM = 100_000
"""A run takes minutes: start and warm-up are a small part."""

LIMITS_S = {10_000: 75.0, 100_000: 600.0}
NOTHING_NEW_LIMIT_S = 20.0
KAFKA_AT_LEAST = 0.5
"""The promised limits. From the topic, a run takes at most twice the time: it parses the samples' JSON and stores them as Parquet."""

PEER = "polars, one process: the same facts and loads, without moves and report"
NOTHING_NEW_PEER = "polars, one process: loads of the stored facts, without moves and report"
TIMEOUT_S = 3600

NEW_DAY_READ_S, DAY_S = 1200, 86_400
"""A run starts 20 minutes after midnight, when the sampler has compacted the day."""

TOLERANCE = 1e-6
"""Relative difference of sums of floating point numbers, which both programs add in another order; rates are rounded to 0.001 bytes/s."""


@dataclass(frozen=True)
class Prepared:
    """`folder` has `prior` (stored facts), `samples` and `first_facts` (the 13 days as generated, without the manifest of a run)."""

    layout: Layout
    folder: Path

    @property
    def partitions(self) -> int:
        """Partitions of the cluster."""
        return self.layout.spec.partitions

    @property
    def midnight_s(self) -> int:
        """The start of the new day."""
        return self.layout.spec.start_s + (DAYS - 1) * DAY_S

    @property
    def now_ms(self) -> int:
        """The time of the measured run."""
        return (self.midnight_s + DAY_S + NEW_DAY_READ_S) * 1000

    @property
    def settings(self) -> dict[str, str]:
        """Spark's settings: the product's own for one process, and the chart's sum of heaps for large clusters."""
        heap_mib = 768 + self.partitions // 4000 + 2 * 1024 + self.partitions // 2000
        quiet = {"spark.ui.showConsoleProgress": "false", "spark.log.level": "ERROR"}
        return {**quiet, "spark.driver.memory": f"{heap_mib}m"} if self.partitions >= LONG_FROM else quiet


@dataclass(frozen=True)
class Measured:
    """One run: `seconds` from the start of its process to its end, and Spark's counters (`bench.analytics.counted_run`)."""

    seconds: float
    counters: dict[str, float]


def measure(effort: Effort) -> Iterator[Row]:
    """Yield each row when it is measured."""
    for partitions in QUICK_SIZES if effort.quick else SIZES:
        runs = effort.runs(RUNS if partitions < LONG_FROM else LONG_RUNS)
        prepared = prepare(partitions)
        with tempfile.TemporaryDirectory(prefix="analytics-run-", dir=cache_folder()) as name:
            parquet: list[Measured] = []
            for row, measured in _from_parquet(prepared, Path(name), runs):
                parquet = parquet or measured
                yield row
            if partitions == KAFKA_SIZE or effort.quick:
                yield from _from_kafka(prepared, Path(name), parquet)


def prepare(partitions: int) -> Prepared:
    """Return stored facts and samples of a cluster, which are generated once."""
    spec = LoadSpec(partitions=partitions, topics=max(5, partitions // 100), brokers=BROKERS, days=DAYS, hot=50, gaps=0)
    layout = lay_out(spec)
    return Prepared(layout, cached(f"whole-run-1-{partitions}-{DAYS}", lambda folder: _lay(Prepared(layout, folder))))


def _lay(new: Prepared) -> None:
    """Fill a folder: facts of 13 days, a run for the last hours of the day before the new one, then the samples of the new day."""
    from lab.generated_load.compacted_days import write_end_of_day_before, write_facts_before, write_last_day

    write_facts_before(new.layout, new.folder / "first_facts")
    _copy(new.folder / "first_facts", new.folder / "prior")
    write_end_of_day_before(new.layout, new.folder / "samples")
    now_ms = (new.midnight_s + NEW_DAY_READ_S) * 1000
    stages = ("--stage", "facts")
    run(new, str(new.folder / "samples"), new.folder / "prior", new.folder / "out", *stages, now_ms=now_ms)
    shutil.rmtree(new.folder / "out")
    write_last_day(new.layout, new.folder / "samples")


def _from_parquet(prepared: Prepared, folder: Path, runs: int) -> Iterator[tuple[Row, list[Measured]]]:
    """Yield the rows of runs over Parquet, with the runs of each."""
    new, unchanged, new_peer, unchanged_peer = [], [], [], []
    samples = prepared.folder / "samples"
    hollow = _hollow(samples, folder / "hollow")
    for _ in range(runs):
        facts, out = _fresh(prepared.folder / "prior", folder)
        new.append(run(prepared, str(samples), facts, out))
        peer = _peer(prepared, prepared.folder / "prior", folder / "peer", with_new_day=True)
        new_peer.append(peer["seconds"])
        _check(prepared, facts, out, peer)
        unchanged.append(run(prepared, str(hollow), facts, out))
        peer = _peer(prepared, facts, folder / "peer", with_new_day=False)
        unchanged_peer.append(peer["seconds"])
        _check(prepared, facts, out, peer)
    what = f"samples to report.html, {prepared.partitions:,} partitions, {DAYS} days of which one is new"
    yield from _rows(prepared, "", what, PEER, (new, new_peer), LIMITS_S.get(prepared.partitions))
    what = f"samples to report.html, {prepared.partitions:,} partitions, {DAYS} days, nothing new"
    limit_s = NOTHING_NEW_LIMIT_S if prepared.partitions == min(SIZES) else None
    yield from _rows(prepared, "nothing_new.", what, NOTHING_NEW_PEER, (unchanged, unchanged_peer), limit_s)


def _rows(
    prepared: Prepared,
    kind: str,
    what: str,
    peer: str,
    runs: tuple[list[Measured], list[float]],
    limit_s: float | None,
) -> Iterator[tuple[Row, list[Measured]]]:
    """Yield the row of a kind of runs compared with the peer, and the one compared with the promised limit."""
    ours, theirs = runs
    name = f"{kind}p{prepared.partitions}"
    seconds = [run.seconds for run in ours]
    row = promised(duration(f"{NAME}.{name}", what, peer, (seconds, theirs)), "P11")
    yield replace(row, also=also(ours)), ours
    if limit_s is not None:
        yield limit_row(f"{NAME}.limit.{name}", what, "s", side_of(seconds), limit_s, "P11"), ours


def _from_kafka(prepared: Prepared, folder: Path, parquet: list[Measured]) -> Iterator[Row]:
    """Yield the row of runs over the samples topic, compared with the runs over Parquet."""
    from bench.analytics.samples_in_kafka import HOURS_BEFORE, TOPIC, broker, produce
    from lab.peers.spark import spark_kafka_jars

    jars = {"spark.jars": ",".join(map(str, spark_kafka_jars()))}
    begin = (DAYS - 1) * 24
    prior, runs = folder / "prior", []
    with broker() as bootstrap:
        place = f"kafka://{bootstrap}/{TOPIC}"
        _copy(prepared.folder / "first_facts", prior)
        produce(bootstrap, prepared.layout, begin - HOURS_BEFORE, begin)
        now_ms = (prepared.midnight_s + NEW_DAY_READ_S) * 1000
        run(prepared, place, prior, folder / "before", "--stage", "facts", now_ms=now_ms, settings=jars)
        produce(bootstrap, prepared.layout, begin, begin + 24)
        for _ in parquet:
            facts, out = _fresh(prior, folder)
            # The brokers of the generated load are not those of this cluster, so that moves are planned without asking it.
            rest = (
                "--stage",
                "facts",
                "then",
                "--facts",
                str(facts),
                "--out",
                str(out),
                "--stage",
                "loads,study,moves,report",
            )
            runs.append(run(prepared, place, facts, out, *rest, settings=jars))
            _check(prepared, facts, out, {})
    what = f"samples topic to report.html, {prepared.partitions:,} partitions, {DAYS} days of which one is new"
    seconds = [run.seconds for run in runs], [run.seconds for run in parquet]
    row = duration(f"{NAME}.kafka.p{prepared.partitions}", what, "the same run over samples in Parquet", seconds)
    yield replace(promised(row, "P11", KAFKA_AT_LEAST), also=also(runs))


def run(
    prepared: Prepared,
    samples: str,
    facts: Path,
    out: Path,
    *arguments: str,
    now_ms: int | None = None,
    settings: dict[str, str] | None = None,
) -> Measured:
    """Run the analytics once, in a process of its own."""
    spark = json.dumps({**prepared.settings, **(settings or {})})
    places = ["--samples", samples, "--facts", str(facts), "--out", str(out)]
    module = [sys.executable, "-m", "bench.analytics.counted_run", str(now_ms or prepared.now_ms), spark]
    began_s = time.perf_counter()
    done = subprocess.run(
        [*module, *places, *arguments], check=False, capture_output=True, text=True, timeout=TIMEOUT_S
    )
    took_s = time.perf_counter() - began_s
    if done.returncode:
        raise AssertionError(f"the run failed: {done.stderr[-2000:]}")
    return Measured(took_s, json.loads(done.stdout.splitlines()[-1]))


def also(runs: Sequence[Measured]) -> dict[str, float]:
    """Return the medians of the counters of some runs, by what they are and their unit."""

    def median(name: str) -> float:
        return side_of([run.counters[name] for run in runs]).median

    return {
        "processor time, s": median("cpu_seconds"),
        "shuffled, bytes": median("shuffled_bytes"),
        "jobs, jobs": median("jobs"),
        "scans, scans": median("scans"),
        "read, rows": median("records_read"),
        "memory of the driver's Python, bytes": median("driver_python_bytes"),
    }


def _fresh(prior: Path, folder: Path) -> tuple[Path, Path]:
    """Return a copy of stored facts, and where the output goes; those of the run before are deleted."""
    facts, out = folder / "facts", folder / "out"
    for old in (facts, out):
        shutil.rmtree(old, ignore_errors=True)
    _copy(prior, facts)
    return facts, out


def _copy(source: Path, target: Path) -> None:
    """Copy a folder by hard links: no program here changes a file in place."""
    shutil.copytree(source, target, copy_function=os.link)


def _hollow(samples: Path, target: Path) -> Path:
    """Return a folder with files of the same names and sizes, without content: a run that reads a sample fails."""
    for file in samples.rglob("*.parquet"):
        empty = target / file.relative_to(samples)
        empty.parent.mkdir(parents=True, exist_ok=True)
        with empty.open("wb") as output:
            output.truncate(file.stat().st_size)
    return target


def _peer(prepared: Prepared, facts: Path, folder: Path, *, with_new_day: bool) -> dict[str, float]:
    """Run the peer over stored facts, and over the new day's samples or not."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    listed = folder / "stored.txt"
    listed.write_text("\n".join(_day_files(facts)), encoding="utf-8")
    days = (prepared.midnight_s, prepared.midnight_s - DAY_S) if with_new_day else ()
    globs = [str(prepared.folder / "samples" / f"date={_date(at_s)}" / "*.parquet") for at_s in days]
    size = [str(prepared.midnight_s // 3600), str(prepared.partitions)]
    command = [sys.executable, "-m", "bench.analytics.whole_run_peer", str(listed), str(folder), *size, *globs]
    done = subprocess.run(command, check=True, capture_output=True, text=True, timeout=TIMEOUT_S)
    return dict(json.loads(done.stdout.splitlines()[-1]))


def _check(prepared: Prepared, facts: Path, out: Path, peer: dict[str, float]) -> None:
    """Raise AssertionError unless the report is there, and sums of the facts and loads are those of the peer."""
    assert (out / "report.html").is_file(), "the run has written its report"
    found = {"partitions": 0.0, "mean": 0.0, "p95": 0.0, "messages": 0.0}
    for file in _newest(out / "loads").parts["partitions"]:
        loads = pq.read_table(out / "loads" / file.path, columns=["bytes_in_mean", "bytes_in_p95"])
        found["partitions"] += len(loads)
        found["mean"] += pc.sum(loads["bytes_in_mean"]).as_py()
        found["p95"] += pc.sum(loads["bytes_in_p95"]).as_py()
    for file in _newest(facts).parts[_date(prepared.midnight_s)]:
        messages = pq.ParquetFile(facts / file.path).read(columns=["messages_in"])["messages_in"]
        found["messages"] += pc.sum(pc.list_flatten(messages)).as_py()
    for name in found.keys() & peer.keys():
        assert abs(found[name] - peer[name]) <= TOLERANCE * peer[name], (name, found[name], peer[name])


def _day_files(facts: Path) -> list[str]:
    manifest = _newest(facts)
    return [str(facts / file.path) for day in manifest.days() for file in manifest.parts[day]]


def _newest(root: Path) -> Manifest:
    path = max((root / MANIFESTS).glob("*.json"))
    return decode(path.name, path.read_text(encoding="utf-8"))


def _date(at_s: int) -> str:
    return dt.datetime.fromtimestamp(at_s, dt.UTC).date().isoformat()

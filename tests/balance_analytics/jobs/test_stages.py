"""All five stages over samples of one hour, as a schedule runs them: from samples to a proposal, a report and a termination message."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from balance_analytics.jobs.main import main, parser, run
from balance_analytics.jobs.options import options_of
from balance_analytics.jobs.problems import AnalyticsError
from balance_analytics.model.column import ddl
from balance_analytics.model.loads import BROKER_HOURS_PART, PARTITIONS_PART
from balance_analytics.model.sample_rows import SAMPLE_ROWS
from kafka_operator.resources.reassignment import Assignment
from lab.peers.spark import INTERPRETED
from tests.balance_analytics.jobs.test_facts import sample
from tests.balance_analytics.published import rows
from tests.balance_analytics.shared_spark import SharedSpark

START_MS = int(datetime(2026, 3, 2, 9, tzinfo=UTC).timestamp() * 1000)
NOW_MS = START_MS + 600_000
EVERY_MS = 10_000
GOAL = ("--min-hours", "1", "--min-minutes", "1", "--round-seconds", "10", "--cluster", "main", "--namespace", "kafka")

pytestmark = [pytest.mark.java, pytest.mark.timeout(600)]


def samples(minutes: int) -> list[tuple[Any, ...]]:
    """Samples of twelve partitions every ten seconds; broker 1 leads all but one, broker 3 has one replica."""
    return [
        sample(
            0,
            1000 + number * 100,
            "orders",
            partition=partition,
            sampled_at_ms=START_MS + number * EVERY_MS + 100,
            round_ms=START_MS + number * EVERY_MS,
            replicas=[1, 2] if partition else [3, 1],
            isr=[1, 2] if partition else [3, 1],
            leader=1 if partition else 3,
        )
        for partition in range(12)
        for number in range(minutes * 60_000 // EVERY_MS + 1)
    ]


@pytest.fixture(scope="module")
def folder(shared_spark: SharedSpark, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with four minutes of samples."""
    spark = shared_spark.get()
    made = tmp_path_factory.mktemp("stages")
    frame = spark.createDataFrame(samples(4), ddl(SAMPLE_ROWS)).selectExpr("*", "DATE'2026-03-02' AS date")
    frame.write.partitionBy("date").parquet(str(made / "samples"))
    (made / "termination-log").touch()
    return made


def command_line(folder: Path, *more: str) -> list[str]:
    """The command line of a schedule."""
    places = ["--samples", f"{folder}/samples", "--facts", f"{folder}/facts", "--out", f"{folder}/out"]
    return [*places, "--termination-log", f"{folder}/termination-log", *GOAL, *more]


@pytest.fixture(scope="module")
def files(shared_spark: SharedSpark, folder: Path) -> dict[str, bytes]:
    """The files of a run of all stages, with generated code, as users run them."""
    spark = shared_spark.get()
    with generated_code(spark):
        ran = run(options_of(command_line(folder)), NOW_MS)
    assert ran.failure is None
    return written(folder)


@contextmanager
def generated_code(spark: SparkSession) -> Iterator[None]:
    """Generate code for queries, as Spark does by default; the session of these tests interprets expressions."""
    for name in INTERPRETED:
        spark.conf.unset(name)
    assert spark.conf.get("spark.sql.codegen.wholeStage") == "true"
    yield
    for name, value in INTERPRETED.items():
        spark.conf.set(name, value)


def written(folder: Path) -> dict[str, bytes]:
    """All files of the run that are not tables."""
    return {path.name: path.read_bytes() for path in (folder / "out").iterdir() if path.suffix not in {"", ".crc"}}


def rows_of_tables(folder: Path) -> dict[str, list[str]]:
    """The rows of the loads that were written as tables."""
    parts = (PARTITIONS_PART, BROKER_HOURS_PART)
    return {part: sorted(map(str, rows(folder / "out" / "loads", part))) for part in parts}


@pytest.mark.shows("E11")
def test_the_moves_are_a_reassignment_that_needs_approval(files: dict[str, bytes]) -> None:
    """The result is a Reassignment in state Proposed, with before and after figures for every broker."""
    figures, reassignment = json.loads(files["reassignment.json"])["items"]

    assert (reassignment["spec"]["approval"], reassignment["spec"]["clusterRef"]) == ("Required", {"name": "main"})
    assert (reassignment["metadata"]["namespace"], figures["kind"]) == ("kafka", "ConfigMap")
    assert reassignment["metadata"]["name"].startswith("main-balance-")
    brokers = json.loads(figures["data"]["figures.json"])["brokers"]
    leaders = {broker["id"]: broker["leaders"] for broker in brokers}
    assert [leaders[broker]["before"] for broker in (1, 2, 3)] == [11, 0, 1]
    assert [leaders[broker]["after"] for broker in (1, 2, 3)] == [4, 4, 4]


def test_rates_are_those_of_the_sampled_minutes(files: dict[str, bytes]) -> None:
    """An hour with four sampled minutes has their rate: 100 messages of 100 bytes every ten seconds."""
    broker = next(broker for broker in json.loads(files["result.json"])["brokers"] if broker["broker"] == 1)

    assert pytest.approx(11 * 1000.0) == broker["bytes_in_mean"]


def test_the_report_and_the_summary_are_written(files: dict[str, bytes]) -> None:
    """One page, its pictures and metrics, and the summary."""
    assert {"report.html", "before-after.png", "heat-map.png", "summary.json", "metrics.prom"} <= files.keys()
    summary = json.loads(files["summary.json"])
    assert summary["partitions"] == 12
    assert summary["movedPartitions"] > 0
    assert summary["skewAfter"]["leaders"] < summary["skewBefore"]["leaders"]
    assert summary["reassignment"] is None  # --propose is not set


def test_a_second_run_writes_the_same_without_generated_code(folder: Path, files: dict[str, bytes]) -> None:
    """All five stages compute everything again: files are equal byte for byte, tables row for row."""
    tables = rows_of_tables(folder)
    run(options_of(command_line(folder, "--recompute", "2026-03-02")), NOW_MS)

    assert files == written(folder)
    assert all(tables.values())
    assert tables == rows_of_tables(folder)


def test_the_termination_message_is_the_summary(
    folder: Path, files: dict[str, bytes], capsys: pytest.CaptureFixture[str]
) -> None:
    """Within the size that Kubernetes keeps. A file that does not exist is not created."""
    assert files
    assert main(command_line(folder, "--stage", "report")) == 0
    message = json.loads((folder / "termination-log").read_text())

    assert (message["kind"], message["report"]) == ("BalanceSummary", f"{folder}/out/report.html")
    assert f"the report is {folder}/out/report.html" in capsys.readouterr().out
    assert main(command_line(folder, "--stage", "report", "--termination-log", f"{folder}/nowhere")) == 0
    assert not (folder / "nowhere").exists()


def test_without_needed_moves_nothing_is_proposed(folder: Path, files: dict[str, bytes]) -> None:
    """The run reports it, and deletes the previous run's Reassignment, so that it is not applied."""
    ran = run(options_of(command_line(folder, "--stage", "moves,report", "--exclude-topics", "orders")), NOW_MS)
    now = written(folder)

    assert ran.messages == ["nothing needs to move, so nothing is proposed"]
    assert "reassignment.json" not in now
    assert b"No moves are needed" in now["report.html"]
    run(options_of(command_line(folder, "--stage", "moves,report")), NOW_MS)
    assert files == written(folder)


def test_a_failed_proposal_fails_the_run_and_its_files_are_written(
    folder: Path, files: dict[str, bytes], capsys: pytest.CaptureFixture[str]
) -> None:
    """The last line of the output and the termination message contain the error."""
    (folder / "kubeconfig").write_text(
        json.dumps(
            {
                "current-context": "a",
                "contexts": [{"name": "a", "context": {"cluster": "a", "user": "a"}}],
                "clusters": [{"name": "a", "cluster": {"server": "http://127.0.0.1:9"}}],
                "users": [{"name": "a", "user": {}}],
            }
        )
    )
    status = main(command_line(folder, "--stage", "moves,report", "--propose", "--kubeconfig", f"{folder}/kubeconfig"))

    last = capsys.readouterr().err.splitlines()[-1]
    assert status == 1
    assert "the API server failed to list reassignments in namespace kafka" in last
    assert "list reassignments" in (folder / "termination-log").read_text()
    assert files == written(folder)


def test_a_stage_without_input_names_the_stage_that_writes_it(spark: SparkSession, tmp_path: Path) -> None:
    """The stage `study` writes result.json."""
    assert spark is not None
    base = ["--facts", f"{tmp_path}/facts", "--out", f"{tmp_path}/out", "--stage"]
    for stage in ("moves", "report"):
        with pytest.raises(AnalyticsError, match=r"no result\.json yet under .*: run the stage `study` first"):
            run(parser().parse_args([*base, stage]), NOW_MS)


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (["--window-days", "91"], "is not a number from 1 to 90"),
        (["--stage", "dance"], "there is no stage dance"),
        (["--resources", "cpu"], "there is no resource cpu"),
        (["--max-bytes", "much"], "is not a number of bytes"),
        (["--exclude-brokers", "1,x"], "is not a list of broker ids"),
        (["--cluster", "A B"], "is not a valid name of a Kubernetes object"),
        (["--namespace", "team.a"], "is not a valid name of a Kubernetes namespace"),
        (["--propose"], "--propose needs --cluster and --namespace"),
        (["--propose", "--stage", "study"], "--propose needs the stage moves"),
        (["--approve"], "--approve needs --propose"),
    ],
)
def test_invalid_arguments_are_rejected(more: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Exit status 2, before anything is started."""
    with pytest.raises(SystemExit) as ended:
        options_of(["--facts", "f", "--out", "o", *more])

    assert ended.value.code == 2
    assert message in capsys.readouterr().err


def test_moves_have_the_shape_of_a_plan(files: dict[str, bytes]) -> None:
    """Each partition at most once, with as many replicas as before."""
    plan = json.loads(files["reassignment.json"])["items"][-1]["spec"]["plan"]
    moves = [Assignment((move["topic"], move["partition"]), tuple(move["replicas"])) for move in plan]

    assert len(moves) == len({move.partition for move in moves})
    assert {len(set(move.replicas)) for move in moves} == {2}

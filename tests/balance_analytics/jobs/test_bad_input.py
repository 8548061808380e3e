"""Bad input ends in a message that names it and what to do, or is left out by name while the rest continues."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from balance_analytics.jobs.files import Table, without_corrupt
from balance_analytics.jobs.main import main, parser, run
from balance_analytics.jobs.problems import AnalyticsError, LeftOuts, sentence_of
from balance_analytics.model.results import Result
from balance_analytics.model.sample_rows import SAMPLE_ROWS
from balance_analytics.sampling.parquet_compaction import Compactor
from balance_analytics.sampling.parquet_writer import schema_of
from lab.generated_load import LoadSpec, lay_out
from lab.generated_load.hourly_facts import write_facts

pytestmark = [pytest.mark.java, pytest.mark.timeout(600), pytest.mark.usefixtures("spark")]

LOAD = LoadSpec(seed=5, partitions=12, topics=3, brokers=3, days=3, hot=0, outages=0, resets=0)
NOW_MS = (LOAD.start_s + LOAD.hours * 3600) * 1000


def study(folder: Path, *more: str) -> Result | None:
    """Run with facts and output in a folder."""
    return run(parser().parse_args(["--facts", f"{folder}/facts", "--out", f"{folder}/out", *more]), NOW_MS).result


def test_an_empty_folder_of_samples_names_what_to_start(tmp_path: Path) -> None:
    """Neither a folder, nor anything in it."""
    with pytest.raises(AnalyticsError, match=r"no samples yet at .*: start `steward sampler`"):
        study(tmp_path, "--samples", f"{tmp_path}/nothing")
    (tmp_path / "empty").mkdir()
    with pytest.raises(AnalyticsError, match=r"no samples yet at .*: start `steward sampler`"):
        study(tmp_path, "--samples", f"{tmp_path}/empty")


def test_stages_ask_for_what_they_read(tmp_path: Path) -> None:
    """By the name of the stage that writes it."""
    with pytest.raises(AnalyticsError, match=r"no facts yet at .*: run the stage `facts` first"):
        study(tmp_path, "--stage", "loads")
    with pytest.raises(AnalyticsError, match=r"no loads yet under .*: run the stage `loads` first"):
        study(tmp_path, "--stage", "study")
    with pytest.raises(AnalyticsError, match=r"--samples is missing"):
        study(tmp_path)


def test_a_corrupt_file_is_named_and_the_rest_goes_on(tmp_path: Path) -> None:
    """One day's file is no Parquet at all, another was cut short."""
    write_facts(lay_out(LOAD), tmp_path / "facts")
    files = sorted((tmp_path / "facts").rglob("*.parquet"))
    files[0].write_bytes(b"no Parquet" * 40)
    (files[1].parent / "cut.parquet").write_bytes(files[1].read_bytes()[:2000])

    result = study(tmp_path, "--stage", "loads,study")

    assert result is not None
    named = [note.what for note in result.left_out if "corrupt" in note.what]
    assert len(named) == 2
    assert any("date=2026-01-05" in note for note in named)
    assert (result.window.hours_seen, result.partitions) == (48, 12)


def test_samples_that_are_compacted_while_they_are_read_are_read_again(spark: SparkSession, tmp_path: Path) -> None:
    """The files that the job has listed are gone; their rows are in a compacted file."""
    day = tmp_path / "date=2026-02-01"
    day.mkdir()
    rows = schema_of(pa, SAMPLE_ROWS).empty_table()
    for name in ("look-c-1.parquet", "look-c-2.parquet"):
        pq.write_table(rows, day / name)
    table = Table(spark, str(tmp_path), SAMPLE_ROWS, "samples", by_day=True)
    read = []

    def work() -> int:
        frame = table.read()
        read.append(sorted(Path(name).name for name in frame.inputFiles()))
        if len(read) == 1:
            Compactor().compact(day)
        return len(frame.collect())

    left_out = LeftOuts()
    without_corrupt(table, left_out, work)

    assert [len(names) for names in read] == [2, 1]
    assert read[1][0].startswith("day-c-1-")
    assert left_out.all() == ()


def test_too_few_hours_are_rejected_with_the_required_number(tmp_path: Path) -> None:
    """A study of one afternoon would be misleading."""
    write_facts(lay_out(LOAD), tmp_path / "facts")

    with pytest.raises(AnalyticsError, match=r"facts of 72 hours, too few to study: .* there are 100 \(--min-hours\)"):
        study(tmp_path, "--stage", "loads", "--min-hours", "100")


def test_an_unreachable_store_is_named(tmp_path: Path) -> None:
    """A refused connection, and a scheme for which Spark has no file system."""
    with pytest.raises(AnalyticsError, match=r"the store of the samples cannot be reached: hdfs://127.0.0.1:9/samples"):
        study(tmp_path, "--samples", "hdfs://127.0.0.1:9/samples")
    with pytest.raises(AnalyticsError, match=r"no file system for s3a://bucket/samples.*hadoop-aws"):
        study(tmp_path, "--samples", "s3a://bucket/samples")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("java.net.UnknownHostException: store", "the store of the facts cannot be reached"),
        ("org.apache.kafka.common.errors.TimeoutException: x", "the brokers at kafka://b:9092 do not respond"),
        ("UnknownTopicOrPartitionException: x", "there are no facts yet at kafka://b:9092"),
        ("something else", "the facts at kafka://b:9092 could not be processed: something else"),
    ],
)
def test_an_error_of_spark_is_reported_as_a_sentence(text: str, message: str) -> None:
    """By the exception that the text contains."""
    assert message in sentence_of(text, "kafka://b:9092", "facts")


def test_files_given_by_hand_are_checked(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The last line names the file, and the status is 1."""
    (tmp_path / "a.json").write_text("{")
    (tmp_path / "b.json").write_text(json.dumps({"1": {"disk_bytes": "much"}}))
    (tmp_path / "c.json").write_text(json.dumps({"t": {"messages": 1}}))
    base = ["--facts", str(tmp_path), "--out", str(tmp_path), "--stage", "study"]

    for option, file, message in (
        ("--brokers", "a.json", "is not JSON"),
        ("--brokers", "b.json", "disk_bytes is not a number"),
        ("--key-sketches", "c.json", "lacks messages, error or counts"),
        ("--brokers", "d.json", "cannot be read"),
    ):
        assert main([*base, option, str(tmp_path / file)]) == 1
        assert message in capsys.readouterr().err

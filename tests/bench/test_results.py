"""The results file: its fields, what a new run replaces, and what may not be in it."""

import datetime as dt
import json
from pathlib import Path

from bench import results
from bench.harness import Better, Row, Side
from bench.logs import stamps

NOON = dt.datetime(2025, 1, 2, 12, 0, tzinfo=dt.UTC)
ROW = Row("a.b", "words", "the peer", "things/s", Better.HIGHER, Side(3.0, 2.0, 4.0), Side(1.23456, 1.0, 2.0), 7)

MACHINE = {"cores", "memory_gib", "architecture", "system", "python", "numpy", "java", "kafka", "load_average"}
FIELDS = {"name", "what", "peer_is", "unit", "better", "ours", "peer", "ratio", "runs", "date", "machine"}


def test_a_row_is_one_object() -> None:
    """Four significant digits, the date in UTC, the machine beside it."""
    document = results.document(ROW, {"cores": 2}, NOON)

    assert FIELDS == set(document)
    assert {"median": 1.235, "min": 1.0, "max": 2.0} == document["peer"]
    assert 2.43 == document["ratio"]
    assert "2025-01-02T12:00:00Z" == document["date"]


def test_a_new_run_takes_the_place_of_its_own_rows_alone() -> None:
    """Benchmarks can be run one by one."""
    old = [{"name": "a.b", "ratio": 1}, {"name": "c.d", "ratio": 2}]

    assert [{"name": "a.b", "ratio": 3}, {"name": "c.d", "ratio": 2}] == results.merged(
        old, [{"name": "a.b", "ratio": 3}]
    )


def test_what_is_written_is_read_again(tmp_path: Path) -> None:
    """And no file is no rows."""
    path = tmp_path / "results" / "latest.json"

    assert [] == results.read(path)
    results.write([{"name": "a.b"}], path)
    assert [{"name": "a.b"}] == results.read(path)


def test_the_results_that_are_kept_are_whole_and_name_no_host_and_no_path() -> None:
    """They are public."""
    rows = results.read()

    assert rows, "results are kept with the code"
    for row in rows:
        assert FIELDS == set(row)
        assert set(row["machine"]) <= MACHINE
        words = json.dumps(row)
        assert not any(path in words for path in ("/home", "/root", "/tmp", "/work", "/usr"))


def test_stamps_of_a_brokers_log_are_found_by_what_the_line_says() -> None:
    """Log4j's pattern of the lab; lines without a stamp belong to the one before."""
    text = "[2025-01-02 03:04:05,250] INFO one thing (x)\nat somewhere: one thing\n[2025-01-02 03:04:05,750] INFO one thing (x)"

    first, second = stamps(text, "one th.ng")

    assert 0.5 == second - first

"""The results file: its fields, the rows that a new run replaces, and content that it must not have."""

import datetime as dt
import json
from dataclasses import replace
from pathlib import Path

from bench import results
from bench.harness import Better, Row, Side, promised
from bench.logs import stamps

NOON = dt.datetime(2025, 1, 2, 12, 0, tzinfo=dt.UTC)
ROW = Row("a.b", "words", "the peer", "things/s", Better.HIGHER, Side(3.0, 2.0, 4.0), Side(1.23456, 1.0, 2.0), 7)

MACHINE = {"cores", "memory_gib", "architecture", "system", "python", "numpy", "java", "kafka"}
PROMISED = {"name", "ours", "peer", "unit", "ratio", "at_least"}
FIELDS = PROMISED | {"what", "peer_is", "better", "ours_range", "peer_range", "runs", "date", "load_average"}


def test_a_row_is_one_object() -> None:
    """The promise's number in its name, medians of four significant digits, the date in UTC."""
    document = results.document(promised(ROW, "P9", 2.0), 0.5, NOON)

    assert set(document) == FIELDS
    assert (document["name"], document["ours"], document["peer"]) == ("P9 a.b", 3.0, 1.235)
    assert (document["ours_range"], document["peer_range"]) == ([2.0, 4.0], [1.0, 2.0])
    assert (document["ratio"], document["at_least"]) == (2.43, 2.0)
    assert document["date"] == "2025-01-02T12:00:00Z"


def test_further_figures_of_a_row_are_stored_only_where_there_are_any() -> None:
    """With four significant digits, as all others."""
    document = results.document(replace(ROW, also={"processor time, s": 1.23456}), 0.5, NOON)

    assert document["also"] == {"processor time, s": 1.235}


def test_a_new_run_replaces_its_own_rows_only() -> None:
    """Benchmarks can be run one by one."""
    old = [{"name": "a.b", "ratio": 1}, {"name": "c.d", "ratio": 2}]

    assert results.merged(old, [{"name": "a.b", "ratio": 3}]) == [
        {"name": "a.b", "ratio": 3},
        {"name": "c.d", "ratio": 2},
    ]


def test_written_results_are_read_back(tmp_path: Path) -> None:
    """A missing file has no rows."""
    path = tmp_path / "results" / "latest.json"

    assert results.read(path) == []
    results.write([{"name": "a.b"}], {"cores": 2}, path)
    assert results.read(path) == [{"name": "a.b"}]
    assert json.loads(path.read_text())["machine"] == {"cores": 2}


def test_the_committed_results_are_complete_and_name_no_host_and_no_path() -> None:
    """They are public."""
    kept = json.loads(results.LATEST.read_text(encoding="utf-8"))

    assert set(kept) == {"machine", "rows"}
    assert set(kept["machine"]) <= MACHINE
    assert kept["rows"], "results are kept with the code"
    assert all(set(row) - {"also"} == FIELDS for row in kept["rows"])
    message = json.dumps(kept)
    assert not any(path in message for path in ("/home", "/root", "/tmp", "/work", "/usr"))


def test_timestamps_of_a_brokers_log_are_found_by_the_text_of_a_line() -> None:
    """Log4j's pattern of the lab; lines without a timestamp belong to the one before."""
    text = "[2025-01-02 03:04:05,250] INFO one thing (x)\nat somewhere: one thing\n[2025-01-02 03:04:05,750] INFO one thing (x)"

    first, second = stamps(text, "one th.ng")

    assert second - first == 0.5

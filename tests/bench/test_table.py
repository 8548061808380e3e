"""The table of figures: its width, numbers and descriptions."""

import datetime as dt
import io
from dataclasses import replace

import pytest
from rich.console import Console

from bench import __main__ as bench_main
from bench import results
from bench.harness import Better, Row, Side
from bench.table import WIDEST, print_table

ROW = Row(
    "placement.plain",
    "place 1 M partitions",
    "Kafka's placer",
    "partitions/s",
    Better.HIGHER,
    Side(452e6, 213e6, 574e6),
    Side(5e6, 4e6, 6e6),
    7,
    "P1",
    5.0,
)


def printed(rows: list[Row], width: int) -> list[str]:
    """The lines of the table on a terminal of this width."""
    output = io.StringIO()
    print_table(rows, Console(file=output, width=width))
    return [line.rstrip() for line in output.getvalue().splitlines()]


def test_a_figure_is_a_line_of_numbers_and_its_description() -> None:
    """The name is followed by both medians, the ratio and the ratio that is required."""
    lines = printed([ROW], 80)[2:]

    assert lines == [
        "P1 placement.plain                           452 M       5 M    90.40x        5x",
        "  place 1 M partitions",
        "  peer: Kafka's placer",
        "  in partitions/s; 7 runs: Steward 213 M to 574 M, peer 4 M to 6 M",
    ]


def test_further_figures_are_the_last_line_of_the_description() -> None:
    """Each has its name, its number and its unit."""
    lines = printed([replace(ROW, also={"processor time, s": 43.21, "read, samples": 14_400_000})], 80)

    assert lines[-1] == "  Steward: processor time 43.2 s; read 14.4 M samples"


def test_the_stored_figures_fit_80_columns_and_no_text_is_lost() -> None:
    """Long names and descriptions wrap."""
    rows = [results.row_of(document) for document in results.read()]
    lines = printed(rows, 80)

    assert max(map(len, lines)) <= 80
    text = "".join("".join(lines).split())
    assert all("".join(row.what.split()) in text for row in rows)


def test_a_wide_terminal_does_not_move_numbers_far_from_their_names() -> None:
    """The width has a limit."""
    assert max(map(len, printed([ROW], 300))) == WIDEST


def test_a_ratio_below_the_required_one_is_marked() -> None:
    """A missed promise is visible without comparing two columns."""
    missed = Row("a.b", "", "", "ms", Better.LOWER, Side(20.0, 20.0, 20.0), Side(10.0, 10.0, 10.0), 1, "P2", 1.0)

    assert "1x missed" in printed([missed], 80)[2]


def test_the_stored_figures_are_shown_without_measuring(capsys: pytest.CaptureFixture[str]) -> None:
    """--show takes the names of benchmarks as a run does."""
    assert bench_main.main(["--show", "placement"]) == 0

    shown = capsys.readouterr().out
    assert "P1 placement.plain.columns" in shown
    assert "P2 election" not in shown


def test_a_stored_figure_is_read_as_the_original_row() -> None:
    """Up to the digits that are stored."""
    document = results.document(ROW, 0.5, dt.datetime(2025, 1, 2, tzinfo=dt.UTC))

    assert results.row_of(document) == ROW

"""The table of benchmark figures that a person reads, in 80 columns.

Each figure is one line of numbers, and below it what was compared with what, in lines of the same width.
"""

from collections.abc import Iterable, Iterator, Sequence

from rich.console import Console, Group, RenderableType
from rich.padding import Padding
from rich.rule import Rule
from rich.table import Table
from rich.text import Text

from bench.harness import Row, Side

WIDEST = 100
"""Columns at most: numbers far to the right of their names are hard to follow."""

NUMBER_WIDTH = 9
"""Fits `5x missed` and a number with its magnitude and a short unit, such as `8189 MiB`."""

INDENT = 2

LONGEST_UNIT = 3
"""A longer unit (partitions/s) is not repeated next to each number; the description names it."""

MAGNITUDES = (("T", 1e12), ("G", 1e9), ("M", 1e6), ("k", 1e4))
"""Thousands are written out up to ten thousand."""

SECONDS_FROM_MS = 10_000.0


def print_table(rows: Sequence[Row], console: Console) -> None:
    """Print the rows, no wider than `WIDEST`."""
    console.print(Group(*_lines(rows)), width=min(console.width, WIDEST))


def amount(number: float, unit: str) -> str:
    """Write a number with three significant digits and its unit, if that is short.

    >>> amount(81_234_567.0, "partitions/s"), amount(43.21, "ms"), amount(114_100.0, "ms"), amount(2.916e13, "bytes")
    ('81.2 M', '43.2 ms', '114 s', '29.2 TB')
    """
    if unit == "ms" and number >= SECONDS_FROM_MS:
        number, unit = number / 1000, "s"
    if unit == "bytes":
        unit = "B"
    digits, magnitude = _digits(number)
    return f"{digits} {magnitude}{unit if len(unit) <= LONGEST_UNIT else ''}".rstrip()


def _digits(number: float) -> tuple[str, str]:
    """Return three significant digits and their magnitude."""
    for magnitude, factor in MAGNITUDES:
        if number >= factor:
            scaled = number / (1e3 if magnitude == "k" else factor)
            return (f"{scaled:.3g}" if scaled < 100 else f"{scaled:.0f}"), magnitude
    return (f"{number:.3g}" if number < 100 else f"{number:.0f}"), ""


def _lines(rows: Iterable[Row]) -> Iterator[RenderableType]:
    yield _numbers(Text("figure"), "Steward", "peer", "ratio", "required", style="bold")
    yield Rule(style="dim")
    for row in rows:
        name = Text(f"{row.promise} {row.name}".strip(), style="bold")
        required = "" if row.at_least is None else f"{row.at_least:.3g}x"
        numbers = (amount(side.median, row.unit) for side in (row.ours, row.peer))
        yield _numbers(name, *numbers, _ratio(row.ratio), required if row.kept else f"{required} missed")
        yield Padding(Text(_description(row)), (0, 0, 0, INDENT))


def _numbers(name: Text, *cells: str, style: str = "") -> Table:
    """Lay out one line: the name takes what the numbers leave."""
    table = Table.grid(padding=(0, 1, 0, 0), expand=True)
    table.add_column(ratio=1, overflow="fold")
    for _ in cells:
        table.add_column(width=NUMBER_WIDTH, justify="right", overflow="fold")
    table.add_row(name, *(Text(cell, style=style) for cell in cells))
    return table


def _description(row: Row) -> str:
    facts = [f"in {row.unit}"] if len(row.unit) > LONGEST_UNIT and row.unit != "bytes" else []
    sides = (("Steward", row.ours), ("peer", row.peer))
    spans = ", ".join(f"{name} {span}" for name, side in sides if (span := _span(side, row.unit)))
    if spans:
        facts.append(f"{row.runs} runs: {spans}" if row.runs > 1 else spans)
    also = "; ".join(f"{what.rpartition(', ')[0]} {_further(what, figure)}" for what, figure in row.also.items())
    return "\n".join(filter(None, (row.what, f"peer: {row.peer_is}", "; ".join(facts), also and f"Steward: {also}")))


def _further(what: str, figure: float) -> str:
    """Write a figure of `also`: the unit is the last word of what it is.

    >>> _further("processor time, s", 43.21), _further("records read, rows", 1_440_000)
    ('43.2 s', '1.44 M rows')
    """
    unit = what.rpartition(", ")[2]
    written = amount(figure, unit)
    return written if len(unit) <= LONGEST_UNIT or unit == "bytes" else f"{written} {unit}"


def _span(side: Side, unit: str) -> str:
    lowest, highest = amount(side.lowest, unit), amount(side.highest, unit)
    return "" if lowest == highest else f"{lowest} to {highest}"


def _ratio(ratio: float) -> str:
    return f"{ratio:.2f}x" if ratio < 100 else f"{ratio:.0f}x"

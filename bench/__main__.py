"""`make bench`: run benchmarks against their peers, print a table, and put the figures into bench/results/latest.json.

make bench                              all of them
make bench ARGS="failover placement"    some
make bench ARGS="--quick --list"        what there is; --quick measures for a few seconds each and keeps nothing
"""

import argparse
import datetime as dt
import sys
from collections.abc import Mapping, Sequence
from types import ModuleType

from rich.console import Console
from rich.table import Table

from bench import (
    alter_partition_flood,
    analytics,
    election,
    encoding,
    failover,
    measured_plan,
    metadata_herd,
    placement,
    plan_start,
    results,
    sampling,
    shutdown,
    shutdown_at_scale,
    spark_submissions,
    stall,
    takeover,
    takeover_at_scale,
    topics,
)
from bench.harness import Effort, Row, Side

BENCHMARKS: Mapping[str, ModuleType] = {
    module.NAME: module
    for module in (
        placement,
        measured_plan,
        election,
        encoding,
        failover,
        takeover,
        shutdown,
        takeover_at_scale,
        shutdown_at_scale,
        metadata_herd,
        alter_partition_flood,
        topics,
        plan_start,
        spark_submissions,
        stall,
        sampling,
        analytics,
    )
}
"""By name; each module has NAME, ABOUT and measure(effort), which yields rows."""


def parse(arguments: Sequence[str]) -> argparse.Namespace:
    """Read the command line; benchmarks are checked to be known ones."""
    parser = argparse.ArgumentParser(prog="python -m bench", description="Measure ours beside its peers.")
    parser.add_argument("names", nargs="*", metavar="NAME", help="benchmarks to run; all by default (see --list)")
    parser.add_argument("--list", action="store_true", help="list the benchmarks and end")
    parser.add_argument("--quick", action="store_true", help="a few seconds each; nothing is kept")
    parser.add_argument("--rounds", type=int, metavar="N", help="runs of each side, instead of each benchmark's own")
    options = parser.parse_args(arguments)
    unknown = [name for name in options.names if name not in BENCHMARKS]
    if unknown:
        parser.error(f"no benchmark is called {', '.join(unknown)}; there are: {', '.join(BENCHMARKS)}")
    if options.rounds is not None and options.rounds < 1:
        parser.error("--rounds must be 1 or more")
    return options


def table_of(rows: Sequence[Row]) -> Table:
    """Lay rows out for a person."""
    table = Table(title="Ours beside the peer, run in turn: medians (lowest to highest)")
    for heading in ("what", "peer"):
        table.add_column(heading, overflow="fold")
    for heading in ("ours", "peer's", "ratio", "at least", "spread", "runs"):
        table.add_column(heading, justify="right")
    for row in rows:
        spread = f"{row.ours.spread:.0%} / {row.peer.spread:.0%}"
        figures = (_figure(row.ours, row.unit), _figure(row.peer, row.unit), f"{row.ratio:.2f}x", _promise(row))
        name = f"{row.promise} {row.name}".strip()
        table.add_row(f"[bold]{name}[/bold]\n{row.what}", row.peer_is, *figures, spread, str(row.runs))
    return table


def _promise(row: Row) -> str:
    if row.at_least is None:
        return ""
    return f"{row.at_least:.3g}x" + ("" if row.kept else "\n[bold]missed[/bold]")


def _figure(side: Side, unit: str) -> str:
    median, lowest, highest = map(_short, (side.median, side.lowest, side.highest))
    return f"{median} {unit}\n({lowest} to {highest})"


def _short(number: float) -> str:
    """Write a number with three significant digits.

    >>> _short(81_234_567.0), _short(43.21)
    ('81.2 M', '43.2')
    """
    for unit, factor in (("M", 1e6), ("k", 1e4)):
        if number >= factor:
            return f"{number / (1e6 if unit == 'M' else 1e3):.3g} {unit}"
    return f"{number:.3g}" if number < 100 else f"{number:.0f}"


def main(arguments: Sequence[str]) -> int:
    """Run what is asked for and return the exit status."""
    options = parse(arguments)
    console = Console()
    if options.list:
        for name, module in BENCHMARKS.items():
            console.print(f"{name:<12}{module.ABOUT}")
        return 0
    effort = Effort(quick=options.quick, rounds=options.rounds)
    rows: list[Row] = []
    on, load = results.machine(), results.load_average()
    for name in options.names or BENCHMARKS:
        console.print(f"measuring {name}: {BENCHMARKS[name].ABOUT}")
        for row in BENCHMARKS[name].measure(effort):
            console.print(f"  {row.name}: {_short(row.ours.median)} against {_short(row.peer.median)} {row.unit}")
            rows.append(row)
            if not options.quick:
                # Kept row by row: what was measured stays when a later one fails.
                new = results.document(row, results.load_average(), dt.datetime.now(dt.UTC))
                results.write(results.merged(results.read(), [new]), on)
    console.print(table_of(rows))
    busy = f"load average at the start {load} on {on['cores']} cores"
    console.print(f"Ratios over 1 speak for ours. The machine: {busy}, Python {on['python']}, Java {on['java']}.")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

"""`make bench`: run benchmarks against their peers, print a table, and store the figures in bench/results/latest.json.

make bench                              all of them
make bench ARGS="failover placement"    some
make bench ARGS="--list"                the benchmarks there are
make bench ARGS="--quick placement"     a few seconds each, for a check that a benchmark works; results are not stored
python -m bench --show placement        the stored figures of some, or of all; measures nothing
"""

import argparse
import datetime as dt
import sys
from collections.abc import Mapping, Sequence
from importlib import import_module
from types import ModuleType

from rich.console import Console
from rich.table import Table

from bench import results
from bench.harness import Effort, Row
from bench.table import amount, print_table

MODULES = (
    "planner.placement",
    "planner.measured_plan",
    "zookeeper_mode.election",
    "zookeeper_mode.encoding",
    "zookeeper_mode.failover",
    "zookeeper_mode.takeover",
    "zookeeper_mode.shutdown",
    "zookeeper_mode.takeover_at_scale",
    "zookeeper_mode.shutdown_at_scale",
    "zookeeper_mode.metadata_herd",
    "zookeeper_mode.alter_partition_flood",
    "resources.topics",
    "resources.plan_start",
    "planner.what_if",
    "resources.spark_submissions",
    "listener.stall",
    "analytics.sampling",
    "analytics.two_weeks",
    "analytics.whole_run",
    "quorum.log_open",
    "kraft.metadata_records",
    "quorum.election",
    "quorum.appends",
    "quorum.five_voters",
    "quorum.observers",
    "quorum.snapshot",
    "quorum.frozen",
    "quorum.simulator",
    "kraft.broker_failure",
    "kraft.failover",
    "kraft.restarts",
    "kraft.topics",
    "kraft.heartbeats",
    "listener.receive",
    "light_broker.data_path",
    "light_broker.growth",
    "light_broker.stall",
    "light_broker.start",
    "light_broker.replication",
)
"""Modules with a benchmark, below `bench`, in the order in which `make bench` runs them."""

BENCHMARKS: Mapping[str, ModuleType] = {
    module.NAME: module for module in (import_module(f"bench.{name}") for name in MODULES)
}
"""Name -> module. Each module has NAME, ABOUT and measure(effort), which yields rows."""


def parse(arguments: Sequence[str]) -> argparse.Namespace:
    """Parse the command line; an unknown benchmark is an error."""
    parser = argparse.ArgumentParser(prog="python -m bench", description="Measure Steward and its peers.")
    parser.add_argument("names", nargs="*", metavar="NAME", help="benchmarks to run; all by default (see --list)")
    parser.add_argument("--list", action="store_true", help="list the benchmarks and exit")
    parser.add_argument("--show", action="store_true", help="print the stored figures and exit, without measuring")
    parser.add_argument("--quick", action="store_true", help="run each for a few seconds; results are not stored")
    parser.add_argument("--rounds", type=int, metavar="N", help="runs of each side (default: set by each benchmark)")
    options = parser.parse_args(arguments)
    unknown = [name for name in options.names if name not in BENCHMARKS]
    if unknown:
        parser.error(f"no benchmark is called {', '.join(unknown)}; there are: {', '.join(BENCHMARKS)}")
    if options.rounds is not None and options.rounds < 1:
        parser.error("--rounds must be 1 or more")
    return options


def main(arguments: Sequence[str]) -> int:
    """Run the chosen benchmarks and return the exit status."""
    options = parse(arguments)
    console = Console(highlight=False)
    if options.list:
        console.print(_list())
        return 0
    if options.show:
        print_table([row for row in map(results.row_of, results.read()) if _belongs(row, options.names)], console)
        return 0
    effort = Effort(quick=options.quick, rounds=options.rounds)
    rows: list[Row] = []
    on, load = results.machine(), results.load_average()
    for name in options.names or BENCHMARKS:
        console.print(f"measuring {name}: {BENCHMARKS[name].ABOUT}")
        for row in BENCHMARKS[name].measure(effort):
            ours, peer = amount(row.ours.median, row.unit), amount(row.peer.median, row.unit)
            console.print(f"  {row.name}: Steward {ours}, peer {peer}")
            rows.append(row)
            if not options.quick:
                # Stored row by row, so that a later failure loses none of them.
                new = results.document(row, results.load_average(), dt.datetime.now(dt.UTC))
                results.write(results.merged(results.read(), [new]), on)
    print_table(rows, console)
    console.print("Medians. A ratio above 1 means that Steward is better.")
    console.print(
        f"Machine: {on['cores']} cores, load average {load} at the start, Python {on['python']}, Java {on['java']}."
    )
    return 0


def _list() -> Table:
    table = Table.grid(padding=(0, 2, 0, 0))
    for name, module in BENCHMARKS.items():
        table.add_row(name, module.ABOUT)
    return table


def _belongs(row: Row, names: Sequence[str]) -> bool:
    """Whether a stored row belongs to one of these benchmarks; all rows do when none is named."""
    return not names or row.name.partition(".")[0] in names


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

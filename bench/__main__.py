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
from types import ModuleType

from rich.console import Console
from rich.table import Table

from bench import (
    alter_partition_flood,
    analytics,
    election,
    encoding,
    failover,
    kraft_broker_failure,
    kraft_failover,
    kraft_heartbeats,
    kraft_restarts,
    kraft_topics,
    light_broker,
    light_broker_growth,
    light_broker_stall,
    light_broker_start,
    light_replication,
    log_open,
    measured_plan,
    metadata_herd,
    metadata_records,
    placement,
    plan_start,
    quorum_appends,
    quorum_election,
    quorum_frozen,
    quorum_observers,
    quorum_of_five,
    quorum_simulator,
    quorum_snapshot,
    receive,
    results,
    sampling,
    shutdown,
    shutdown_at_scale,
    spark_submissions,
    stall,
    takeover,
    takeover_at_scale,
    topics,
    what_if,
    whole_run,
)
from bench.harness import Effort, Row
from bench.table import amount, print_table

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
        what_if,
        spark_submissions,
        stall,
        sampling,
        analytics,
        whole_run,
        log_open,
        metadata_records,
        quorum_election,
        quorum_appends,
        quorum_of_five,
        quorum_observers,
        quorum_snapshot,
        quorum_frozen,
        quorum_simulator,
        kraft_broker_failure,
        kraft_failover,
        kraft_restarts,
        kraft_topics,
        kraft_heartbeats,
        receive,
        light_broker,
        light_broker_growth,
        light_broker_stall,
        light_broker_start,
        light_replication,
    )
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

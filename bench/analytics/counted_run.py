"""A run of the analytics in a process of its own, with Spark's counters: `python -m bench.analytics.counted_run NOW_MS SETTINGS ARGUMENT...`.

SETTINGS are Spark's, as JSON; the arguments are those of `balance_analytics.jobs.main`. The run is that of the product, from the start of
Spark's session to the report; only its time of day is given. After the argument `then`, the arguments of a second run in the same session
follow. The last line of the output is a JSON object: `jobs` and `scans` (stages that
read files or topics), `records_read`, `shuffled_bytes`, `cpu_seconds` of this process, of the JVM and of Python workers, and
`driver_python_bytes`, the most memory that this process held.
"""

import json
import os
import sys
from pathlib import Path
from typing import Any

from lab.processes.process import highest_resident_bytes

THEN = "then"

TICKS_PER_S = os.sysconf("SC_CLK_TCK")


def main(arguments: list[str]) -> int:
    """Run once, and write the counters."""
    from balance_analytics.jobs.main import run
    from balance_analytics.jobs.options import options_of
    from balance_analytics.jobs.session import session

    now_ms, settings, *rest = arguments
    spark = session(json.loads(settings))
    at = rest.index(THEN) if THEN in rest else len(rest)
    for message in filter(None, (rest[:at], rest[at + 1 :])):
        ran = run(options_of(message), int(now_ms))
        assert ran.failure is None, ran.failure
    sys.stdout.write(json.dumps(counters(spark)) + "\n")
    return 0


def counters(spark: Any) -> dict[str, float]:
    """Return what the application has done so far, by Spark's own counters and by the system's."""
    context, jvm = spark.sparkContext, spark._jvm  # noqa: SLF001 - Python has no other way to the counters
    scala = context._jsc.sc()  # noqa: SLF001 - as above
    scala.listenerBus().waitUntilEmpty()
    store, nothing = scala.statusStore(), jvm.java.util.ArrayList()
    quantiles = context._gateway.new_array(jvm.double, 0)  # noqa: SLF001 - as above
    listed = store.stageList(nothing, False, False, quantiles, nothing)
    stages = [listed.apply(at) for at in range(listed.size())]
    records = [int(stage.inputRecords()) for stage in stages]
    return {
        "jobs": store.jobsList(nothing).size(),
        "scans": sum(1 for count in records if count),
        "records_read": sum(records),
        "shuffled_bytes": sum(int(stage.shuffleWriteBytes()) for stage in stages),
        "cpu_seconds": cpu_seconds_below(os.getpid()),
        "driver_python_bytes": highest_resident_bytes(os.getpid()),
    }


def cpu_seconds_below(root: int) -> float:
    """Return the processor time of a process and of all processes below it, ended ones included."""
    below, ticks = {root}, 0
    parents = {}
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            try:
                fields = (folder / "stat").read_text(encoding="utf-8").rpartition(")")[2].split()
            except (FileNotFoundError, ProcessLookupError):  # it has ended in the meantime
                continue
            parents[int(folder.name)] = (int(fields[1]), sum(map(int, fields[11:15])))
    for process in sorted(parents):  # a process has a higher number than its parent, until numbers wrap around
        if parents[process][0] in below:
            below.add(process)
    for process in below:
        ticks += parents.get(process, (0, 0))[1]
    return ticks / TICKS_PER_S


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

"""Stage `report`: the result and the moves to `<out>/report.html`, its pictures, `summary.json` and `metrics.prom`.

The same result and moves make the same bytes.
"""

from __future__ import annotations

from dataclasses import dataclass

from pyspark.sql import SparkSession

from balance_analytics.jobs.moves import kept, read_result
from balance_analytics.jobs.problems import errors_about
from balance_analytics.jobs.storage import write_bytes
from balance_analytics.model.report_input import ReportInput
from balance_analytics.report.summary import summary_of
from spark_operator.resources.summary import BalanceSummary


@dataclass(frozen=True, slots=True)
class Reported:
    """The path of the page, and its summary."""

    path: str
    summary: BalanceSummary


def run(spark: SparkSession, out: str, title: str | None) -> Reported:
    """Draw and write everything; `title` is the cluster's name for people; None: its id."""
    # matplotlib takes 40 MB: it is loaded when the planner, which needs the most memory, has ended.
    from balance_analytics.report.report_files import PAGE, report_files  # noqa: PLC0415

    result = read_result(spark, out)
    report = ReportInput(title or result.cluster_id, None, result, kept(spark, out))
    with errors_about(out, "report"):
        for name, data in report_files(report).items():
            write_bytes(spark, f"{out}/{name}", data)
    return Reported(f"{out}/{PAGE}", summary_of(report))

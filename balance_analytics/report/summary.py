"""Summary of a report: for the status of a SparkApplication, and as metrics for Prometheus."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from balance_analytics.model.report_input import ProposedMoves, ReportInput
from balance_analytics.model.results import Forecast
from spark_operator.resources.summary import BalanceSummary, SoonestFull

PREFIX = "steward_balance_"


def summary_of(report: ReportInput) -> BalanceSummary:
    """Return the summary of a report, not rounded; the location of the report is added later."""
    result, moves = report.result, report.moves
    return BalanceSummary(
        window_end=result.window.end,
        partitions=result.partitions,
        hot_partitions=result.hot_partitions_found,
        not_preferred_ratio=result.leader_imbalance.ratio,
        moved_partitions=0 if moves is None else moves.partitions,
        bytes_to_move=0 if moves is None else moves.copied_bytes,
        left_outs=len(result.left_out),
        skew={skew.resource: skew.max_over_mean for skew in result.skew},
        skew_before={} if moves is None else _over_mean(moves, after=False),
        skew_after={} if moves is None else _over_mean(moves, after=True),
        soonest_full=_soonest_full(result.forecasts),
        reassignment=None if moves is None else moves.name,
    )


def _soonest_full(forecasts: Iterable[Forecast]) -> SoonestFull | None:
    """Return the forecast of the disk that is full first, or None if all are beyond the horizon."""
    found = [
        SoonestFull(forecast.broker, forecast.days, forecast.days_low, forecast.days_high)
        for forecast in forecasts
        if forecast.days is not None
    ]
    return min(found, key=lambda disk: (disk.days, disk.broker), default=None)


def _over_mean(moves: ProposedMoves, *, after: bool) -> dict[str, float]:
    return {
        resource.resource: max(resource.after if after else resource.before, default=0.0) / resource.mean
        for resource in moves.resources
        if resource.mean > 0
    }


def metrics_of(summary: BalanceSummary, cluster_id: str) -> str:
    """Return the metrics in Prometheus' text format, for a textfile collector, a push gateway or the operator's endpoint."""
    cluster = f'cluster_id="{_escaped(cluster_id)}"'
    lines: list[str] = []

    def gauge(name: str, about: str, values: list[tuple[str, float]]) -> None:
        if values:
            lines.extend((f"# HELP {PREFIX}{name} {about}", f"# TYPE {PREFIX}{name} gauge"))
            lines.extend(f"{PREFIX}{name}{{{labels}}} {value!r}" for labels, value in values)

    def by_resource(values: Mapping[str, float]) -> list[tuple[str, float]]:
        return [(f'{cluster},resource="{_escaped(name)}"', float(value)) for name, value in values.items()]

    gauge("skew", "Ratio of the highest broker to the mean over the window; 1 is even.", by_resource(summary.skew))
    gauge("skew_after", "Skew expected after the proposed moves.", by_resource(summary.skew_after))
    gauge("partitions", "Partitions studied.", [(cluster, float(summary.partitions))])
    gauge("hot_partitions", "Partitions with too much load.", [(cluster, float(summary.hot_partitions))])
    gauge(
        "not_preferred_ratio",
        "Part of partitions not led by their preferred replica.",
        [(cluster, summary.not_preferred_ratio)],
    )
    gauge("moved_partitions", "Partitions that the proposal moves.", [(cluster, float(summary.moved_partitions))])
    gauge("bytes_to_move", "Bytes that the proposal copies.", [(cluster, float(summary.bytes_to_move))])
    if summary.soonest_full is not None:
        labels = f'{cluster},broker="{summary.soonest_full.broker}"'
        gauge("disk_full_days", "Days until the first disk is full.", [(labels, summary.soonest_full.days)])
    return "\n".join(lines) + "\n"


def _escaped(text: str) -> str:
    r"""Escape a label's value for Prometheus' text format.

    >>> _escaped('a"b')
    'a\\"b'
    """
    return text.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")

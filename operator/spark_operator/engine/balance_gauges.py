"""Gauges of results of the balance analytics: the most recent run with a summary of each schedule.

The label is the schedule, not the run, which would create new series for every run. An application without a schedule has its own
name as the label.
"""

from __future__ import annotations

from collections.abc import Iterable

from reconciler.resources.metadata import read_time
from spark_operator.metrics import BalanceMetrics
from spark_operator.resources.application import SparkApplication
from spark_operator.resources.summary import BalanceSummary

Names = tuple[str, str]


def set_balance_gauges(applications: Iterable[SparkApplication], metrics: BalanceMetrics) -> None:
    """Set the gauges to the current state; deleted resources are removed."""
    metrics.clear()
    for names, summary in _last(applications).items():
        _show(names, summary, metrics)


def _last(applications: Iterable[SparkApplication]) -> dict[Names, BalanceSummary]:
    """Return the summaries by label: the most recent one where there are several."""
    found: dict[Names, BalanceSummary] = {}
    for item in applications:
        summary = item.status.summary
        if summary is None:
            continue
        owner = item.metadata.owner or item.key
        names = owner.namespace, owner.name
        if names not in found or found[names].window_end <= summary.window_end:
            found[names] = summary
    return found


def _show(names: Names, summary: BalanceSummary, metrics: BalanceMetrics) -> None:
    metrics.window_end.labels(*names).set(read_time(summary.window_end).timestamp())
    metrics.partitions.labels(*names).set(summary.partitions)
    metrics.hot_partitions.labels(*names).set(summary.hot_partitions)
    metrics.not_preferred_ratio.labels(*names).set(summary.not_preferred_ratio)
    metrics.moved_partitions.labels(*names).set(summary.moved_partitions)
    metrics.bytes_to_move.labels(*names).set(summary.bytes_to_move)
    metrics.left_outs.labels(*names).set(summary.left_outs)
    for gauge, by_resource in (
        (metrics.skew, summary.skew),
        (metrics.skew_before, summary.skew_before),
        (metrics.skew_after, summary.skew_after),
    ):
        for resource, value in by_resource.items():
            gauge.labels(*names, resource).set(value)
    if summary.soonest_full is not None:
        metrics.disk_full_days.labels(*names, str(summary.soonest_full.broker)).set(summary.soonest_full.days)

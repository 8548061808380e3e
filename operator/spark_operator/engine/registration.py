"""Registration of SparkApplication and ScheduledSparkApplication, with their gauges."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime

from reconciler.engine.core import Core
from reconciler.engine.kinds import KindSpec
from reconciler.names import Key
from spark_operator import kinds
from spark_operator.engine.applications import SparkPorts, SparkReconciler
from spark_operator.engine.balance_gauges import set_balance_gauges
from spark_operator.engine.schedules import ScheduleReconciler
from spark_operator.metrics import SparkMetrics
from spark_operator.resources.application import SparkApplication, read_spark_application
from spark_operator.resources.schedule import read_scheduled_spark_application

NEW = "New"
"""State of a SparkApplication before its first reconciliation."""


def register_spark(
    core: Core,
    ports: SparkPorts,
    *,
    now: Callable[[], datetime],
    clock: Callable[[], float],
) -> None:
    """Register the kinds; applications before schedules, which own them."""
    applications = SparkReconciler(core.cache, ports, core.writer, now, clock, core.loop.wake)
    core.close_with(applications.close)
    schedules = ScheduleReconciler(
        core.cache, ports.kube, core.writer, ports.metrics, now, core.loop.wake, ports.namespaces
    )
    core.kinds.register(
        KindSpec(
            kind=kinds.SPARK_APPLICATION,
            read=read_spark_application,
            reconciler=applications,
            affected=_owner,
            show=lambda served: show_applications(served, ports.metrics),
        )
    )
    core.kinds.register(
        KindSpec(kind=kinds.SCHEDULED_SPARK_APPLICATION, read=read_scheduled_spark_application, reconciler=schedules)
    )


def show_applications(served: Sequence[SparkApplication], metrics: SparkMetrics) -> None:
    """Set the gauges to the current state; deleted applications are removed."""
    metrics.spark_applications.clear()
    for state, count in Counter(item.status.state or NEW for item in served).items():
        metrics.spark_applications.labels(state).set(count)
    set_balance_gauges(served, metrics.balance)


def _owner(_before: SparkApplication | None, item: SparkApplication) -> Iterator[Key]:
    """Return the schedule that owns the run."""
    if item.metadata.owner is not None:
        yield item.metadata.owner

"""Prometheus metrics of the Spark operator, in the registry of the process."""

from __future__ import annotations

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from reconciler.metrics import DURATIONS


class BalanceMetrics:
    """Results of the most recent run of the balance analytics, by schedule, or by SparkApplication without a schedule."""

    def __init__(self, registry: CollectorRegistry) -> None:
        def gauge(name: str, about: str, *labels: str) -> Gauge:
            return Gauge(f"steward_balance_{name}", about, ["namespace", "name", *labels], registry=registry)

        self.window_end = gauge("window_end_seconds", "End of the analyzed period, in Unix seconds.")
        self.skew = gauge(
            "skew", "Ratio of the most loaded broker to the mean over the analyzed period; 1 is balanced.", "resource"
        )
        self.skew_before = gauge("skew_before", "Skew of the balanced resources before the proposed moves.", "resource")
        self.skew_after = gauge(
            "skew_after", "Expected skew of the balanced resources after the proposed moves.", "resource"
        )
        self.partitions = gauge("partitions", "Number of analyzed partitions.")
        self.hot_partitions = gauge("hot_partitions", "Number of overloaded partitions.")
        self.not_preferred_ratio = gauge(
            "not_preferred_ratio", "Fraction of partitions not led by their preferred leader."
        )
        self.moved_partitions = gauge("moved_partitions", "Number of partitions changed by the proposal.")
        self.bytes_to_move = gauge("bytes_to_move", "Number of bytes copied by the proposal.")
        self.disk_full_days = gauge("disk_full_days", "Expected time until the first disk is full, in days.", "broker")
        self.left_outs = gauge("left_outs", "Number of data sources missing from the analysis.")

    def clear(self) -> None:
        """Remove all values."""
        for var in vars(self).values():
            var.clear()


class SparkMetrics:
    """Metrics of SparkApplications, their schedules, and results of the balance analytics."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self.spark_applications = Gauge(
            "steward_spark_applications",
            "Number of SparkApplications served by this process, by state; New before the first reconciliation.",
            ["state"],
            registry=registry,
        )
        self.spark_transitions = Counter(
            "steward_spark_transitions",
            "State transitions of SparkApplications, by new state.",
            ["engine", "state"],
            registry=registry,
        )
        self.spark_submission = Histogram(
            "steward_spark_submission_duration_seconds",
            "Time from the creation of a SparkApplication to that of its first driver, in seconds (resolution 1 s).",
            buckets=DURATIONS,
            registry=registry,
        )
        self.spark_runs = Counter("steward_spark_scheduled_runs", "Runs created by schedules.", registry=registry)
        self.spark_missed = Counter("steward_spark_missed_times", "Scheduled times without a run.", registry=registry)
        self.balance = BalanceMetrics(registry)

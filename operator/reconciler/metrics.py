"""Prometheus metrics of the operator, in a separate registry."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from reconciler.names import Key, Kind

DURATIONS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
"""Seconds: from one small request to past every time limit."""

BATCHES = (1, 2, 5, 10, 20, 50, 100, 200)
"""Resources in a batch, up to the largest that the queue gives."""


KIND, CALL = ["kind"], ["call"]
"""Labels."""


class ReconciliationMetrics:
    """Reconciliation metrics."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self.reconciliations = Counter("steward_reconciliations", "Reconciliations started.", KIND, registry=registry)
        self.successful = Counter(
            "steward_reconciliations_successful",
            "Reconciliations that completed.",
            KIND,
            registry=registry,
        )
        self.failed = Counter(
            "steward_reconciliations_failed",
            "Reconciliations that failed and are retried after a delay.",
            KIND,
            registry=registry,
        )
        self.duration = Histogram(
            "steward_reconciliations_duration_seconds",
            "Duration of one batch of reconciliations, in seconds.",
            KIND,
            buckets=DURATIONS,
            registry=registry,
        )
        self.batch_size = Histogram(
            "steward_reconciliations_batch_size",
            "Number of resources in a batch of reconciliations.",
            KIND,
            buckets=BATCHES,
            registry=registry,
        )
        self.in_progress = Gauge(
            "steward_reconciliations_in_progress_start_time_seconds",
            "Start time of the reconciliation in progress, in Unix seconds; for alerts on stuck reconciliations.",
            ["kind", "namespace", "name"],
            registry=registry,
        )
        self.queue_size = Gauge(
            "steward_reconciliations_queue_size", "Number of resources waiting for reconciliation.", registry=registry
        )


class ResourceMetrics:
    """Metrics of the present state of resources."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self.resources = Gauge("steward_resources", "Number of known resources.", KIND, registry=registry)
        self.ready = Gauge(
            "steward_resources_ready",
            "Number of resources served by this process, by status of their Ready condition: True, False or Unknown.",
            ["kind", "ready"],
            registry=registry,
        )
        self.throttle = Gauge(
            "steward_reassignment_throttle_bytes_per_second",
            "Replication throttle set in Kafka for a Reassignment, in bytes per second; absent without a throttle.",
            ["namespace", "name"],
            registry=registry,
        )
        self.progress = Gauge(
            "steward_reassignment_progress_ratio",
            "Progress of a Reassignment that has not ended, from 0 to 1.",
            ["namespace", "name"],
            registry=registry,
        )
        self.log_dirs = Gauge(
            "steward_cluster_log_dirs",
            "Number of log directories of live brokers with a problem: offline, uneven or cordoned; at most 64 of each.",
            ["namespace", "name", "problem"],
            registry=registry,
        )
        self.out_of_sync_voters = Gauge(
            "steward_cluster_out_of_sync_voters",
            "Number of voters of a KRaft quorum that are not in sync with its leader.",
            ["namespace", "name"],
            registry=registry,
        )
        self.drifted = Gauge(
            "steward_topics_drifted",
            "Number of Topics whose drift is not being corrected; updated at each resync.",
            registry=registry,
        )


class SparkMetrics:
    """Metrics of SparkApplications and their schedules."""

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
        for one in vars(self).values():
            one.clear()


class ProcessMetrics:
    """Metrics of the process: watches, Lease, shard, admission reviews and outgoing requests."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self.watch_lag = Gauge(
            "steward_watch_lag_seconds",
            "Time for which the watch has not delivered a change that a list contains, in seconds; 0 if up to date.",
            registry=registry,
        )
        self.shard = Gauge(
            "steward_shard",
            "Shard served by this process, from 0; the label shards is the number of shards.",
            ["shards"],
            registry=registry,
        )
        self.lease_held = Gauge(
            "steward_lease_held",
            "1 if this process holds the Lease and is active, 0 if it is standby; absent without Leases.",
            ["lease"],
            registry=registry,
        )
        self.admission_reviews = Counter(
            "steward_admission_reviews",
            "Admission reviews of resources by verdict: taken, warned or refused.",
            ["kind", "verdict"],
            registry=registry,
        )
        self._admin = Histogram(
            "steward_admin_call_duration_seconds",
            "Duration of one Admin request to Kafka, in seconds.",
            CALL,
            buckets=DURATIONS,
            registry=registry,
        )
        self._kube = Histogram(
            "steward_kubernetes_call_duration_seconds",
            "Duration of one request to the Kubernetes API, in seconds.",
            CALL,
            buckets=DURATIONS,
            registry=registry,
        )


class Metrics(ReconciliationMetrics, ResourceMetrics, SparkMetrics, ProcessMetrics):
    """All of the operator's metrics; one per process, a fresh one per test."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        ReconciliationMetrics.__init__(self, self.registry)
        ResourceMetrics.__init__(self, self.registry)
        SparkMetrics.__init__(self, self.registry)
        ProcessMetrics.__init__(self, self.registry)
        self.balance = BalanceMetrics(self.registry)

    @contextmanager
    def admin_call(self, name: str) -> Iterator[None]:
        """Time one Admin call."""
        with self._admin.labels(name).time():
            yield

    @contextmanager
    def kube_call(self, name: str) -> Iterator[None]:
        """Time one call to the Kubernetes API."""
        with self._kube.labels(name).time():
            yield

    @contextmanager
    def batch(self, kind: Kind, keys: Sequence[Key], clock: Callable[[], float] = time.time) -> Iterator[None]:
        """Time one batch, and show each of its resources as in progress while it goes on."""
        self.batch_size.labels(kind.value).observe(len(keys))
        self.reconciliations.labels(kind.value).inc(len(keys))
        started = clock()
        for key in keys:
            self.in_progress.labels(kind.value, key.namespace, key.name).set(started)
        try:
            with self.duration.labels(kind.value).time():
                yield
        finally:
            for key in keys:
                self.in_progress.remove(kind.value, key.namespace, key.name)

"""What the operator counts and times, for Prometheus, in a registry of its own."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from kafka_operator.names import Key, Kind

DURATIONS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
"""Seconds: from one small request to past every time limit."""

BATCHES = (1, 2, 5, 10, 20, 50, 100, 200)
"""Resources in a batch, up to the largest that the queue gives."""


KIND, CALL = ["kind"], ["call"]
"""Labels."""


class ReconciliationMetrics:
    """Tries to bring resources to what they declare."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self.reconciliations = Counter(
            "steward_reconciliations", "Tries to bring a resource to what it declares.", KIND, registry=registry
        )
        self.successful = Counter(
            "steward_reconciliations_successful",
            "Tries after which nothing was left to do.",
            KIND,
            registry=registry,
        )
        self.failed = Counter(
            "steward_reconciliations_failed", "Tries that are repeated after a delay.", KIND, registry=registry
        )
        self.duration = Histogram(
            "steward_reconciliations_duration_seconds",
            "Time of one batch of tries.",
            KIND,
            buckets=DURATIONS,
            registry=registry,
        )
        self.batch_size = Histogram(
            "steward_reconciliations_batch_size", "Resources in a batch.", KIND, buckets=BATCHES, registry=registry
        )
        self.in_progress = Gauge(
            "steward_reconciliations_in_progress_start_time_seconds",
            "When the try that goes on began, in Unix time; for alerts on what is stuck.",
            ["kind", "namespace", "name"],
            registry=registry,
        )
        self.queue_size = Gauge(
            "steward_reconciliations_queue_size", "Resources that wait for their turn.", registry=registry
        )


class ResourceMetrics:
    """The resources themselves, as they are now."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self.resources = Gauge("steward_resources", "Resources that are known.", KIND, registry=registry)
        self.ready = Gauge(
            "steward_resources_ready",
            "Resources that this process serves, by the status of their Ready condition: True, False or Unknown.",
            ["kind", "ready"],
            registry=registry,
        )
        self.throttle = Gauge(
            "steward_reassignment_throttle_bytes_per_second",
            "The replication throttle that is in force in Kafka for a Reassignment; none where there is none.",
            ["namespace", "name"],
            registry=registry,
        )
        self.progress = Gauge(
            "steward_reassignment_progress_ratio",
            "How far a Reassignment is that goes on, from 0 to 1.",
            ["namespace", "name"],
            registry=registry,
        )
        self.drifted = Gauge(
            "steward_topics_drifted",
            "Topics that differ from their Kafka topics, where that is not being mended; counted at each resync.",
            registry=registry,
        )


class SparkMetrics:
    """SparkApplications and their schedules."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self.spark_applications = Gauge(
            "steward_spark_applications",
            "SparkApplications that this process serves, by state; New for those that nobody has looked at yet.",
            ["state"],
            registry=registry,
        )
        self.spark_transitions = Counter(
            "steward_spark_transitions",
            "States that SparkApplications were brought into.",
            ["engine", "state"],
            registry=registry,
        )
        self.spark_submission = Histogram(
            "steward_spark_submission_duration_seconds",
            "Time from a SparkApplication's creation to that of its first driver; creation times are whole seconds.",
            buckets=DURATIONS,
            registry=registry,
        )
        self.spark_runs = Counter("steward_spark_scheduled_runs", "Runs that schedules created.", registry=registry)
        self.spark_missed = Counter(
            "steward_spark_missed_times", "Times of schedules that had no run of their own.", registry=registry
        )


class BalanceMetrics:
    """Results of the last study of the balance analytics, by its schedule, or by the SparkApplication without one."""

    def __init__(self, registry: CollectorRegistry) -> None:
        def gauge(name: str, about: str, *labels: str) -> Gauge:
            return Gauge(f"steward_balance_{name}", about, ["namespace", "name", *labels], registry=registry)

        self.window_end = gauge("window_end_seconds", "End of the studied time, in Unix time.")
        self.skew = gauge("skew", "Ratio of the highest broker to the mean over the window; 1 is even.", "resource")
        self.skew_before = gauge(
            "skew_before", "Skew of the resources that the moves balance, before the moves.", "resource"
        )
        self.skew_after = gauge("skew_after", "Skew expected after the proposed moves.", "resource")
        self.partitions = gauge("partitions", "Studied partitions.")
        self.hot_partitions = gauge("hot_partitions", "Partitions with too much load.")
        self.not_preferred_ratio = gauge(
            "not_preferred_ratio", "Part of partitions not led by their preferred replica."
        )
        self.moved_partitions = gauge("moved_partitions", "Partitions that the proposal changes.")
        self.bytes_to_move = gauge("bytes_to_move", "Bytes that the proposal copies.")
        self.disk_full_days = gauge("disk_full_days", "Days until the first disk is full.", "broker")
        self.left_outs = gauge("left_outs", "Data sources that the study lacked.")

    def clear(self) -> None:
        """Remove all values."""
        for one in vars(self).values():
            one.clear()


class ProcessMetrics:
    """The process: its watch, its Lease and shard, what it is asked and what it asks for."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self.watch_lag = Gauge(
            "steward_watch_lag_seconds",
            "For how long the watch owes a change that a list has shown; 0 when it owes none.",
            registry=registry,
        )
        self.shard = Gauge(
            "steward_shard",
            "The shard, from 0, that this process serves, of so many.",
            ["shards"],
            registry=registry,
        )
        self.lease_held = Gauge(
            "steward_lease_held",
            "1 when this process holds the Lease and works, 0 when it stands by for it; none without Leases.",
            ["lease"],
            registry=registry,
        )
        self.admission_reviews = Counter(
            "steward_admission_reviews",
            "Questions of the API server about resources, by the answer: taken, warned or refused.",
            ["kind", "verdict"],
            registry=registry,
        )
        self._admin = Histogram(
            "steward_admin_call_duration_seconds",
            "Time of one Admin call to Kafka.",
            CALL,
            buckets=DURATIONS,
            registry=registry,
        )
        self._kube = Histogram(
            "steward_kubernetes_call_duration_seconds",
            "Time of one call to the Kubernetes API.",
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

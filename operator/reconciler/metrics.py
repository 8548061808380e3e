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
    """Metrics of the current state of resources."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self.resources = Gauge("steward_resources", "Number of known resources.", KIND, registry=registry)
        self.ready = Gauge(
            "steward_resources_ready",
            "Number of resources served by this process, by status of their Ready condition: True, False or Unknown.",
            ["kind", "ready"],
            registry=registry,
        )


class ProcessMetrics:
    """Metrics of the process: watches, Lease, shard, admission reviews and requests to the Kubernetes API."""

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
        self._kube = Histogram(
            "steward_kubernetes_call_duration_seconds",
            "Duration of one request to the Kubernetes API, in seconds.",
            CALL,
            buckets=DURATIONS,
            registry=registry,
        )


class Metrics(ReconciliationMetrics, ResourceMetrics, ProcessMetrics):
    """Metrics that all kinds share; one per process, a fresh one per test."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        ReconciliationMetrics.__init__(self, self.registry)
        ResourceMetrics.__init__(self, self.registry)
        ProcessMetrics.__init__(self, self.registry)

    @contextmanager
    def kube_call(self, name: str) -> Iterator[None]:
        """Time one call to the Kubernetes API."""
        with self._kube.labels(name).time():
            yield

    @contextmanager
    def batch(self, kind: Kind, keys: Sequence[Key], clock: Callable[[], float] = time.time) -> Iterator[None]:
        """Time one batch, and show each of its resources as in progress while it goes on."""
        self.batch_size.labels(kind.name).observe(len(keys))
        self.reconciliations.labels(kind.name).inc(len(keys))
        started = clock()
        for key in keys:
            self.in_progress.labels(kind.name, key.namespace, key.name).set(started)
        try:
            with self.duration.labels(kind.name).time():
                yield
        finally:
            for key in keys:
                self.in_progress.remove(kind.name, key.namespace, key.name)

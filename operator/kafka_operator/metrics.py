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


class Metrics:
    """All of the operator's metrics; one per process, a fresh one per test."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        kind, call = ["kind"], ["call"]
        self.reconciliations = Counter(
            "steward_reconciliations", "Tries to bring a resource to what it declares.", kind, registry=self.registry
        )
        self.successful = Counter(
            "steward_reconciliations_successful",
            "Tries after which nothing was left to do.",
            kind,
            registry=self.registry,
        )
        self.failed = Counter(
            "steward_reconciliations_failed", "Tries that are repeated after a delay.", kind, registry=self.registry
        )
        self.duration = Histogram(
            "steward_reconciliations_duration_seconds",
            "Time of one batch of tries.",
            kind,
            buckets=DURATIONS,
            registry=self.registry,
        )
        self.batch_size = Histogram(
            "steward_reconciliations_batch_size", "Resources in a batch.", kind, buckets=BATCHES, registry=self.registry
        )
        self.in_progress = Gauge(
            "steward_reconciliations_in_progress_start_time_seconds",
            "When the try that goes on began, in Unix time; for alerts on what is stuck.",
            ["kind", "namespace", "name"],
            registry=self.registry,
        )
        self.queue_size = Gauge(
            "steward_reconciliations_queue_size", "Resources that wait for their turn.", registry=self.registry
        )
        self.resources = Gauge("steward_resources", "Resources that are known.", kind, registry=self.registry)
        self.ready = Gauge(
            "steward_resources_ready",
            "Resources that this process serves, by the status of their Ready condition: True, False or Unknown.",
            ["kind", "ready"],
            registry=self.registry,
        )
        self.throttle = Gauge(
            "steward_reassignment_throttle_bytes_per_second",
            "The replication throttle that is in force in Kafka for a Reassignment; none where there is none.",
            ["namespace", "name"],
            registry=self.registry,
        )
        self.progress = Gauge(
            "steward_reassignment_progress_ratio",
            "How far a Reassignment is that goes on, from 0 to 1.",
            ["namespace", "name"],
            registry=self.registry,
        )
        self.drifted = Gauge(
            "steward_topics_drifted",
            "Topics that differ from their Kafka topics, where that is not being mended; counted at each resync.",
            registry=self.registry,
        )
        self.watch_lag = Gauge(
            "steward_watch_lag_seconds",
            "For how long the watch owes a change that a list has shown; 0 when it owes none.",
            registry=self.registry,
        )
        self.shard = Gauge(
            "steward_shard",
            "The shard, from 0, that this process serves, of so many.",
            ["shards"],
            registry=self.registry,
        )
        self.lease_held = Gauge(
            "steward_lease_held",
            "1 when this process holds the Lease and works, 0 when it stands by for it; none without Leases.",
            ["lease"],
            registry=self.registry,
        )
        self._admin = Histogram(
            "steward_admin_call_duration_seconds",
            "Time of one Admin call to Kafka.",
            call,
            buckets=DURATIONS,
            registry=self.registry,
        )
        self._kube = Histogram(
            "steward_kubernetes_call_duration_seconds",
            "Time of one call to the Kubernetes API.",
            call,
            buckets=DURATIONS,
            registry=self.registry,
        )

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

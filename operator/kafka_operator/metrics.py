"""Prometheus metrics of the Kafka operator, in addition to those of the reconciler."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from prometheus_client import Gauge, Histogram

from reconciler.metrics import DURATIONS, Metrics


class KafkaMetrics(Metrics):
    """All metrics of the Kafka operator; one per process, a fresh one per test."""

    def __init__(self) -> None:
        super().__init__()
        self.throttle = Gauge(
            "steward_reassignment_throttle_bytes_per_second",
            "Replication throttle set in Kafka for a Reassignment, in bytes per second; absent without a throttle.",
            ["namespace", "name"],
            registry=self.registry,
        )
        self.progress = Gauge(
            "steward_reassignment_progress_ratio",
            "Progress of a Reassignment that has not ended, from 0 to 1.",
            ["namespace", "name"],
            registry=self.registry,
        )
        self.log_dirs = Gauge(
            "steward_cluster_log_dirs",
            "Number of log directories of live brokers with a problem: offline, uneven or cordoned; at most 64 of each.",
            ["namespace", "name", "problem"],
            registry=self.registry,
        )
        self.out_of_sync_voters = Gauge(
            "steward_cluster_out_of_sync_voters",
            "Number of voters of a KRaft quorum that are not in sync with its leader.",
            ["namespace", "name"],
            registry=self.registry,
        )
        self.drifted = Gauge(
            "steward_topics_drifted",
            "Number of Topics served by this process whose drift is not being corrected.",
            registry=self.registry,
        )
        self._admin = Histogram(
            "steward_admin_call_duration_seconds",
            "Duration of one Admin request to Kafka, in seconds.",
            ["call"],
            buckets=DURATIONS,
            registry=self.registry,
        )

    @contextmanager
    def admin_call(self, name: str) -> Iterator[None]:
        """Time one Admin call."""
        with self._admin.labels(name).time():
            yield

"""Gauges of Clusters, Topics and Reassignments: problems of clusters, drift, throttles and progress."""

from __future__ import annotations

from collections.abc import Sequence

from kafka_operator.metrics import KafkaMetrics
from kafka_operator.resources.cluster import Cluster
from kafka_operator.resources.reassignment import Reassignment
from kafka_operator.resources.topic import Topic


class KafkaGauges:
    """Sets the gauges to the current state; deleted resources are removed."""

    def __init__(self, metrics: KafkaMetrics) -> None:
        self._metrics = metrics

    def show_clusters(self, served: Sequence[Cluster]) -> None:
        """Show the problems of each Cluster: log directories, and voters that are out of sync."""
        self._metrics.log_dirs.clear()
        self._metrics.out_of_sync_voters.clear()
        for item in served:
            names, found = (item.key.namespace, item.key.name), item.status.log_dirs
            for problem, dirs in (("offline", found.offline), ("uneven", found.uneven), ("cordoned", found.cordoned)):
                self._metrics.log_dirs.labels(*names, problem).set(len(dirs))
            if item.status.quorum is not None:
                self._metrics.out_of_sync_voters.labels(*names).set(len(item.status.quorum.out_of_sync_voter_ids))

    def show_topics(self, served: Sequence[Topic]) -> None:
        """Count the Topics with drift."""
        self._metrics.drifted.set(sum(bool(topic.status.drift) for topic in served))

    def show_reassignments(self, served: Sequence[Reassignment]) -> None:
        """Show the throttle of each Reassignment that has one, and the progress of each that has not ended."""
        self._metrics.throttle.clear()
        self._metrics.progress.clear()
        for item in served:
            names, status = (item.key.namespace, item.key.name), item.status
            if status.throttle is not None:
                self._metrics.throttle.labels(*names).set(status.throttle.bytes_per_second)
            if status.progress is not None and status.state is not None and not status.state.ended:
                self._metrics.progress.labels(*names).set(status.progress.percent / 100)

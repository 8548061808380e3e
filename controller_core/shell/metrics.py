"""Metrics of the controller, by the names of Kafka's own controller metrics in Prometheus' form.

As with Kafka, topics that are to be deleted are neither offline nor out of balance, and a process that does not hold the
cluster counts nothing. Leaves out serving them over HTTP (http).
"""

from collections.abc import Iterator
from contextlib import contextmanager

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from controller_core.model.changes import Change, PartitionStates
from controller_core.model.cluster import Cluster
from controller_core.model.events import Event
from controller_core.model.ids import NO_LEADER, NOBODY

PREFIX = "kafka_controller_kafkacontroller"
STATS_PREFIX = "kafka_controller_controllerstats"
EVENT_SECONDS = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10)
"""Buckets around the controller's own target: 50 ms from a broker's end to its successors' news."""


class Metrics:
    """The controller's metrics in a registry of their own."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self.active = self._gauge("activecontrollercount", "1 while this process holds the cluster.")
        self.epoch = self._gauge("controllerepoch", "Epoch of the present tenure.")
        self.brokers = self._gauge("activebrokercount", "Registered brokers.")
        self.topics = self._gauge("globaltopiccount", "Topics.")
        self.all_partitions = self._gauge("globalpartitioncount", "Partitions.")
        self.offline = self._gauge("offlinepartitionscount", "Partitions without a leader.")
        self.imbalance = self._gauge(
            "preferredreplicaimbalancecount", "Partitions that their preferred replica does not lead."
        )
        self.to_delete = self._gauge("topicstodeletecount", "Topics queued for deletion.")
        self.moves = self._gauge("reassigningpartitionscount", "Partitions with a running reassignment.")
        self.elections = Counter(f"{STATS_PREFIX}_leaderelections", "Leaders elected.", registry=self.registry)
        self.unclean_elections = Counter(
            f"{STATS_PREFIX}_uncleanleaderelections", "Leaders elected from outside the ISR.", registry=self.registry
        )
        self.event_seconds = Histogram(
            "steward_controller_event_seconds",
            "From an event's arrival to the end of its turn.",
            ["event"],
            buckets=EVENT_SECONDS,
            registry=self.registry,
        )

    def _gauge(self, name: str, words: str) -> Gauge:
        return Gauge(f"{PREFIX}_{name}", words, registry=self.registry)

    @contextmanager
    def event(self, event: Event) -> Iterator[None]:
        """Time an event."""
        with self.event_seconds.labels(type(event).__name__).time():
            yield

    def change(self, cluster: Cluster, change: Change) -> None:
        """Count a committed change, before it is applied."""
        if isinstance(change, PartitionStates):
            elected = (change.leader != NO_LEADER) & (change.leader != cluster.columns.leader[change.rows])
            self.elections.inc(int(elected.sum()))
            if change.unclean is not None:
                self.unclean_elections.inc(int(change.unclean.sum()))

    def look_at(self, cluster: Cluster | None) -> None:
        """Look at the whole cluster: a few passes over columns. None: another holds it, so that nothing is ours to count."""
        if cluster is None:
            for gauge in (self.epoch, self.brokers, self.topics, self.all_partitions, self.offline, self.imbalance):
                gauge.set(0)
            self.to_delete.set(0)
            self.moves.set(0)
            return
        columns = cluster.columns
        rows = columns.used()
        in_service = cluster.not_deleting(rows)
        leader, preferred = columns.leader[in_service], columns.replicas[in_service, 0]
        self.epoch.set(cluster.controller_epoch)
        self.brokers.set(len(cluster.brokers))
        self.topics.set(len(cluster.topics))
        self.all_partitions.set(len(rows))
        self.offline.set(int((~cluster.registered()[leader]).sum()))
        self.imbalance.set(int(((leader != preferred) & (preferred != NOBODY)).sum()))
        self.to_delete.set(len(cluster.deletions))
        self.moves.set(len(cluster.moves))

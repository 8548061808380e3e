"""Metrics of a controller in KRaft mode, with the names of Kafka's (kafka.controller) in Prometheus' form.

As in Kafka, a standby reports the cluster by the records that it has applied; only the active controller knows heartbeats, and counts elections.
There is no queue of events: a request is decided when it is handled. Not here: the quorum's metrics (`shell.quorum.raft_metrics`), and times and sizes of
batches, which Kafka has as histograms of its brokers.

Source: QuorumControllerMetrics, ControllerMetadataMetrics, BrokerRegistrationState, MetadataLoaderMetrics, SnapshotEmitterMetrics.
"""

import time
from collections import Counter as Counts
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, Summary

from controller_core.model import Broker, Cluster, changes, columns
from controller_core.quorum_mode.sessions import Sessions
from controller_core.shell import metrics
from kafka_metadata.image import MetadataImage
from kafka_metadata.metadata_log import MetadataLog
from kafka_metadata.metadata_versions import KRAFT_VERSION

LOADER_PREFIX = "kafka_server_metadataloader"
EMITTER_PREFIX = "kafka_server_snapshotemitter"
NO_LEVEL = 0
"""Level of metadata.version before the first record of it, and of a feature that is not finalized."""
NO_CONTROLLER = -1


class LoaderMetrics:
    """Metadata that this process has loaded, and snapshots that it has written: gauges that are computed when they are read."""

    def __init__(self, registry: CollectorRegistry) -> None:
        def gauge(name: str, documentation: str, *labels: str) -> Gauge:
            return Gauge(name, documentation, labels, registry=registry)

        self._metadata_version = gauge(
            f"{LOADER_PREFIX}_currentmetadataversion", "Level of metadata.version in effect."
        )
        self._levels = gauge(f"{LOADER_PREFIX}_finalizedlevel", "Finalized level of a feature.", "featurename")
        self._loaded = gauge(f"{LOADER_PREFIX}_handleloadsnapshotcount", "Snapshots that this process has loaded.")
        self._controller = gauge(
            f"{LOADER_PREFIX}_currentcontrollerid", f"Id of the active controller, {NO_CONTROLLER} if it is not known."
        )
        self._size_bytes = gauge(
            f"{EMITTER_PREFIX}_latestsnapshotgeneratedbytes", "Size of the latest snapshot written."
        )
        self._age_ms = gauge(
            f"{EMITTER_PREFIX}_latestsnapshotgeneratedagems",
            "Milliseconds since the latest snapshot was written, or since the start.",
        )
        self._written: tuple[int, int] | None = None
        self._started_ms: int | None = None

    def snapshot_written(self, size_bytes: int, now_ms: int) -> None:
        """Note a snapshot that this process wrote."""
        self._written = size_bytes, now_ms

    def update(
        self, image: MetadataImage, kraft_version: int, leader_id: int | None, snapshots_loaded: int, now_ms: int
    ) -> None:
        """Compute all gauges."""
        if self._started_ms is None:
            self._started_ms = now_ms
        self._metadata_version.set(image.metadata_version or NO_LEVEL)
        self._levels.clear()
        for name, record in image.features.items():
            self._levels.labels(name).set(record.feature_level)
        self._levels.labels(KRAFT_VERSION).set(kraft_version)
        self._loaded.set(snapshots_loaded)
        self._controller.set(NO_CONTROLLER if leader_id is None else leader_id)
        size_bytes, written_ms = self._written or (0, self._started_ms)
        self._size_bytes.set(size_bytes)
        self._age_ms.set(now_ms - written_ms)


FENCED, IN_CONTROLLED_SHUTDOWN, ACTIVE = 10, 20, 30
"""Values of BrokerRegistrationState."""


class KRaftMetrics:
    """All metrics of one process; those of the cluster are computed when they are read."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self.loader = LoaderMetrics(registry)

        def gauge(name: str, documentation: str, *labels: str) -> Gauge:
            return Gauge(f"{metrics.PREFIX}_{name}", documentation, labels, registry=registry)

        self._active = gauge("activecontrollercount", "1 while this process is the active controller.")
        self._partitions = metrics.PartitionGauges(registry)
        self._active_brokers = gauge("activebrokercount", "Registered brokers that are not fenced.")
        self._fenced_brokers = gauge("fencedbrokercount", "Registered brokers that are fenced.")
        self._leaving_brokers = gauge("controlledshutdownbrokercount", "Brokers in controlled shutdown.")
        self._broker_state = gauge(
            "brokerregistrationstate",
            f"State of a registered broker: {FENCED} fenced, {IN_CONTROLLED_SHUTDOWN} in controlled shutdown, {ACTIVE} active.",
            "broker",
        )
        self._silence = gauge(
            "timesincelastheartbeatreceivedms",
            "Milliseconds since the last heartbeat of a broker, on the active controller.",
            "broker",
        )
        self._committed = gauge("lastcommittedrecordoffset", "Offset of the last committed record.")
        self._applied = gauge("lastappliedrecordoffset", "Offset of the last record that this process has applied.")
        self._applied_at = gauge("lastappliedrecordtimestamp", "Timestamp of that record.")
        self._lag = gauge("lastappliedrecordlagms", "Milliseconds since that timestamp; 0 on the active controller.")
        self._terms = Counter(
            f"{metrics.PREFIX}_newactivecontrollers", "Active terms seen by this process.", registry=registry
        )
        self._timed_out = Counter(
            f"{metrics.PREFIX}_timedoutbrokerheartbeats",
            "Brokers fenced because their sessions ended.",
            registry=registry,
        )
        self._unclean = metrics.unclean_elections(registry)
        self._processing_ms = Summary(
            f"{metrics.EVENTS_PREFIX}_eventqueueprocessingtimems",
            "Milliseconds of a decision and its records.",
            registry=registry,
        )
        self._event_seconds = Histogram(
            "steward_controller_event_seconds",
            "From the start of an event's decision to the append of its records.",
            ["event"],
            buckets=metrics.EVENT_SECONDS,
            registry=registry,
        )
        self._elected_from_elr = Counter(
            f"{metrics.STATS_PREFIX}_electionfromeligibleleaderreplicas",
            "Leaders elected from the eligible leader replicas (KIP-966).",
            registry=registry,
        )

    @contextmanager
    def deciding(self, event: str) -> Iterator[None]:
        """Time an event of the active controller."""
        began_s = time.perf_counter()
        try:
            yield
        finally:
            took_s = time.perf_counter() - began_s
            self._processing_ms.observe(took_s * 1000)
            self._event_seconds.labels(event).observe(took_s)

    def changing(self, cluster: Cluster, change: changes.Change) -> None:
        """Count the elections of a change, before it is applied."""
        if not isinstance(change, changes.PartitionStates) or change.unclean is None:
            return
        self._unclean.inc(int(change.unclean.sum()))
        eligible = columns.any_of(cluster.columns.elr_in(change.rows) == change.leader[:, None])
        self._elected_from_elr.inc(int((metrics.elected(cluster, change) & eligible).sum()))

    def timed_out(self) -> None:
        """Count a broker whose session has ended."""
        self._timed_out.inc()

    def term_began(self) -> None:
        """Count an active term, of this process or another."""
        self._terms.inc()

    def update(
        self, cluster: Cluster, log: MetadataLog, high_watermark: int, sessions: Sessions | None, now_ms: int
    ) -> None:
        """Compute all gauges. `sessions` are those of the active controller (None: a standby), `now_ms` is their time."""
        self._active.set(sessions is not None)
        self._partitions.update(cluster)
        self._update_brokers(cluster.brokers.values(), sessions, now_ms)
        self._committed.set(high_watermark - 1)
        self._applied.set(log.end_offset - 1)
        self._applied_at.set(log.last_timestamp_ms)
        is_behind = sessions is None and log.last_timestamp_ms >= 0
        self._lag.set(max(0, round(time.time() * 1000) - log.last_timestamp_ms) if is_behind else 0)

    def _update_brokers(self, brokers: Iterable[Broker], sessions: Sessions | None, now_ms: int) -> None:
        states = {broker.id: _state(broker) for broker in brokers}
        counts = Counts(states.values())
        self._fenced_brokers.set(counts[FENCED])
        self._leaving_brokers.set(counts[IN_CONTROLLED_SHUTDOWN])
        self._active_brokers.set(len(states) - counts[FENCED])
        self._broker_state.clear()
        for broker, state in states.items():
            self._broker_state.labels(str(broker)).set(state)
        self._silence.clear()
        for broker, silence_ms in ({} if sessions is None else sessions.silence_ms(now_ms)).items():
            self._silence.labels(str(broker)).set(silence_ms)


def _state(broker: Broker) -> int:
    if broker.fenced:
        return FENCED
    return IN_CONTROLLED_SHUTDOWN if broker.in_controlled_shutdown else ACTIVE

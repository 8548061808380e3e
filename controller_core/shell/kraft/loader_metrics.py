"""Metrics of the metadata that a controller has loaded and of the snapshots that it writes, with Kafka's names in Prometheus' form.

Source: MetadataLoaderMetrics and SnapshotEmitterMetrics of Kafka. Not here: times and sizes of batches, which Kafka has as histograms of its
brokers.
"""

from prometheus_client import CollectorRegistry, Gauge

from kafka_metadata.image import MetadataImage
from kafka_metadata.metadata_versions import KRAFT_VERSION

LOADER_PREFIX = "kafka_server_metadataloader"
EMITTER_PREFIX = "kafka_server_snapshotemitter"
NO_LEVEL = 0
"""Level of metadata.version before the first record of it, and of a feature that is not finalized."""
NO_CONTROLLER = -1


class LoaderMetrics:
    """Gauges that are computed when they are read."""

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

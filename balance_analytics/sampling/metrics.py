"""Metrics of the sampler (listed in docs/sampling.md). `kafka_node.probes` serves them."""

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from balance_analytics.sampling.missing_data import DataKind, MissingData, Reason

SECONDS = (0.1, 0.25, 0.5, 1, 2.5, 5, 10, 20, 30, 45, 60)
"""Buckets around the promised limit: 5 s for 200,000 partitions."""


class SamplerMetrics:
    """The metrics of one sampler, in its own registry."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self.samples = Counter(
            "steward_sampler_samples",
            "Samples by result: stored, sample_failed (no broker returned the metadata), write_failed.",
            ["result"],
            registry=self.registry,
        )
        self.sample_seconds = Histogram(
            "steward_sampler_sample_duration_seconds",
            "Duration of taking one sample.",
            buckets=SECONDS,
            registry=self.registry,
        )
        self.write_seconds = Histogram(
            "steward_sampler_write_duration_seconds",
            "Duration of storing one sample.",
            buckets=SECONDS,
            registry=self.registry,
        )
        self.partitions = Gauge("steward_sampler_partitions", "Partitions in the last sample.", registry=self.registry)
        self.brokers = Gauge("steward_sampler_brokers", "Brokers in the last sample.", registry=self.registry)
        self.missing_data = Gauge(
            "steward_sampler_missing",
            "Missing values of the last sample, by kind and reason.",
            ["kind", "reason"],
            registry=self.registry,
        )
        self.skipped_rounds = Counter(
            "steward_sampler_rounds_skipped",
            "Rounds skipped because the previous sample was not finished.",
            registry=self.registry,
        )
        self.written_bytes = Counter(
            "steward_sampler_written_bytes", "Bytes of stored samples, compressed.", registry=self.registry
        )
        self.last_stored = Gauge(
            "steward_sampler_last_stored_round_seconds",
            "Planned time of the last stored sample, in Unix time.",
            registry=self.registry,
        )
        for result in ("stored", "sample_failed", "write_failed"):
            self.samples.labels(result)

    def set_missing_data(self, missing_data: MissingData) -> None:
        """Set the counts of the last sample. A series that existed once is set to 0, so that alerts end."""
        for kind in DataKind:
            for reason in Reason:
                count = missing_data.counts[kind, reason]
                if count or (kind.value, reason.value) in self.missing_data._metrics:  # noqa: SLF001 -- there is no public method
                    self.missing_data.labels(kind.value, reason.value).set(count)

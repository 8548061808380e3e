"""Metrics of the sampler, in a registry of their own (docs/sampling.md has them all). Leaves out serving them (probes)."""

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from balance_analytics.sampling.left_out import LeftOut, Reason, What

SECONDS = (0.1, 0.25, 0.5, 1, 2.5, 5, 10, 20, 30, 45, 60)
"""Buckets around the promise: 200,000 partitions under 5 s."""


class SamplerMetrics:
    """What a sampler tells of itself."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self.looks = Counter(
            "steward_sampler_looks",
            "Looks by their end: kept, look_failed (nobody told the metadata), write_failed.",
            ["result"],
            registry=self.registry,
        )
        self.look_seconds = Histogram(
            "steward_sampler_look_duration_seconds", "Time of one look.", buckets=SECONDS, registry=self.registry
        )
        self.write_seconds = Histogram(
            "steward_sampler_write_duration_seconds", "Time to keep a look.", buckets=SECONDS, registry=self.registry
        )
        self.partitions = Gauge("steward_sampler_partitions", "Partitions in the last look.", registry=self.registry)
        self.brokers = Gauge("steward_sampler_brokers", "Brokers in the last look.", registry=self.registry)
        self.left_out = Gauge(
            "steward_sampler_left_out",
            "What the last look had to leave out, and why.",
            ["what", "reason"],
            registry=self.registry,
        )
        self.skipped = Counter(
            "steward_sampler_rounds_skipped", "Rounds that the look before overran.", registry=self.registry
        )
        self.written_bytes = Counter(
            "steward_sampler_written_bytes", "Bytes of kept looks, compressed.", registry=self.registry
        )
        self.last_kept = Gauge(
            "steward_sampler_last_kept_round_seconds",
            "The planned time of the last look that was kept, in Unix time.",
            registry=self.registry,
        )
        for result in ("kept", "look_failed", "write_failed"):
            self.looks.labels(result)

    def missing(self, left_out: LeftOut) -> None:
        """Show what the last look left out; what it did not stays at 0, once it was there."""
        for what in What:
            for reason in Reason:
                count = left_out.counts[what, reason]
                if count or (what.value, reason.value) in self.left_out._metrics:  # noqa: SLF001 -- no public way to ask
                    self.left_out.labels(what.value, reason.value).set(count)

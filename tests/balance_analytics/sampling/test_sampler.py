"""The sampler: rounds, metrics, probes and shutdown.

Sources: docs/analytics.md (once a minute, an overrun skipped and never queued), docs/sampling.md.
"""

import asyncio
import contextlib
import doctest
import re
from collections.abc import AsyncIterator
from pathlib import Path
from types import ModuleType

import aiohttp
import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client.metrics import MetricWrapperBase

from balance_analytics.model.samples import Samples
from balance_analytics.sampling import partitioner, rounds
from balance_analytics.sampling import sampler as sampler_module
from balance_analytics.sampling.metrics import SamplerMetrics
from balance_analytics.sampling.missing_data import MAX_EXAMPLES, DataKind, MissingData, Reason
from balance_analytics.sampling.rounds import Round, current_round, first_round, next_round
from balance_analytics.sampling.sampler import Sampler
from balance_analytics.sampling.settings import NODE_SETTINGS, SamplerSettings
from balance_analytics.sampling.sink import WriteFailed, Written
from kafka_node.probes import ProbeServer
from kafka_wire.net.cluster import Address, ClusterClient
from lab.processes.ports import free_port, release_port
from tests.balance_analytics.sampling.simulated_brokers import SimulatedCluster, running, two_topics

PAGE = Path(__file__).resolve().parents[3] / "docs" / "sampling.md"
MINUTE = 60_000
TIMES = st.integers(2**31, 2**42)
INTERVALS = st.integers(10, 3_600).map(lambda seconds: seconds * 1000)


@given(TIMES, INTERVALS)
def test_rounds_are_on_whole_multiples_of_the_interval(now_ms: int, interval_ms: int) -> None:
    """Two samplers, or one after a restart, use the same rounds."""
    plan = first_round(now_ms, interval_ms)

    assert (plan.round_ms % interval_ms, plan.skipped) == (0, 0)
    assert now_ms <= plan.round_ms < now_ms + interval_ms
    assert now_ms - interval_ms < current_round(now_ms, interval_ms) <= now_ms


@given(TIMES, INTERVALS, st.integers(-(2**30), 2**30))
def test_rounds_in_the_past_are_skipped_and_counted(at: int, interval_ms: int, took_ms: int) -> None:
    """No round is returned twice, unless the clock was set back by more than an interval."""
    previous = first_round(at, interval_ms).round_ms
    now_ms = previous + took_ms
    plan = next_round(previous, now_ms, interval_ms)

    assert plan.round_ms % interval_ms == 0
    assert now_ms <= plan.round_ms or took_ms < 0
    if took_ms >= -interval_ms:
        assert previous < plan.round_ms
        assert plan.skipped == (plan.round_ms - previous) // interval_ms - 1
    else:
        assert plan == first_round(now_ms, interval_ms)


def test_a_sample_that_ends_in_time_is_followed_by_the_next_round() -> None:
    """Also if it ends exactly at the time of that round."""
    assert next_round(MINUTE, MINUTE + 500, MINUTE) == Round(2 * MINUTE, 0)
    assert next_round(MINUTE, 2 * MINUTE, MINUTE) == Round(2 * MINUTE, 0)
    assert next_round(MINUTE, 2 * MINUTE + 1, MINUTE) == Round(3 * MINUTE, 1)


class MemorySink:
    """A sink that stores samples in a list, and fails with `failure` if it is set."""

    def __init__(self) -> None:
        self.samples: list[Samples] = []
        self.failure: str | None = None
        self.opened = 0
        self.stored = asyncio.Event()

    async def open(self, *, deadline: float) -> None:
        """Open, or fail."""
        assert deadline > asyncio.get_running_loop().time()
        if self.failure:
            raise WriteFailed(self.failure)
        self.opened += 1

    async def write(self, samples: Samples, *, deadline: float) -> Written:
        """Store a sample, or fail."""
        assert deadline > asyncio.get_running_loop().time()
        if self.failure:
            raise WriteFailed(self.failure)
        self.samples.append(samples)
        self.stored.set()
        return Written(1, 100)


class Clock:
    """A clock that a test sets."""

    def __init__(self, now_ms: int) -> None:
        self.now_ms = now_ms

    def __call__(self) -> int:
        return self.now_ms


@contextlib.asynccontextmanager
async def sampler(clock: Clock, sink: MemorySink) -> AsyncIterator[tuple[Sampler, SimulatedCluster, SamplerMetrics]]:
    """A sampler of a small simulated cluster."""
    async with running(SimulatedCluster(two_topics())) as cluster:
        client = ClusterClient(cluster.bootstrap(), NODE_SETTINGS)
        metrics = SamplerMetrics()
        settings = SamplerSettings(bootstrap=tuple(cluster.bootstrap()))
        try:
            yield Sampler(settings, client, sink, metrics, now_ms=clock), cluster, metrics
        finally:
            await client.close()


def metric_value(metrics: SamplerMetrics, name: str, **labels: str) -> float | None:
    """A metric's value."""
    return metrics.registry.get_sample_value(name, labels)


async def test_a_sample_is_stored_and_counted() -> None:
    """Its round is the current minute."""
    sink, clock = MemorySink(), Clock(5 * MINUTE + 20_000)
    async with sampler(clock, sink) as (one, _, metrics):
        assert await one.once() is None

    assert [sample.round_ms for sample in sink.samples] == [5 * MINUTE]
    assert metric_value(metrics, "steward_sampler_samples_total", result="stored") == 1
    assert metric_value(metrics, "steward_sampler_partitions") == 6
    assert metric_value(metrics, "steward_sampler_brokers") == 3
    assert metric_value(metrics, "steward_sampler_last_stored_round_seconds") == 300
    assert metric_value(metrics, "steward_sampler_written_bytes_total") == 100
    assert metric_value(metrics, "steward_sampler_sample_duration_seconds_count") == 1


async def test_missing_data_is_logged_once_and_its_metric_returns_to_zero(caplog: pytest.LogCaptureFixture) -> None:
    """A broker that is offline for an hour causes two log lines, not sixty."""
    caplog.set_level("INFO", logger=sampler_module.__name__)
    sink, clock = MemorySink(), Clock(5 * MINUTE)
    async with sampler(clock, sink) as (one, cluster, metrics):
        for leader in (-1, -1, -1, 1):
            cluster.topics["orders"][0].leader = leader
            await one.once()
            expected = 0 if leader == 1 else 1
            assert metric_value(metrics, "steward_sampler_missing", kind="offsets", reason="no_leader") == expected

    lines = [record.message for record in caplog.records]
    assert lines.count("Sample is incomplete") == 1
    assert lines.count("Samples are complete again") == 1


async def test_a_sample_of_an_unreachable_cluster_fails_with_the_reason() -> None:
    """It is counted as `sample_failed`, not as `write_failed`."""
    sink, clock = MemorySink(), Clock(5 * MINUTE)
    async with sampler(clock, sink) as (one, cluster, metrics):
        for broker_id in (1, 2, 3):
            await cluster.stop(broker_id)
        reason = await one.once()

    assert reason is not None
    assert reason.startswith("no broker returned the cluster's metadata")
    assert metric_value(metrics, "steward_sampler_samples_total", result="sample_failed") == 1
    assert sink.samples == []


async def test_the_sampler_is_ready_once_its_sink_was_opened() -> None:
    """Until then readiness has the reason, and each round tries again. Later failures do not change readiness."""
    sink, clock = MemorySink(), Clock(5 * MINUTE)
    sink.failure = "the topic is compacted"
    async with sampler(clock, sink) as (one, _, metrics):
        assert await one.once() == "the topic is compacted"
        assert one.not_ready() == "the topic is compacted"
        sink.failure = None
        assert await one.once() is None
        assert one.not_ready() is None
        sink.failure = "a leader is offline"
        assert await one.once() == "a leader is offline"
        assert one.not_ready() is None

    assert sink.opened == 1
    assert metric_value(metrics, "steward_sampler_samples_total", result="write_failed") == 2


async def test_one_sample_is_taken_each_round_until_the_sampler_is_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    """It waits for the round, and counts rounds that it skipped."""
    monkeypatch.setattr(sampler_module, "MAX_SLEEP_S", 0.01)
    sink, clock = MemorySink(), Clock(5 * MINUTE - 30_000)
    async with sampler(clock, sink) as (one, _, metrics):
        task = asyncio.create_task(one.run())
        await asyncio.sleep(0.05)
        assert sink.samples == []
        for now_ms in (5 * MINUTE, 6 * MINUTE, 9 * MINUTE + 1):
            sink.stored.clear()
            clock.now_ms = now_ms
            await asyncio.wait_for(sink.stored.wait(), 30)
        one.stop()
        await asyncio.wait_for(task, 30)

    assert [sample.round_ms for sample in sink.samples][:2] == [5 * MINUTE, 6 * MINUTE]
    assert sink.samples[2].round_ms in {7 * MINUTE, 10 * MINUTE}
    assert len(sink.samples) == 3
    assert metric_value(metrics, "steward_sampler_rounds_skipped_total") in {0, 2}


async def test_sampling_continues_when_the_clock_is_set_back(monkeypatch: pytest.MonkeyPatch) -> None:
    """It does not wait until the clock reaches the old time again."""
    monkeypatch.setattr(sampler_module, "MAX_SLEEP_S", 0.01)
    sink, clock = MemorySink(), Clock(90 * MINUTE - 1)
    async with sampler(clock, sink) as (one, _, _):
        task = asyncio.create_task(one.run())
        await asyncio.sleep(0.05)
        clock.now_ms = 30 * MINUTE
        await asyncio.wait_for(sink.stored.wait(), 30)
        one.stop()
        await asyncio.wait_for(task, 30)

    assert [sample.round_ms for sample in sink.samples] == [30 * MINUTE]


async def test_shutdown_waits_a_limited_time_for_the_sample_in_progress(monkeypatch: pytest.MonkeyPatch) -> None:
    """A silent cluster does not prevent shutdown."""
    monkeypatch.setattr(sampler_module, "STOP_GRACE_S", 0.05)
    sink, clock = MemorySink(), Clock(5 * MINUTE)
    async with sampler(clock, sink) as (one, cluster, _):
        cluster.silent.update({1, 2, 3})
        task = asyncio.create_task(one.run())
        await asyncio.wait_for(cluster.reached.wait(), 30)
        one.stop()
        await asyncio.wait_for(task, 30)

    assert sink.samples == []


async def test_probes_report_readiness_and_metrics() -> None:
    """`/readyz` returns the reason; `/metrics` is in Prometheus' text format."""
    reasons: list[str | None] = ["the topic is compacted"]
    probes, port = ProbeServer(SamplerMetrics().registry, lambda: reasons[0]), free_port()
    try:
        await probes.listen("127.0.0.1", port)
        async with aiohttp.ClientSession(f"http://127.0.0.1:{port}") as session:
            answers = []
            for path in ("/readyz", "/healthz", "/metrics"):
                async with session.get(path) as response:
                    answers.append((response.status, (await response.text()).splitlines()[0]))
            reasons[0] = None
            async with session.get("/readyz") as response:
                answers.append((response.status, "ready"))
    finally:
        await probes.close()
        release_port(port)

    assert answers[:2] == [(503, "the topic is compacted"), (200, "ok")]
    assert [status for status, _ in answers[2:]] == [200, 200]
    assert answers[2][1].startswith("# HELP steward_sampler_")


def test_documented_metrics_are_the_existing_ones() -> None:
    """Names and labels."""
    rows = re.findall(r"^\| `(steward_\w+)` \|([^|]*)\|", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    documented = {name: set(re.findall(r"`(\w+)`", labels)) for name, labels in rows}
    existing = {}
    for collector in SamplerMetrics().registry._collector_to_names:
        assert isinstance(collector, MetricWrapperBase), collector
        suffix = "_total" if collector._type == "counter" else ""
        existing[collector._name + suffix] = set(collector._labelnames)

    assert existing == documented


def test_every_reason_is_documented() -> None:
    """With what to do about it."""
    page = PAGE.read_text(encoding="utf-8")

    assert {reason.value for reason in Reason} <= set(re.findall(r"^\| `(\w+)` \|", page, re.MULTILINE))


def test_missing_data_counts_everything_and_keeps_few_messages() -> None:
    """A thousand offline brokers are counted, with eight messages."""
    missing_data = MissingData()
    for broker in range(1_000):
        missing_data.add(DataKind.SIZES, Reason.CONNECTION, 2, f"broker {broker}")
        missing_data.add(DataKind.SIZES, Reason.ABSENT, 0, "nothing is missing here")

    assert dict(missing_data.counts) == {(DataKind.SIZES, Reason.CONNECTION): 2_000}
    assert len(missing_data.examples) == MAX_EXAMPLES


def test_settings_out_of_range_are_rejected() -> None:
    """The error has the limits."""
    with pytest.raises(ValueError, match="0 bootstrap servers"):
        SamplerSettings(bootstrap=())
    with pytest.raises(ValueError, match="an interval of 4 s; 5 to 3600"):
        SamplerSettings(bootstrap=(Address("a", 1),), interval_s=4)


@pytest.mark.parametrize("module", [partitioner, rounds], ids=lambda module: module.__name__)
def test_examples_in_docstrings_are_true(module: ModuleType) -> None:
    """They are run by doctest."""
    found = doctest.testmod(module)

    assert found.attempted
    assert found.failed == 0

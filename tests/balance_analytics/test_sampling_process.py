"""When looks are taken, what is counted, and how the process behaves: rounds, metrics, probes, the end.

Sources: docs/analytics.md (once a minute, an overrun skipped and never piled up), docs/sampling.md.
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
from balance_analytics.sampling import partitioner, rounds, settings
from balance_analytics.sampling import process as process_module
from balance_analytics.sampling.cluster_link import Address, ClusterLink
from balance_analytics.sampling.left_out import MAX_EXAMPLES, LeftOut, Reason, What
from balance_analytics.sampling.metrics import SamplerMetrics
from balance_analytics.sampling.process import Sampler
from balance_analytics.sampling.rounds import Round, first_round, next_round, present_round
from balance_analytics.sampling.settings import NODE_SETTINGS, SamplerSettings, parse_bootstrap
from balance_analytics.sampling.sink import WriteFailed, Written
from kafka_node.probes import ProbeServer
from lab.ports import free_port, release_port
from tests.balance_analytics.sampling_brokers import StandInCluster, running, two_topics

PAGE = Path(__file__).resolve().parents[2] / "docs" / "sampling.md"
MINUTE = 60_000
TIMES = st.integers(2**31, 2**42)
INTERVALS = st.integers(10, 3_600).map(lambda seconds: seconds * 1000)


@given(TIMES, INTERVALS)
def test_rounds_are_on_whole_multiples_of_the_interval(now_ms: int, interval_ms: int) -> None:
    """Two samplers, and one after a restart, look at the same times."""
    plan = first_round(now_ms, interval_ms)

    assert 0 == plan.round_ms % interval_ms == plan.skipped
    assert now_ms <= plan.round_ms < now_ms + interval_ms
    assert now_ms - interval_ms < present_round(now_ms, interval_ms) <= now_ms


@given(TIMES, INTERVALS, st.integers(-(2**30), 2**30))
def test_rounds_that_a_look_overran_fall_out_and_are_counted(at: int, interval_ms: int, took_ms: int) -> None:
    """Never piled up; never twice the same round, unless the clock was set back by more than an interval."""
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


def test_a_look_that_ends_on_time_is_followed_by_the_next_round() -> None:
    """And one that ends at the very moment of a round still takes that one."""
    assert next_round(MINUTE, MINUTE + 500, MINUTE) == Round(2 * MINUTE, 0)
    assert next_round(MINUTE, 2 * MINUTE, MINUTE) == Round(2 * MINUTE, 0)
    assert next_round(MINUTE, 2 * MINUTE + 1, MINUTE) == Round(3 * MINUTE, 1)


class Kept:
    """A sink that keeps looks in a list, and fails as it is told to."""

    def __init__(self) -> None:
        self.looks: list[Samples] = []
        self.refuses: str | None = None
        self.opened = 0
        self.kept = asyncio.Event()

    async def open(self, *, deadline: float) -> None:
        """Be ready."""
        assert deadline > asyncio.get_running_loop().time()
        if self.refuses:
            raise WriteFailed(self.refuses)
        self.opened += 1

    async def write(self, samples: Samples, *, deadline: float) -> Written:
        """Keep a look."""
        assert deadline > asyncio.get_running_loop().time()
        if self.refuses:
            raise WriteFailed(self.refuses)
        self.looks.append(samples)
        self.kept.set()
        return Written(1, 100)


class Clock:
    """A clock that a test sets."""

    def __init__(self, now_ms: int) -> None:
        self.now_ms = now_ms

    def __call__(self) -> int:
        return self.now_ms


@contextlib.asynccontextmanager
async def sampler(clock: Clock, sink: Kept) -> AsyncIterator[tuple[Sampler, StandInCluster, SamplerMetrics]]:
    """A sampler of a small cluster."""
    async with running(StandInCluster(two_topics())) as cluster:
        link = ClusterLink(cluster.bootstrap(), NODE_SETTINGS)
        metrics = SamplerMetrics()
        settings = SamplerSettings(bootstrap=tuple(cluster.bootstrap()))
        try:
            yield Sampler(settings, link, sink, metrics, now_ms=clock), cluster, metrics
        finally:
            await link.close()


def sample(metrics: SamplerMetrics, name: str, **labels: str) -> float | None:
    """A metric's value."""
    return metrics.registry.get_sample_value(name, labels)


async def test_a_look_is_kept_and_counted() -> None:
    """Under its round: the minute that it was taken in."""
    sink, clock = Kept(), Clock(5 * MINUTE + 20_000)
    async with sampler(clock, sink) as (one, _, metrics):
        assert await one.once() is None

    assert [look.round_ms for look in sink.looks] == [5 * MINUTE]
    assert sample(metrics, "steward_sampler_looks_total", result="kept") == 1
    assert sample(metrics, "steward_sampler_partitions") == 6
    assert sample(metrics, "steward_sampler_brokers") == 3
    assert sample(metrics, "steward_sampler_last_kept_round_seconds") == 300
    assert sample(metrics, "steward_sampler_written_bytes_total") == 100
    assert sample(metrics, "steward_sampler_look_duration_seconds_count") == 1


async def test_what_is_left_out_is_shown_and_said_once(caplog: pytest.LogCaptureFixture) -> None:
    """A broker away for an hour is sixty looks and two lines in the log; the metric falls back to 0 when it is there again."""
    caplog.set_level("INFO", logger=process_module.__name__)
    sink, clock = Kept(), Clock(5 * MINUTE)
    async with sampler(clock, sink) as (one, cluster, metrics):
        for leader in (-1, -1, -1, 1):
            cluster.topics["orders"][0].leader = leader
            await one.once()
            expected = 0 if leader == 1 else 1
            assert sample(metrics, "steward_sampler_left_out", what="offsets", reason="no_leader") == expected

    lines = [record.message for record in caplog.records]
    assert lines.count("something is left out") == 1
    assert lines.count("nothing is left out any more") == 1


async def test_a_cluster_that_is_away_is_a_failed_look_with_its_reason() -> None:
    """Counted apart from one that could not be kept; the process goes on."""
    sink, clock = Kept(), Clock(5 * MINUTE)
    async with sampler(clock, sink) as (one, cluster, metrics):
        for broker_id in (1, 2, 3):
            await cluster.stop(broker_id)
        why = await one.once()

    assert why is not None
    assert why.startswith("no broker tells the cluster's metadata")
    assert sample(metrics, "steward_sampler_looks_total", result="look_failed") == 1
    assert sink.looks == []


async def test_it_is_not_ready_until_there_is_a_place_to_keep_looks_in() -> None:
    """And says what is missing; the next round tries again."""
    sink, clock = Kept(), Clock(5 * MINUTE)
    sink.refuses = "the topic is compacted"
    async with sampler(clock, sink) as (one, _, metrics):
        assert await one.once() == "the topic is compacted"
        assert one.not_ready() == "the topic is compacted"
        sink.refuses = None
        assert await one.once() is None
        assert one.not_ready() is None
        sink.refuses = "a leader is away"
        assert await one.once() == "a leader is away"
        assert one.not_ready() is None

    assert sink.opened == 1
    assert sample(metrics, "steward_sampler_looks_total", result="write_failed") == 2


async def test_it_looks_once_a_round_until_it_is_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    """It waits for the round, takes it once, counts those that were overrun, and ends cleanly."""
    monkeypatch.setattr(process_module, "MAX_SLEEP_S", 0.01)
    sink, clock = Kept(), Clock(5 * MINUTE - 30_000)
    async with sampler(clock, sink) as (one, _, metrics):
        running_one = asyncio.create_task(one.run())
        await asyncio.sleep(0.05)
        assert sink.looks == []
        for now_ms in (5 * MINUTE, 6 * MINUTE, 9 * MINUTE + 1):
            sink.kept.clear()
            clock.now_ms = now_ms
            await asyncio.wait_for(sink.kept.wait(), 30)
        one.stop()
        await asyncio.wait_for(running_one, 30)

    assert [look.round_ms for look in sink.looks][:2] == [5 * MINUTE, 6 * MINUTE]
    assert sink.looks[2].round_ms in {7 * MINUTE, 10 * MINUTE}
    assert len(sink.looks) == 3
    assert sample(metrics, "steward_sampler_rounds_skipped_total") in {0, 2}


async def test_a_clock_that_is_set_back_is_followed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody waits an hour for the time to come round again."""
    monkeypatch.setattr(process_module, "MAX_SLEEP_S", 0.01)
    sink, clock = Kept(), Clock(90 * MINUTE - 1)
    async with sampler(clock, sink) as (one, _, _):
        running_one = asyncio.create_task(one.run())
        await asyncio.sleep(0.05)
        clock.now_ms = 30 * MINUTE
        await asyncio.wait_for(sink.kept.wait(), 30)
        one.stop()
        await asyncio.wait_for(running_one, 30)

    assert [look.round_ms for look in sink.looks] == [30 * MINUTE]


async def test_a_look_under_way_has_a_moment_left_when_the_process_is_to_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """A silent cluster does not hold the end up."""
    monkeypatch.setattr(process_module, "STOP_GRACE_S", 0.05)
    sink, clock = Kept(), Clock(5 * MINUTE)
    async with sampler(clock, sink) as (one, cluster, _):
        cluster.silent.update({1, 2, 3})
        running_one = asyncio.create_task(one.run())
        await asyncio.wait_for(cluster.reached.wait(), 30)
        one.stop()
        await asyncio.wait_for(running_one, 30)

    assert sink.looks == []


async def test_probes_say_how_it_is() -> None:
    """`/readyz` gives the reason; `/metrics` is Prometheus' text."""
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


def test_the_metrics_that_are_documented_are_there_and_the_reverse() -> None:
    """Names and labels alike: alerts are written by the page."""
    rows = re.findall(r"^\| `(steward_\w+)` \|([^|]*)\|", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    documented = {name: set(re.findall(r"`(\w+)`", labels)) for name, labels in rows}
    existing = {}
    for collector in SamplerMetrics().registry._collector_to_names:
        assert isinstance(collector, MetricWrapperBase), collector
        suffix = "_total" if collector._type == "counter" else ""
        existing[collector._name + suffix] = set(collector._labelnames)

    assert existing == documented


def test_every_reason_is_documented() -> None:
    """Who reads one in an alert finds what to do."""
    page = PAGE.read_text(encoding="utf-8")

    assert {reason.value for reason in Reason} <= set(re.findall(r"^\| `(\w+)` \|", page, re.MULTILINE))


def test_words_are_kept_of_some_and_counts_of_all() -> None:
    """Limits on everything: a thousand brokers that are away are a thousand counts and eight lines."""
    left_out = LeftOut()
    for broker in range(1_000):
        left_out.add(What.SIZES, Reason.CONNECTION, 2, f"broker {broker}")
        left_out.add(What.SIZES, Reason.ABSENT, 0, "nothing is missing here")

    assert dict(left_out.counts) == {(What.SIZES, Reason.CONNECTION): 2_000}
    assert len(left_out.examples) == MAX_EXAMPLES


@pytest.mark.parametrize("server", ["broker", "broker:", ":9092", "broker:0", "broker:99999", "broker:٣"])
def test_what_is_no_address_is_refused(server: str) -> None:
    """At the start."""
    with pytest.raises(ValueError, match="is not HOST:PORT"):
        parse_bootstrap([server])


def test_settings_that_cannot_be_are_refused() -> None:
    """Limits, with what they are."""
    with pytest.raises(ValueError, match="0 bootstrap servers"):
        SamplerSettings(bootstrap=())
    with pytest.raises(ValueError, match="an interval of 4 s; 5 to 3600"):
        SamplerSettings(bootstrap=(Address("a", 1),), interval_s=4)


@pytest.mark.parametrize("module", [partitioner, rounds, settings], ids=lambda module: module.__name__)
def test_examples_are_true(module: ModuleType) -> None:
    """The examples in docstrings are run as they stand."""
    found = doctest.testmod(module)

    assert found.attempted
    assert found.failed == 0

"""Sampler: takes one sample per round and stores it, with metrics and logs, until it is stopped."""

import asyncio
import logging
import time
from collections.abc import Callable

from balance_analytics.sampling import rounds
from balance_analytics.sampling.metrics import SamplerMetrics
from balance_analytics.sampling.missing_data import MissingData
from balance_analytics.sampling.sample import take_sample
from balance_analytics.sampling.settings import SamplerSettings
from balance_analytics.sampling.sink import Sink, WriteFailed
from kafka_wire.net.client import RequestFailed
from kafka_wire.net.cluster import ClusterClient

log = logging.getLogger(__name__)

SAMPLE_SHARE, WRITE_SHARE = 0.5, 0.9
"""Deadlines of taking and of storing a sample, as parts of the interval: the next round starts on time."""
MAX_SLEEP_S = 5.0
"""Longest sleep before the clock is read again, so that a clock that was set is noticed."""
STOP_GRACE_S = 5.0
"""Time for the sample in progress to finish at shutdown."""


def unix_ms() -> int:
    """Return the current Unix time in milliseconds."""
    return time.time_ns() // 1_000_000


class Sampler:
    """Samples one cluster and stores the samples."""

    def __init__(
        self,
        settings: SamplerSettings,
        client: ClusterClient,
        sink: Sink,
        metrics: SamplerMetrics,
        *,
        now_ms: Callable[[], int] = unix_ms,
    ) -> None:
        self._settings = settings
        self._interval_ms = settings.interval_s * 1000
        self._client = client
        self._sink = sink
        self._metrics = metrics
        self._now_ms = now_ms
        self._stopping = asyncio.Event()
        self._open_failure: str | None = "no sample was taken yet"
        self._logged_kinds: frozenset[object] = frozenset()

    def stop(self) -> None:
        """Make `run` return soon."""
        self._stopping.set()

    def not_ready(self) -> str | None:
        """Return why samples cannot be stored, or None if they can."""
        return self._open_failure

    async def run(self) -> None:
        """Take a sample each round until `stop`; the sample in progress then has STOP_GRACE_S to finish."""
        plan = rounds.first_round(self._now_ms(), self._interval_ms)
        while (round_ms := await self._wait_for(plan.round_ms)) is not None:
            sample = asyncio.create_task(self.once(round_ms))
            stopping = asyncio.create_task(self._stopping.wait())
            await asyncio.wait({sample, stopping}, return_when=asyncio.FIRST_COMPLETED)
            stopping.cancel()
            try:
                await asyncio.wait_for(sample, STOP_GRACE_S if self._stopping.is_set() else None)
            except TimeoutError:
                log.warning("Shutting down; abandoned the sample in progress")
            plan = rounds.next_round(round_ms, self._now_ms(), self._interval_ms)
            if plan.skipped and not self._stopping.is_set():
                self._metrics.skipped_rounds.inc(plan.skipped)
                log.warning(
                    "Sample took longer than the interval; rounds were skipped", extra={"rounds_skipped": plan.skipped}
                )

    async def once(self, round_ms: int | None = None) -> str | None:
        """Take one sample now and store it; return the reason of a failure, or None."""
        round_ms = rounds.current_round(self._now_ms(), self._interval_ms) if round_ms is None else round_ms
        start_s = asyncio.get_running_loop().time()
        sample_deadline, write_deadline = (
            start_s + self._settings.interval_s * share for share in (SAMPLE_SHARE, WRITE_SHARE)
        )
        try:
            if self._open_failure is not None:
                await self._sink.open(deadline=sample_deadline)
                self._open_failure = None
            with self._metrics.sample_seconds.time():
                sample = await take_sample(
                    self._client,
                    round_ms,
                    deadline=sample_deadline,
                    now_ms=self._now_ms,
                    with_committed=self._settings.with_committed,
                )
            self._metrics.partitions.set(len(sample.samples))
            self._metrics.brokers.set(sample.brokers)
            self._report_missing(sample.missing_data)
            with self._metrics.write_seconds.time():
                written = await self._sink.write(sample.samples, deadline=write_deadline)
        except RequestFailed as error:
            return self._failed("sample_failed", str(error))
        except WriteFailed as error:
            if self._open_failure is not None:
                self._open_failure = str(error)
            return self._failed("write_failed", str(error))
        self._metrics.written_bytes.inc(written.size_bytes)
        self._metrics.samples.labels("stored").inc()
        self._metrics.last_stored.set(round_ms / 1000)
        log.info(
            "Sample stored",
            extra={
                "partitions": len(sample.samples),
                "brokers": sample.brokers,
                "pieces": written.pieces,
                "bytes": written.size_bytes,
                "duration_s": round(asyncio.get_running_loop().time() - start_s, 3),
            },
        )
        return None

    async def _wait_for(self, round_ms: int) -> int | None:
        """Wait for a round and return it, or the one that is due if the clock was set back. Return None if the sampler is stopped."""
        while not self._stopping.is_set():
            left_ms = round_ms - self._now_ms()
            if left_ms <= 0:
                return round_ms
            if left_ms > self._interval_ms:  # the clock was set back: continue with the rounds of the new time
                round_ms = rounds.first_round(self._now_ms(), self._interval_ms).round_ms
                continue
            try:
                await asyncio.wait_for(self._stopping.wait(), min(left_ms / 1000, MAX_SLEEP_S))
            except TimeoutError:
                continue
        return None

    def _failed(self, result: str, reason: str) -> str:
        self._metrics.samples.labels(result).inc()
        log.error("Sample failed", extra={"result": result, "reason": reason})
        return reason

    def _report_missing(self, missing_data: MissingData) -> None:
        """Update the metrics of missing data at each sample, and log it when its kinds change."""
        self._metrics.set_missing_data(missing_data)
        kinds = frozenset(missing_data.counts)
        if kinds == self._logged_kinds:
            return
        self._logged_kinds = kinds
        if not kinds:
            log.info("Samples are complete again")
            return
        counts = {f"{kind}/{reason}": count for (kind, reason), count in missing_data.counts.items()}
        log.warning("Sample is incomplete", extra={"missing": counts, "reason": list(missing_data.examples)})

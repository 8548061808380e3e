"""The sampler: a look each round, kept, counted and logged; one at a time, until it is told to stop.

Leaves out how it looks (look), when (rounds), where looks go (sink) and how the process is started (steward.sampler_command).
"""

import asyncio
import logging
import time
from collections.abc import Callable

from balance_analytics.sampling import rounds
from balance_analytics.sampling.asking import AskFailed
from balance_analytics.sampling.cluster_link import ClusterLink
from balance_analytics.sampling.left_out import LeftOut
from balance_analytics.sampling.look import take_look
from balance_analytics.sampling.metrics import SamplerMetrics
from balance_analytics.sampling.settings import SamplerSettings
from balance_analytics.sampling.sink import Sink, WriteFailed

log = logging.getLogger(__name__)

LOOK_SHARE, WRITE_SHARE = 0.5, 0.9
"""Parts of the interval after which a look, and the keeping of it, are due to be over: so that the next is on time."""
MAX_SLEEP_S = 5.0
"""Between two looks at the clock: one that is set while the sampler waits is noticed within this."""
STOP_GRACE_S = 5.0
"""What a look under way has left when the process is to end."""


def unix_ms() -> int:
    """Return the present time."""
    return time.time_ns() // 1_000_000


class Sampler:
    """Looks at one cluster and keeps what it saw."""

    def __init__(
        self,
        settings: SamplerSettings,
        link: ClusterLink,
        sink: Sink,
        metrics: SamplerMetrics,
        *,
        now_ms: Callable[[], int] = unix_ms,
    ) -> None:
        self._settings = settings
        self._interval_ms = settings.interval_s * 1000
        self._link = link
        self._sink = sink
        self._metrics = metrics
        self._now_ms = now_ms
        self._stopping = asyncio.Event()
        self._not_open: str | None = "no look was tried yet"
        self._told: frozenset[object] = frozenset()

    def stop(self) -> None:
        """Have `run` end soon."""
        self._stopping.set()

    def not_ready(self) -> str | None:
        """Say why looks cannot be kept; None: they can."""
        return self._not_open

    async def run(self) -> None:
        """Look once a round until `stop`; a look under way then has STOP_GRACE_S."""
        plan = rounds.first_round(self._now_ms(), self._interval_ms)
        while (round_ms := await self._wait_for(plan.round_ms)) is not None:
            look = asyncio.create_task(self.once(round_ms))
            stopping = asyncio.create_task(self._stopping.wait())
            await asyncio.wait({look, stopping}, return_when=asyncio.FIRST_COMPLETED)
            stopping.cancel()
            try:
                await asyncio.wait_for(look, STOP_GRACE_S if self._stopping.is_set() else None)
            except TimeoutError:
                log.warning("the look under way was given up: the process is to end")
            plan = rounds.next_round(round_ms, self._now_ms(), self._interval_ms)
            if plan.skipped and not self._stopping.is_set():
                self._metrics.skipped.inc(plan.skipped)
                log.warning("a look overran its interval", extra={"rounds_skipped": plan.skipped})

    async def once(self, round_ms: int | None = None) -> str | None:
        """Look once, now, and keep it; returns why that failed, None: it did not."""
        round_ms = rounds.present_round(self._now_ms(), self._interval_ms) if round_ms is None else round_ms
        begun = asyncio.get_running_loop().time()
        look_deadline, write_deadline = (
            begun + self._settings.interval_s * share for share in (LOOK_SHARE, WRITE_SHARE)
        )
        try:
            if self._not_open is not None:
                await self._sink.open(deadline=look_deadline)
                self._not_open = None
            with self._metrics.look_seconds.time():
                look = await take_look(
                    self._link,
                    round_ms,
                    deadline=look_deadline,
                    now_ms=self._now_ms,
                    with_committed=self._settings.with_committed,
                )
            self._metrics.partitions.set(len(look.samples))
            self._metrics.brokers.set(look.brokers)
            self._tell_missing(look.left_out)
            with self._metrics.write_seconds.time():
                written = await self._sink.write(look.samples, deadline=write_deadline)
        except AskFailed as why:
            return self._failed("look_failed", str(why))
        except WriteFailed as why:
            if self._not_open is not None:
                self._not_open = str(why)
            return self._failed("write_failed", str(why))
        self._metrics.written_bytes.inc(written.size_bytes)
        self._metrics.looks.labels("kept").inc()
        self._metrics.last_kept.set(round_ms / 1000)
        log.info(
            "looked",
            extra={
                "partitions": len(look.samples),
                "brokers": look.brokers,
                "pieces": written.pieces,
                "bytes": written.size_bytes,
                "duration_s": round(asyncio.get_running_loop().time() - begun, 3),
            },
        )
        return None

    async def _wait_for(self, round_ms: int) -> int | None:
        """Wait until a round, or the one that is due when the clock was set back; None: the process is to end."""
        while not self._stopping.is_set():
            left_ms = round_ms - self._now_ms()
            if left_ms <= 0:
                return round_ms
            if left_ms > self._interval_ms:  # the clock was set back: nobody waits for it to come round again
                round_ms = rounds.first_round(self._now_ms(), self._interval_ms).round_ms
                continue
            try:
                await asyncio.wait_for(self._stopping.wait(), min(left_ms / 1000, MAX_SLEEP_S))
            except TimeoutError:
                continue
        return None

    def _failed(self, result: str, words: str) -> str:
        self._metrics.looks.labels(result).inc()
        log.error("a look failed", extra={"result": result, "why": words})
        return words

    def _tell_missing(self, left_out: LeftOut) -> None:
        """Show what is missing in metrics at each look, and in the log when it changes its kind."""
        self._metrics.missing(left_out)
        kinds = frozenset(left_out.counts)
        if kinds == self._told:
            return
        self._told = kinds
        if not kinds:
            log.info("nothing is left out any more")
            return
        counts = {f"{what}/{reason}": count for (what, reason), count in left_out.counts.items()}
        log.warning("something is left out", extra={"left_out": counts, "why": list(left_out.examples)})

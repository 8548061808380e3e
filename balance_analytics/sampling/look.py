"""One look at a cluster: metadata first, then all brokers side by side, and whatever came by the look's deadline.

A broker that is away, slow or not willing leaves its part unknown, with a reason; everything else is in the look. Leaves out when
looks are taken (rounds, process) and where they go (topic_writer, parquet_writer).
"""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from balance_analytics.model.samples import Samples
from balance_analytics.sampling import committed, log_dirs, offsets
from balance_analytics.sampling.cluster_link import ClusterLink
from balance_analytics.sampling.layout import Layout, layout_of
from balance_analytics.sampling.left_out import LeftOut, Reason, What

BROKERS_AT_ONCE = 32
"""Answers of so many may be held at once: sizes of 4,000 replicas each, a hundred kilobytes."""


@dataclass(frozen=True, slots=True)
class Look:
    """What was seen, and what was left out."""

    samples: Samples
    left_out: LeftOut
    brokers: int


async def take_look(
    link: ClusterLink, round_ms: int, *, deadline: float, now_ms: Callable[[], int], with_committed: bool
) -> Look:
    """Look once; `deadline` is loop time. Raises AskFailed when nobody tells the cluster's metadata."""
    begun_ms = now_ms()
    left_out = LeftOut()
    layout = layout_of(await link.metadata(deadline=deadline), left_out)
    offsets.no_leader(layout, left_out)
    turns = asyncio.Semaphore(BROKERS_AT_ONCE)

    async def look_at(broker_id: int) -> None:
        async with turns:
            await _look_at(link, broker_id, layout, left_out, deadline, now_ms)

    holders = np.unique(np.concatenate((layout.replicas.ravel(), layout.leader)))
    await asyncio.gather(*(look_at(int(one)) for one in holders[holders >= 0]))
    if with_committed:
        await committed.ask_committed(link, layout, left_out, deadline=deadline)
    return Look(layout.samples(round_ms, begun_ms), left_out, len(link.broker_ids))


async def _look_at(
    link: ClusterLink,
    broker_id: int,
    layout: Layout,
    left_out: LeftOut,
    deadline: float,
    now_ms: Callable[[], int],
) -> None:
    led = np.flatnonzero(layout.leader == broker_id)
    broker = link.broker(broker_id)
    if broker is None:
        words = f"broker {broker_id} is not there: {len(led)} partitions"
        left_out.add(What.OFFSETS, Reason.CONNECTION, len(led), words)
        log_dirs.unasked(broker_id, layout, left_out)
        return
    # Offsets first: their times matter for rates, a size's does not.
    await offsets.ask_offsets(broker, led, layout, left_out, deadline=deadline, now_ms=now_ms)
    await log_dirs.ask_sizes(broker, broker_id, layout, left_out, deadline=deadline)

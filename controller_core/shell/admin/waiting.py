"""How long a caller is kept waiting after its wish was decided.

Leaves out what is waited for: the active controller knows.
"""

import asyncio
from collections.abc import Iterable

from controller_core.model.cluster import Cluster
from controller_core.shell.active import ActiveController, Defaults
from controller_core.shell.admin.outcomes import timed_out
from kafka_node.errors import Failure

MAX_SILENCE_MS = 5_000
"""A caller that asks another broker next must find there what was just decided, so live brokers are waited for. A frozen broker counts
as live until its session ends; it is not waited for once it has left one request unanswered for so long: several times what a busy
broker needs for a large LeaderAndIsr."""

MAX_WAIT_MS = 600_000
"""The longest that a request is held for its own timeout: clients give up after `default.api.timeout.ms` (a minute), and
a timeout of days would keep a place of its connection for days."""


MAX_SETTINGS_WAIT_MS = 5_000
"""A broker tells the cluster's settings within milliseconds of a tenure's begin, if any lives."""

SETTINGS_UNKNOWN = timed_out("No broker has told the cluster's settings yet; the request may be sent again.")
"""Better no answer than one by settings that are not the cluster's: a topic with one replica, or a deletion that is forbidden."""


LEADERLESS = timed_out(
    "The partitions are created; one of them has no leader yet, since none of its replicas is alive."
)


async def known_defaults(active: ActiveController, timeout_ms: int) -> Defaults | Failure:
    """Wait for the cluster's settings, within the request's timeout and a limit of our own."""
    found = await active.known_defaults(max(0, min(timeout_ms, MAX_SETTINGS_WAIT_MS)))
    return SETTINGS_UNKNOWN if found is None else found


async def brokers_answered(active: ActiveController, timeout_ms: int) -> None:
    """Wait until the live brokers know what was decided, within the request's timeout and MAX_WAIT_MS.

    It is no failure when they do not know it in time: it is decided and written, and they will.
    """
    if timeout_ms > 0:
        await active.brokers_answered(min(timeout_ms, MAX_WAIT_MS), MAX_SILENCE_MS)


async def topics_are_led(active: ActiveController, names: Iterable[str], timeout_ms: int) -> dict[str, Failure]:
    """Wait until all partitions of these topics have leaders that the live brokers know; return the topics that lack one.

    Source: DelayedCreatePartitions, which answers REQUEST_TIMED_OUT for a topic with a partition that has no leader.
    """
    wanted = list(names)
    loop = asyncio.get_running_loop()
    deadline = loop.time() + min(timeout_ms, MAX_WAIT_MS) / 1000
    await active.until(lambda: not _without_leader(active.cluster, wanted), min(timeout_ms, MAX_WAIT_MS))
    await brokers_answered(active, int(1000 * (deadline - loop.time())))
    return dict.fromkeys(_without_leader(active.cluster, wanted), LEADERLESS)


def _without_leader(cluster: Cluster, names: Iterable[str]) -> list[str]:
    topics = ((name, cluster.topics.get(name)) for name in names)
    return [name for name, topic in topics if topic is not None and (cluster.columns.leader[topic.rows] < 0).any()]

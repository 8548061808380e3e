"""Comparison of the logs that brokers hold with what is assigned to them, after a take-over and after each registration.

Another controller may have been relieved between writing an assignment and deleting the logs outside it, and what a controller
remembers of brokers that were away ends with its term. So each broker lists its logs, one broker at a time; what no assignment
explains in two lists is judged again by the core, in its turn, which decides what is deleted (`zookeeper_mode.stray_logs`).

Leaves out how a broker is asked (`brokers.log_listing`).
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field
from itertools import islice

from controller_core.model import events
from controller_core.model.broker import Broker, Endpoint
from controller_core.model.ids import TopicPartition
from controller_core.shell.active import ActiveController
from controller_core.shell.brokers.log_listing import ListingError
from controller_core.shell.metrics import Metrics
from controller_core.zookeeper_mode.stray_logs import LogKind, classify_log
from kafka_wire.log_dir_columns import LogDirColumns
from kafka_wire.net.backoff import Backoff

log = logging.getLogger(__name__)

LOOK_S = 30.0
"""Pause before a broker's logs are listed, and at least between two lists of one broker: the time that a broker may take to
answer a StopReplica that is on its way, and six times the controller's own periodic check of all that it may have missed."""
PAUSES = Backoff(initial_ms=round(LOOK_S * 1000), cap_ms=3_600_000, jitter=0)
"""Pauses between lists of one broker that has stray logs still; a list costs the broker a pass over all of its segments."""
MAX_AT_ONCE = 1_000
"""Logs that one event has deleted; the others wait for the next list."""
SLICE = 1_000
"""Logs that are compared before the loop has its turn again: a few milliseconds."""
MAX_NAMED = 20
"""Logs that one line names."""

ListLogs = Callable[[int, Endpoint], Awaitable[LogDirColumns]]


@dataclass(slots=True)
class Look:
    """What is known of the logs of one life of a broker."""

    epoch: int
    due_at: float
    """Loop time."""
    looks: int = 0
    suspects: frozenset[TopicPartition] = frozenset()
    """Logs that may be deleted, by the last list."""
    counts: dict[LogKind, int] = field(default_factory=dict)


class LogSurvey:
    """The comparison in one term. Needs a running event loop."""

    def __init__(self, controller: ActiveController, listener: str, list_logs: ListLogs, metrics: Metrics) -> None:
        self._controller = controller
        self._listener = listener
        self._list_logs = list_logs
        self._metrics = metrics
        self._looks: dict[int, Look] = {}

    async def run(self) -> None:
        """Compare until cancelled."""
        try:
            while True:
                await asyncio.sleep(LOOK_S)
                await self.look(asyncio.get_running_loop().time())
        finally:
            self._metrics.stray_logs.clear()

    async def look(self, now: float) -> None:
        """Compare the logs of each broker that is due, by the loop's time."""
        brokers = self._controller.cluster.brokers
        self._looks = {one: look for one, look in self._looks.items() if _lives_on(brokers.get(one), look)}
        for broker in list(brokers.values()):
            look = self._looks.setdefault(broker.id, Look(broker.epoch, due_at=now))
            if look.due_at <= now:
                await self._look_at(broker, look, now)
        self._show()

    async def _look_at(self, broker: Broker, look: Look, now: float) -> None:
        look.looks += 1
        pause_s = PAUSES.delay_ms(look.looks, 0) / 1000
        look.due_at = now + pause_s
        endpoint = broker.endpoint(self._listener)
        if endpoint is None:
            return
        try:
            listed = await self._list_logs(broker.id, endpoint)
        except ListingError as error:
            level = logging.WARNING if look.looks == 1 else logging.DEBUG
            extra = {"broker": broker.id, "why": str(error), "retry_s": round(pause_s)}
            log.log(level, "Failed to list a broker's logs; retrying", extra=extra)
            return
        found = await self._judge(broker, listed)
        suspects = found[LogKind.LEFT_BEHIND] | found[LogKind.DELETED]
        confirmed = sorted(suspects & look.suspects)[:MAX_AT_ONCE]
        self._report(broker, look, found)
        look.suspects = frozenset(suspects)
        look.counts = {kind: len(names) for kind, names in found.items()}
        if confirmed:
            await self._controller.submit(events.StrayLogsFound(broker.id, broker.epoch, tuple(confirmed)))
        if not suspects and not found[LogKind.WAITS]:
            # What is left is only reported; the logs are compared again when the broker registers again.
            look.due_at = float("inf")

    async def _judge(self, broker: Broker, listed: LogDirColumns) -> dict[LogKind, set[TopicPartition]]:
        found: dict[LogKind, set[TopicPartition]] = {kind: set() for kind in LogKind if kind is not LogKind.NO}
        async for name in _names(listed):
            kind = classify_log(self._controller.cluster, broker.id, name)
            if kind is not LogKind.NO:
                found[kind].add(name)
        return found

    @staticmethod
    def _report(broker: Broker, look: Look, found: dict[LogKind, set[TopicPartition]]) -> None:
        """Log what was found, once for as long as nothing changes."""
        for kind, names in found.items():
            if names and len(names) != look.counts.get(kind, 0):
                named = [f"{name.topic}-{name.partition}" for name in islice(sorted(names), MAX_NAMED)]
                extra = {"broker": broker.id, "kind": kind.value, "logs": len(names), "first": named}
                log.warning("Broker holds logs that are not assigned to it", extra=extra)

    def _show(self) -> None:
        self._metrics.stray_logs.clear()
        for broker_id, look in self._looks.items():
            for kind, count in look.counts.items():
                if count:
                    self._metrics.stray_logs.labels(str(broker_id), kind.value).set(count)


def _lives_on(broker: Broker | None, look: Look) -> bool:
    return broker is not None and broker.epoch == look.epoch


async def _names(listed: LogDirColumns) -> AsyncIterator[TopicPartition]:
    """Name the logs, without copies that are being moved between directories; gives the loop its turn now and then."""
    row = 0
    for topic, count in zip(listed.topics, listed.topic_rows.tolist(), strict=True):
        for _ in range(count):
            if row % SLICE == 0:
                await asyncio.sleep(0)
            if not listed.is_future[row]:
                yield TopicPartition(topic, int(listed.partition_index[row]))
            row += 1

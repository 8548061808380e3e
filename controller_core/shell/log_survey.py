"""Survey of logs: compares the logs on brokers with the assignment, after a take-over and after each registration of a broker.

A former controller may have lost controllership between writing an assignment and deleting the logs outside it, and the records of
removed replicas on absent brokers end with its term. So each broker lists its logs (DescribeLogDirs), one broker at a time. Logs
that two lists in a row contain outside the assignment are checked again by an event, which decides what is deleted
(`zookeeper_mode.stray_logs`).
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field
from itertools import islice

from controller_core.model import Broker, Endpoint, TopicPartition, zookeeper_events
from controller_core.shell.active import ActiveController
from controller_core.shell.metrics import Metrics
from controller_core.zookeeper_mode import apis, stray_logs
from kafka_node.security.brokers import UNPROTECTED, BrokerSecurity
from kafka_wire import ApiKey, ErrorCode, codec
from kafka_wire.columns.log_dirs import LogDirColumns, decode_log_dirs
from kafka_wire.net import client, negotiation

log = logging.getLogger(__name__)

LISTING_TIMEOUT_MS = 30_000
"""A broker sums the sizes of all of its segments. One that takes longer is asked again later."""
CLIENT_ID = "steward-controller-logs"
SURVEY_INTERVAL_S = 30.0
"""Pause before a broker's logs are listed, and the shortest pause between two lists of one broker: the time that a broker may take to
answer a StopReplica in flight, and six times the interval of the controller's periodic checks."""
PAUSES = client.Backoff(initial_ms=round(SURVEY_INTERVAL_S * 1000), cap_ms=3_600_000, jitter=0)
"""Pauses between lists of one broker that still has stray logs; a list costs the broker a pass over all of its segments."""
MAX_AT_ONCE = 1_000
"""Logs that one event deletes; the others wait for the next list."""
SLICE = 1_000
"""Logs that are compared before the event loop runs again: a few milliseconds."""
MAX_NAMED = 20
"""Logs that one line of the log names."""


class ListingError(Exception):
    """The broker did not return the list of its logs."""


async def list_logs(broker: int, endpoint: Endpoint, security: BrokerSecurity = UNPROTECTED) -> LogDirColumns:
    """Request the list of all logs of one broker. Raises ListingError."""
    settings = security.settings(client.NodeSettings(client_id=CLIENT_ID), endpoint.security_protocol)
    node = client.Node(endpoint.host, endpoint.port, settings)
    key = ApiKey.DESCRIBE_LOG_DIRS
    try:
        answer = await node.call(ApiKey.API_VERSIONS, negotiation.api_versions_request(), timeout_ms=LISTING_TIMEOUT_MS)
        offered = {api["api_key"]: (api["min_version"], api["max_version"]) for api in answer["api_keys"]}
        version = negotiation.choose_version(
            key, (apis.CALLED[key].lowest, apis.CALLED[key].highest), offered, f"broker {broker}"
        )
        frame = codec.encode_request(key, version, 0, CLIENT_ID, {"topics": None})
        # A long answer is decoded in a thread: the event loop processes events in the meantime.
        found = await asyncio.to_thread(
            decode_log_dirs, version, await node.call_raw(frame, timeout_ms=LISTING_TIMEOUT_MS)
        )
    except (client.ConnectionFailed, codec.CodecError, client.UnsupportedVersion) as error:
        raise ListingError(f"broker {broker}: {error}") from error
    finally:
        await node.close()
    if found.error_code != ErrorCode.NONE:
        raise ListingError(f"broker {broker}: {ErrorCode(found.error_code).name}")
    return found


ListLogs = Callable[[int, Endpoint], Awaitable[LogDirColumns]]


@dataclass(slots=True)
class BrokerLogs:
    """State of the survey of one broker, for one registration of it."""

    epoch: int
    due_at: float
    """Loop time."""
    lists: int = 0
    """Number of lists requested."""
    suspects: frozenset[TopicPartition] = frozenset()
    """Logs in the last list that may have to be deleted."""
    counts: dict[stray_logs.LogKind, int] = field(default_factory=dict)


class LogSurvey:
    """The survey in one active term. Needs a running event loop."""

    def __init__(self, controller: ActiveController, listener: str, list_logs: ListLogs, metrics: Metrics) -> None:
        self._controller = controller
        self._listener = listener
        self._list_logs = list_logs
        self._metrics = metrics
        self._brokers: dict[int, BrokerLogs] = {}

    async def run(self) -> None:
        """Survey brokers until cancelled."""
        try:
            while True:
                await asyncio.sleep(SURVEY_INTERVAL_S)
                await self.survey(asyncio.get_running_loop().time())
        finally:
            self._metrics.stray_logs.clear()

    async def survey(self, now: float) -> None:
        """Compare the logs of each broker that is due; `now` is the loop's time."""
        live = self._controller.cluster.brokers
        self._brokers = {
            broker: logs for broker, logs in self._brokers.items() if _is_same_registration(live.get(broker), logs)
        }
        for broker in list(live.values()):
            logs = self._brokers.setdefault(broker.id, BrokerLogs(broker.epoch, due_at=now))
            if logs.due_at <= now:
                await self._survey_broker(broker, logs, now)
        self._update_gauge()

    async def _survey_broker(self, broker: Broker, logs: BrokerLogs, now: float) -> None:
        logs.lists += 1
        pause_s = PAUSES.delay_ms(logs.lists, 0) / 1000
        logs.due_at = now + pause_s
        endpoint = broker.endpoint(self._listener)
        if endpoint is None:
            return
        try:
            listed = await self._list_logs(broker.id, endpoint)
        except ListingError as error:
            level = logging.WARNING if logs.lists == 1 else logging.DEBUG
            extra = {"broker": broker.id, "error": str(error), "retry_s": round(pause_s)}
            log.log(level, "Failed to list a broker's logs; retrying", extra=extra)
            return
        found = await self._classify(broker, listed)
        suspects = found[stray_logs.LogKind.UNASSIGNED] | found[stray_logs.LogKind.DELETED_TOPIC]
        confirmed = sorted(suspects & logs.suspects)[:MAX_AT_ONCE]
        self._report(broker, logs, found)
        logs.suspects = frozenset(suspects)
        logs.counts = {kind: len(names) for kind, names in found.items()}
        if confirmed:
            await self._controller.submit(zookeeper_events.StrayLogsFound(broker.id, broker.epoch, tuple(confirmed)))
        if not suspects and not found[stray_logs.LogKind.UNASSIGNED_UNHEALTHY]:
            # Other logs are only reported. The next survey of this broker follows its next registration.
            logs.due_at = float("inf")

    async def _classify(self, broker: Broker, listed: LogDirColumns) -> dict[stray_logs.LogKind, set[TopicPartition]]:
        found: dict[stray_logs.LogKind, set[TopicPartition]] = {
            kind: set() for kind in stray_logs.LogKind if kind is not stray_logs.LogKind.NOT_STRAY
        }
        async for name in _names(listed):
            kind = stray_logs.classify_log(self._controller.cluster, broker.id, name)
            if kind is not stray_logs.LogKind.NOT_STRAY:
                found[kind].add(name)
        return found

    @staticmethod
    def _report(broker: Broker, logs: BrokerLogs, found: dict[stray_logs.LogKind, set[TopicPartition]]) -> None:
        """Log unassigned logs, once until their number changes."""
        for kind, names in found.items():
            if names and len(names) != logs.counts.get(kind, 0):
                named = [f"{name.topic}-{name.partition}" for name in islice(sorted(names), MAX_NAMED)]
                extra = {"broker": broker.id, "kind": kind.value, "logs": len(names), "first": named}
                log.warning("Broker holds logs that are not assigned to it", extra=extra)

    def _update_gauge(self) -> None:
        self._metrics.stray_logs.clear()
        for broker_id, logs in self._brokers.items():
            for kind, count in logs.counts.items():
                if count:
                    self._metrics.stray_logs.labels(str(broker_id), kind.value).set(count)


def _is_same_registration(broker: Broker | None, logs: BrokerLogs) -> bool:
    return broker is not None and broker.epoch == logs.epoch


async def _names(listed: LogDirColumns) -> AsyncIterator[TopicPartition]:
    """Yield the partitions of the logs, except copies that are being moved between directories; lets the event loop run in between."""
    row = 0
    for topic, count in zip(listed.topics, listed.topic_rows.tolist(), strict=True):
        for _ in range(count):
            if row % SLICE == 0:
                await asyncio.sleep(0)
            if not listed.is_future[row]:
                yield TopicPartition(topic, int(listed.partition_index[row]))
            row += 1

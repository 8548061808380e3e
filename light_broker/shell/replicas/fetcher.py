"""Task that replicates partitions from one leader: one request at a time over one connection, with all partitions that are due.

Source: Kafka's AbstractFetcherThread.doWork and RemoteLeaderEndPoint.
"""

import asyncio
import contextlib
import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from kafka_wire import ApiKey, Body, ErrorCode
from kafka_wire.codec import CodecError
from kafka_wire.net.client import Node, NodeSettings, RequestFailed
from kafka_wire.net.connection import ViewDecoder, body_decoder
from kafka_wire.topic_partition import TopicPartition
from light_broker.core.metadata_view import Endpoint
from light_broker.core.offset_search import SpecialTimestamp
from light_broker.core.replica_fetch import (
    Append,
    Fail,
    FetchAnswer,
    FetchedPartition,
    Locate,
    ReplicaFetchSettings,
    Retry,
    Stage,
    StartAt,
    Step,
    Truncate,
    after_fetch,
    after_offsets,
    first_step,
)
from light_broker.core.replica_fetch_messages import (
    OFFSETS_VERSIONS,
    TOPIC_IDS_FROM,
    Asked,
    fetch_answers,
    fetch_request,
    fetch_versions,
    offsets_answers,
    offsets_request,
    wanted_partitions,
)
from light_broker.core.replica_fetch_session import FollowerSession, SessionRequest
from light_broker.core.replication_quota import Side
from light_broker.shell.replicas.follower_writes import FollowerWrites, Written
from light_broker.shell.replicas.throttles import ReplicationThrottles

log = logging.getLogger(__name__)

QUIET_ERRORS = frozenset(
    {ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.UNKNOWN_LEADER_EPOCH, ErrorCode.FENCED_LEADER_EPOCH}
)
"""Answers of a leader that has another state than this broker, as during each election: logged at DEBUG."""

THROTTLE_PAUSE_MS = 200
"""Pause of a partition that a throttle holds back: a fifth of the windows that its rate is measured in."""

NO_ANSWER = FetchAnswer(ErrorCode.UNKNOWN_SERVER_ERROR)
"""A response to a full request without one of its partitions. It is asked for again after a delay."""

SESSION_ERRORS = frozenset(
    {
        ErrorCode.FETCH_SESSION_ID_NOT_FOUND,
        ErrorCode.INVALID_FETCH_SESSION_EPOCH,
        ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR,
    }
)
"""Answers of a leader that has another session or none, as after its restart: a full request follows at once."""

FETCH_DECODER = ViewDecoder(ApiKey.FETCH, 20_000_000)
"""For 400,000 partitions: one takes 29 units in a response, and 6 for each of its three tagged fields."""

_Partitions = Mapping[TopicPartition, FetchedPartition]


@dataclass(frozen=True, slots=True, kw_only=True)
class FetcherContext:
    """What all fetchers of a broker share."""

    broker_id: int
    broker_epoch: Callable[[], int]
    """The epoch of this process's registration: KIP-903 is about a process whose metadata still has the epoch of its predecessor."""
    settings: Callable[[], ReplicaFetchSettings]
    address_of: Callable[[int], Endpoint | None]
    """Address of a broker on the listener of brokers."""
    connection: NodeSettings
    writes: FollowerWrites
    now_ms: Callable[[], int]
    throttles: ReplicationThrottles | None = None


class _NoAddressError(Exception):
    """The metadata has no address of the leader."""


class ReplicaFetcher:
    """Replicates partitions from one broker until `close`."""

    def __init__(self, leader_id: int, context: FetcherContext) -> None:
        self.leader_id = leader_id
        self._context = context
        self._partitions: dict[TopicPartition, FetchedPartition] = {}
        """In the order in which the leader reads them: a partition that had records goes to the end."""
        self._changed = asyncio.Event()
        self._session = FollowerSession()
        self._node: Node | None = None
        self._address: Endpoint | None = None
        self._is_reachable = True
        self._task = asyncio.get_running_loop().create_task(self._run(), name=f"replicas of broker {leader_id}")

    @property
    def partitions(self) -> _Partitions:
        """The partitions, with their states."""
        return self._partitions

    def follow(self, partition: TopicPartition, state: FetchedPartition) -> None:
        """Replicate a partition, or continue in another leader epoch. In the current epoch nothing changes."""
        known = self._partitions.get(partition)
        if known is not None and (known.topic_id, known.leader_epoch) == (state.topic_id, state.leader_epoch):
            return
        self._partitions[partition] = state
        self._changed.set()

    def forget(self, partition: TopicPartition) -> None:
        """Stop replicating a partition. An answer that comes later changes nothing."""
        self._partitions.pop(partition, None)

    async def close(self) -> None:
        """End the task and the connection."""
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)
        await self._disconnect()

    # The task

    async def _run(self) -> None:
        while True:
            self._changed.clear()
            now_ms = self._context.now_ms()
            due = {named: state for named, state in self._partitions.items() if state.is_due(now_ms)}
            if not due:
                await self._wait(now_ms)
                continue
            try:
                await self._exchange(due)
            except (RequestFailed, CodecError, _NoAddressError) as error:
                self._lost(due, error)
            except Exception:
                log.exception("Failed to replicate from a leader; retrying", extra={"broker": self.leader_id})
                self._delay(due)
            else:
                self._reached()

    async def _wait(self, now_ms: int) -> None:
        """Wait for another partition, or for the end of the first delay."""
        waiting = [state.retry_at_ms for state in self._partitions.values() if state.stage is not Stage.FAILED]
        timeout_s = max(min(waiting) - now_ms, 1) / 1000 if waiting else None
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(timeout_s):
                await self._changed.wait()

    async def _exchange(self, due: _Partitions) -> None:
        """Make one request of each kind that partitions are due for."""
        node = await self._connected()
        if locating := self._asked(due, Stage.LOCATING):
            await self._locate(node, locating)
        if fetching := self._asked(due, Stage.FETCHING):
            await self._fetch(node, fetching)

    def _asked(self, due: _Partitions, stage: Stage) -> dict[TopicPartition, Asked]:
        """Return the partitions of a stage with their logs; those that this broker does not follow any more are left out."""
        asked = {}
        for named, state in due.items():
            if state.stage is not stage:
                continue
            if stage is Stage.FETCHING and self._is_held_back(named):
                self._replace(named, state, state.delayed(self._context.now_ms() + THROTTLE_PAUSE_MS))
                continue
            opened = self._context.writes.log_of(named, state.leader_epoch)
            if opened is not None and (step := first_step(opened)) is not None:
                self._take(named, state, step)
                opened = self._context.writes.log_of(named, state.leader_epoch)
            if opened is None:
                # The replica manager reports it too, unless the partition is being made: it is asked for again after the delay.
                self._replace(named, state, state.delayed(self._retry_at_ms()))
            else:
                asked[named] = Asked(state.topic_id, state.leader_epoch, opened)
        return asked

    def _is_held_back(self, named: TopicPartition) -> bool:
        """Return whether a throttle makes this broker wait (KIP-73)."""
        throttles = self._context.throttles
        return throttles is not None and throttles.holds_back(Side.FOLLOWER, named, self._context.broker_id)

    async def _fetch(self, node: Node, asked: dict[TopicPartition, Asked]) -> None:
        before = dict(self._partitions)
        request, version, body = await self._exchange_fetch(node, asked)
        names = {state.topic_id: named.topic for named, state in asked.items()}
        error, answers = fetch_answers(body, version, names.get)
        if error in SESSION_ERRORS and not request.is_full:
            extra = {"broker": self.leader_id, "error": error.name}
            log.info("Leader has another fetch session; beginning a new one", extra=extra)
            return
        if error is not ErrorCode.NONE:
            log.warning(
                "Leader refused a fetch of replicas; retrying", extra={"broker": self.leader_id, "error": error.name}
            )
            self._delay({named: before[named] for named in asked if named in before})
            return
        self._session = request.answered(body["session_id"])
        missing = dict.fromkeys(asked, NO_ANSWER) if request.is_full else {}
        for named, answer in {**missing, **answers}.items():
            state, of_request = before.get(named), asked.get(named)
            if state is None or of_request is None:
                continue
            if self._is_current(named, state, of_request):
                self._take(named, state, after_fetch(answer, of_request.log))
            elif named in self._partitions:
                # The leader does not repeat a high watermark in the same session.
                self._session = self._session.lost()
        for named in answers:
            await self._context.writes.flush_due(named)

    async def _exchange_fetch(self, node: Node, asked: dict[TopicPartition, Asked]) -> tuple[SessionRequest, int, Body]:
        """Return the request of the session with its version, and the body of the response. The session counts as lost until the answer is taken."""
        context, settings = self._context, self._context.settings()
        session, self._session = self._session, self._session.lost()
        sent: list[tuple[SessionRequest, int]] = []

        async def encode(version: int) -> Body:
            uses_topic_ids = version >= TOPIC_IDS_FROM
            wanted = wanted_partitions(asked, settings.partition_max_bytes, uses_topic_ids=uses_topic_ids)
            request = session.request(wanted, uses_topic_ids=uses_topic_ids)
            sent.append((request, version))
            return fetch_request(
                version, request, settings, broker_id=context.broker_id, broker_epoch=context.broker_epoch()
            )

        versions = fetch_versions(asked.values())
        body = await node.request(
            ApiKey.FETCH, encode, FETCH_DECODER, versions=versions, timeout_ms=settings.timeout_ms
        )
        request, version = sent[-1]
        return request, version, body

    async def _locate(self, node: Node, asked: dict[TopicPartition, Asked]) -> None:
        """Find where to go on for partitions whose offsets the leader does not have."""
        before = dict(self._partitions)
        ends = await self._offsets(node, asked, SpecialTimestamp.LATEST)
        starts = await self._offsets(node, asked, SpecialTimestamp.EARLIEST)
        for named, of_request in asked.items():
            state = before.get(named)
            if state is None or not self._is_current(named, state, of_request):
                continue
            (end_error, end), (start_error, start) = ends[named], starts[named]
            error = end_error or start_error
            self._take(named, state, after_offsets(error, leader_start=start, leader_end=end, log=of_request.log))

    async def _offsets(
        self, node: Node, asked: dict[TopicPartition, Asked], timestamp: SpecialTimestamp
    ) -> Mapping[TopicPartition, tuple[ErrorCode, int]]:
        async def encode(version: int) -> Body:  # noqa: ARG001 - these versions have the same fields
            return offsets_request(asked, timestamp, broker_id=self._context.broker_id)

        timeout_ms = self._context.settings().timeout_ms
        body = await node.request(
            ApiKey.LIST_OFFSETS,
            encode,
            body_decoder(ApiKey.LIST_OFFSETS),
            versions=OFFSETS_VERSIONS,
            timeout_ms=timeout_ms,
        )
        missing = dict.fromkeys(asked, (ErrorCode.UNKNOWN_SERVER_ERROR, 0))
        return {**missing, **offsets_answers(body)}

    # Answers

    def _is_current(self, named: TopicPartition, state: FetchedPartition, asked: Asked) -> bool:
        """Return whether neither the state of a partition nor its log has changed since a request."""
        return (
            self._partitions.get(named) is state and self._context.writes.log_of(named, state.leader_epoch) == asked.log
        )

    def _take(self, named: TopicPartition, state: FetchedPartition, step: Step) -> None:
        """Carry out what follows from an answer."""
        writes, epoch = self._context.writes, state.leader_epoch
        match step:
            case Append():
                written = writes.append(named, epoch, step)
                if self._context.throttles is not None:
                    self._context.throttles.add(Side.FOLLOWER, named, len(step.records))
                self._after_write(named, state, written)
                if written is Written.DONE and step.records and named in self._partitions:
                    self._partitions[named] = self._partitions.pop(named)
            case Truncate() | StartAt():
                extra = {"partition": str(named), "offset": step.offset, "leader": self.leader_id}
                log.info("Truncating the log to that of the leader", extra={**extra, "leader_epoch": epoch})
                self._after_write(named, state, writes.truncate(named, epoch, step))
            case Locate():
                self._replace(named, state, state.at(Stage.LOCATING))
            case Retry():
                self._log_error(named, step.error)
                self._replace(named, state, state.at(Stage.FETCHING).delayed(self._retry_at_ms()))
            case Fail():
                self._log_error(named, step.error)
                self._replace(named, state, state.at(Stage.FAILED))

    def _after_write(self, named: TopicPartition, state: FetchedPartition, written: Written) -> None:
        match written:
            case Written.DONE:
                self._replace(named, state, state.at(Stage.FETCHING))
            case Written.INVALID:
                self._replace(named, state, state.at(Stage.FETCHING).delayed(self._retry_at_ms()))
            case Written.OFFLINE | Written.STALE:
                if self._partitions.get(named) is state:
                    self.forget(named)

    def _replace(self, named: TopicPartition, state: FetchedPartition, after: FetchedPartition) -> None:
        """Replace a state, unless the control plane has set another one since."""
        if self._partitions.get(named) is state and after != state:
            self._partitions[named] = after

    def _delay(self, partitions: _Partitions) -> None:
        for named, state in partitions.items():
            self._replace(named, state, state.delayed(self._retry_at_ms()))

    def _retry_at_ms(self) -> int:
        # At least 1 ms: without a pause a leader that refuses would be asked in a loop.
        return self._context.now_ms() + max(self._context.settings().backoff_ms, 1)

    def _log_error(self, named: TopicPartition, error: ErrorCode) -> None:
        level = logging.DEBUG if error in QUIET_ERRORS else logging.WARNING
        extra = {"partition": str(named), "broker": self.leader_id, "error": error.name}
        log.log(level, "Leader did not return records of a partition", extra=extra)

    # Connection

    async def _connected(self) -> Node:
        """Return the client of the leader's current address."""
        address = self._context.address_of(self.leader_id)
        if address is None:
            raise _NoAddressError(f"The metadata has no address of broker {self.leader_id} on the listener of brokers.")
        if address != self._address or self._node is None:
            await self._disconnect()
            self._address, self._node = address, Node(address.host, address.port, self._context.connection)
        return self._node

    async def _disconnect(self) -> None:
        node, self._node = self._node, None
        if node is not None:
            await node.close()

    def _lost(self, due: _Partitions, error: Exception) -> None:
        """Delay all partitions; the first failure of a series is a warning."""
        level = logging.WARNING if self._is_reachable else logging.DEBUG
        self._is_reachable = False
        log.log(level, "Failed to fetch from a leader", extra={"broker": self.leader_id, "error": str(error)})
        self._delay({named: self._partitions[named] for named in due if named in self._partitions})

    def _reached(self) -> None:
        if not self._is_reachable:
            self._is_reachable = True
            log.info("Fetching from a leader again", extra={"broker": self.leader_id})

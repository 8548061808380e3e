"""Driver of a quorum's node: gives it messages and the time, and carries out each `Ready` in the order of its fields.

Everything runs on the event loop, except flushes and the check of a fetched snapshot: so a leader's own flush runs at the same time as
those of its followers. An error of the disk, or a defect, stops the node for good: it has counted on what was not written.
"""

import asyncio
import logging
import time
from collections import Counter, deque
from collections.abc import Callable, Coroutine, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from controller_core.quorum import batches, inputs, messages, retention, rules, states
from controller_core.quorum.node import Node
from controller_core.quorum.ready import (
    AppendResult,
    Committed,
    LeaderChanged,
    Notice,
    Outgoing,
    Ready,
    Reply,
    SnapshotChunk,
    Stopped,
    UpgradeResult,
    Violation,
)
from controller_core.quorum.start import start
from controller_core.quorum.step import step, tick
from controller_core.quorum.voters import VoterSet
from controller_core.shell.pace import exchanges_run
from controller_core.shell.quorum.append_accumulator import AppendAccumulator, CommitWaits
from controller_core.shell.quorum.listeners import Listeners
from controller_core.shell.quorum.raft_measurements import RaftMeasurements
from controller_core.shell.quorum.storage import FetchedSnapshot, Storage
from controller_core.shell.quorum.violation_log import ViolationLog
from controller_core.shell.quorum.wire_batches import data_payload, snapshot_data
from kafka_log.errors import CorruptLogError, FlushFailedError, LogError
from kafka_log.files.pending_flush import PendingFlush
from kafka_wire.encoded_body import EncodedBody
from kafka_wire.net.failures import CloseConnection
from kafka_wire.records import CorruptBatch

log = logging.getLogger(__name__)

DISK_THREADS = 2
"""A flush, and the check of a fetched snapshot or the rest of an older flush."""


@dataclass(frozen=True, slots=True)
class Answer:
    """A node's reply, with the records or the bytes of a snapshot that it names."""

    body: messages.ResponseBody | AppendResult | UpgradeResult
    data: bytes = b""
    encoded: dict[int, EncodedBody] | None = None
    """Of an answer to several requests, the body as it was encoded for the first of them, by version of the API.

    An answer to one request has none: bytes of a snapshot or a log are not copied once more.
    """


class Clock:
    """Milliseconds since 1970 at the start, which then advance evenly: changes of the system's clock have no effect."""

    def __init__(self) -> None:
        self._ahead_s = time.time() - time.monotonic()

    def __call__(self) -> int:
        """Return the time."""
        return int((self._ahead_s + time.monotonic()) * 1000)


class Driver:
    """One node. `start` begins, `shut_down` hands over, `close` ends; `failure` is why it ended by itself."""

    def __init__(
        self,
        storage: Storage,
        clock: Callable[[], int] | None = None,
        *,
        append_linger_ms: int = 0,
        cleaning_interval_ms: int = retention.CLEANING_INTERVAL_MS,
    ) -> None:
        self.failure: Exception | None = None
        self.ended = asyncio.Event()
        """The node has shut down or failed, and answers nothing any more."""
        self.measurements = RaftMeasurements()
        self._violations = ViolationLog()
        self._storage = storage
        self._send: Callable[[Outgoing], None] | None = None
        self._clock = clock or Clock()
        self._node: Node | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._timer_due_ms = states.NEVER
        self._append_linger_ms = append_linger_ms
        self._accumulator: AppendAccumulator | None = None
        self._cleaning_interval_s = cleaning_interval_ms / 1000
        self._cleaning: asyncio.TimerHandle | None = None
        self._last_request_id = 0
        self._waiting: dict[int, asyncio.Future[Answer]] = {}
        """Requests that the node has not answered."""
        self._commit_waits = CommitWaits()
        self.listeners = Listeners(storage, lambda: None if self.ended.is_set() else self._node, self.fail)
        """State machines that apply the log; they may be registered at any time."""
        self._chunks: deque[SnapshotChunk] = deque()
        """Bytes of a snapshot that are not written yet, at most those of one response."""
        self._disk = ThreadPoolExecutor(DISK_THREADS, thread_name_prefix="quorum-disk")
        self._disk_work: set[asyncio.Task[None]] = set()

    @property
    def now_ms(self) -> int:
        """The time of the node's clock."""
        return self._clock()

    @property
    def violations(self) -> int:
        """The number of messages by which another node broke the protocol or rejected this node."""
        return self._violations.count

    @property
    def node(self) -> Node | None:
        """The node as it is now; None before `start`."""
        return self._node

    @property
    def end_offset(self) -> int:
        """Offset of the next record of the log."""
        return 0 if self._node is None else self._node.log.end_offset

    @property
    def kraft_version(self) -> int:
        """Level of kraft.version; 0 while the node does not run."""
        return 0 if self._node is None else self._node.history.kraft_version

    def leads_in(self, epoch: int) -> bool:
        """Whether the node runs, and leads in an epoch."""
        node = self._node
        return (
            node is not None
            and not self.ended.is_set()
            and isinstance(node.state, states.Leader)
            and node.epoch == epoch
        )

    def start(
        self, settings: rules.Settings, static_voters: VoterSet, seed: int, send: Callable[[Outgoing], None]
    ) -> None:
        """Start the node from what is on disk. Raises LogError and CorruptBatch for files that cannot be read.

        `send` sends a request and later calls `handle` with its response. It returns at once.
        """
        self._send = send
        self._accumulator = AppendAccumulator(
            self._append_batch,
            linger_ms=self._append_linger_ms,
            max_bytes=min(settings.append_max_bytes, settings.batch_max_bytes),
        )
        stored, log_view = self._storage.stored_election(), self._storage.summary()
        history = self._storage.voter_history(static_voters)
        self._attempt(lambda: start(settings, stored, log_view, history, seed, self._clock()))
        self._clean_later()

    def handle(self, message: inputs.Input) -> None:
        """Give the node a message. It is ignored before `start`, and once the node has ended."""
        node = self._node
        if node is not None and not self.ended.is_set():
            self._attempt(lambda: step(node, message, self._clock()))

    async def ask(self, listener: str, body: messages.RequestBody) -> Answer:
        """Return the answer to a request of another node or of a tool. Raises CloseConnection when the node has ended."""
        return await self._answered(lambda request_id: inputs.Request(request_id, listener, body))

    async def append(self, epoch: int, values: list[bytes]) -> AppendResult:
        """Append records in one batch, if the node leads in this epoch; the result has the offset of the first.

        The batch is written after the linger time, and may have records of other callers. Its records are committed when the high
        watermark is above their offsets. Raises CloseConnection when the node has ended, and ValueError without a record.
        """
        if not values:
            raise ValueError("An append needs a record.")
        if self._accumulator is None:
            raise CloseConnection("the node of the quorum does not run")
        return await self._accumulator.append(epoch, values)

    def append_now(self, epoch: int, payload: bytes, record_count: int) -> AppendResult:
        """Append a batch without linger time: its offset is the end of the log at the time of the call.

        For a state machine that applies its records at once. Raises CloseConnection when the node has ended.
        """
        if self._node is None or self.ended.is_set():
            raise CloseConnection("the node of the quorum does not run")
        self._last_request_id += 1
        request_id = self._last_request_id
        future: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
        self._waiting[request_id] = future
        self.handle(inputs.Append(request_id, epoch, payload, record_count))
        del self._waiting[request_id]
        answer = (
            future.result()
        )  # The node replies to an append in the same step; an error of the disk has set the exception.
        assert isinstance(answer.body, AppendResult), answer
        return answer.body

    async def _append_batch(self, epoch: int, values: list[bytes]) -> AppendResult:
        payload = data_payload(values, self._clock())
        answer = await self._answered(lambda request_id: inputs.Append(request_id, epoch, payload, len(values)))
        assert isinstance(answer.body, AppendResult), answer
        return answer.body

    async def upgrade_kraft_version(self, epoch: int, level: int, *, validate_only: bool) -> UpgradeResult:
        """Raise kraft.version if the node leads in this epoch. Raises CloseConnection when the node has ended."""
        answer = await self._answered(
            lambda request_id: inputs.UpgradeKRaftVersion(request_id, epoch, level, validate_only=validate_only)
        )
        assert isinstance(answer.body, UpgradeResult), answer
        return answer.body

    async def committed(self, offset: int) -> bool:
        """Wait until a record of this leader is committed; False when the node no longer leads, so that it may be lost."""
        node = self._node
        if node is None or self.ended.is_set() or not isinstance(node.state, states.Leader):
            return False
        if (node.high_watermark or 0) > offset:
            return True
        return await self._commit_waits.add(offset)

    async def write_snapshot(
        self, end: batches.Position, values: Iterable[bytes], last_timestamp_ms: int
    ) -> int | None:
        """Write a snapshot of the committed records before an offset; `values` are those of its records. Return its size in bytes.

        Exchanges with other nodes run between two batches. Nothing happens if there is such a snapshot: None. Raises LogError, and what
        `values` raises.
        """
        node = self._node
        writer = None if node is None else self._storage.create_snapshot(end, node.log.high_watermark)
        if node is None or writer is None:
            return None
        with writer:
            for batch in snapshot_data(values, end, last_timestamp_ms, node.history, self._clock()):
                writer.append(batch)
                await exchanges_run()
            await asyncio.get_running_loop().run_in_executor(self._disk, writer.flush)
            if self.ended.is_set():
                return None
            self._storage.finish_snapshot(writer)
        self.handle(inputs.SnapshotCreated(end, writer.size_bytes))
        return writer.size_bytes

    async def shut_down(self, timeout_ms: int) -> None:
        """Hand over where the node leads, and wait until it has ended, at most for the timeout."""
        self.handle(inputs.Shutdown(timeout_ms))
        if self._node is not None:
            await self.ended.wait()

    async def close(self) -> None:
        """End at once, wait for work on the disk, and close the files. Raises LogError."""
        self._end()
        if self._disk_work:
            await asyncio.wait(self._disk_work)
        self._disk.shutdown()
        self._storage.close()

    async def _answered(self, make: Callable[[int], inputs.Input]) -> Answer:
        if self._node is None or self.ended.is_set():
            raise CloseConnection("the node of the quorum does not run")
        self._last_request_id += 1
        request_id = self._last_request_id
        future: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
        self._waiting[request_id] = future
        try:
            self.handle(make(request_id))
            return await future
        finally:
            del self._waiting[request_id]

    # Carrying out

    def _attempt(self, act: Callable[[], Ready]) -> None:
        """Let the node act, and carry out the result; any error ends it."""
        start_s = time.monotonic()
        try:
            self._carry_out(act())
        except Exception as error:  # noqa: BLE001 - ends the node, whatever it is
            self.fail(error)
        self.measurements.worked(time.monotonic() - start_s)

    def _carry_out(self, ready: Ready) -> None:
        self.measurements.observe(self._node, ready, self._clock())
        if ready.node.is_campaigning and not (self._node is not None and self._node.is_campaigning):
            log.info("Started an election", extra={"epoch": ready.node.epoch})
        self._node = ready.node
        self._persist(ready)
        assert self._send is not None, "start() sets it"
        for outgoing in ready.requests:
            self._send(outgoing)
        if self._chunks:
            asyncio.get_running_loop().call_soon(self._write_chunks_late)
        self._answer(ready.replies)
        for notice in ready.notices:
            self._notify(notice)
        self.listeners.update()
        self._wait_until(ready.next_tick_ms)

    def _persist(self, ready: Ready) -> None:
        storage = self._storage
        if ready.election is not None:
            storage.store_election(ready.election)
        self._write_chunks()
        for operation in ready.log:
            if isinstance(operation, SnapshotChunk):
                self._chunks.append(operation)
            else:
                storage.write(operation, high_watermark=ready.node.log.high_watermark, now_ms=self._clock())
        if ready.flush is not None:
            self._on_disk(self._flush(ready.flush, storage.begin_flush()))

    def _write_chunks_late(self) -> None:
        """Write bytes of a snapshot after the next ones were requested: the leader reads those in the meantime."""
        if not self.ended.is_set():
            try:
                self._write_chunks()
            except Exception as error:  # noqa: BLE001 - ends the node, whatever it is
                self.fail(error)

    def _write_chunks(self) -> None:
        while self._chunks:
            fetched = self._storage.write_chunk(self._chunks.popleft())
            if fetched is not None:
                self._on_disk(self._install(fetched))

    def _answer(self, replies: Sequence[Reply]) -> None:
        """Answer requests whose connections have not ended. A body of several replies is filled and encoded once."""
        times = Counter(id(reply.body) for reply in replies)
        answers: dict[int, Answer] = {}
        for reply in replies:
            future, body = self._waiting.get(reply.request_id), reply.body
            if future is None or future.done():
                continue
            if id(body) not in answers:
                answers[id(body)] = Answer(body, self._data_of(reply), {} if times[id(body)] > 1 else None)
            future.set_result(answers[id(body)])

    def _data_of(self, reply: Reply) -> bytes:
        match reply.body:
            case messages.FetchResponse(read=messages.ReadRange() as wanted):
                return self._storage.read(wanted)
            case messages.FetchSnapshotResponse(snapshot=snapshot, position=position, read_bytes=size) if (
                snapshot is not None
            ):
                return self._storage.read_snapshot(snapshot, position, size)
            case _:
                return b""

    def _notify(self, notice: Notice) -> None:
        match notice:
            case LeaderChanged(epoch=epoch, leader_id=leader_id):
                log.info("Quorum's epoch or leader changed", extra={"epoch": epoch, "leader": leader_id})
                self._commit_waits.abandon()
            case Violation(reason=reason):
                self._violations.add(reason, self._clock())
            case Stopped(timed_out=timed_out):
                if timed_out:
                    log.warning("Stopped before another node became the leader")
                self._end()
            case Committed(high_watermark=high_watermark):
                self._commit_waits.committed(high_watermark)

    def _wait_until(self, due_ms: int) -> None:
        """Have a tick at a time. An earlier one that is set stays: it finds nothing to do, and sets the next."""
        if due_ms == states.NEVER or self.ended.is_set() or (self._timer is not None and self._timer_due_ms <= due_ms):
            return
        if self._timer is not None:
            self._timer.cancel()
        self._timer_due_ms = due_ms
        delay_s = max(0, due_ms - self._clock()) / 1000
        self._timer = asyncio.get_running_loop().call_later(delay_s, self._tick)

    def _tick(self) -> None:
        node, self._timer = self._node, None
        if node is not None and not self.ended.is_set():
            self._attempt(lambda: tick(node, self._clock()))

    # Cleaning

    def _clean_later(self) -> None:
        if not self.ended.is_set():
            self._cleaning = asyncio.get_running_loop().call_later(self._cleaning_interval_s, self._clean)

    def _clean(self) -> None:
        """Delete what the retention of snapshots does not keep, and notify the node.

        An error is only logged, as in Kafka, except for a failed flush.
        """
        node = self._node
        assert node is not None, "start() sets it"
        if node.installing is None:
            try:
                self._storage.clean(node.log.high_watermark)
            except FlushFailedError as error:
                self.fail(error)
                return
            except (LogError, OSError, CorruptBatch) as error:
                log.error("Failed to delete old snapshots; retrying later", extra={"error": str(error)})
            if self._storage.start_offset > node.log.start_offset:
                self.handle(inputs.LogCleaned(self._storage.start_offset))
        self._clean_later()

    # Work of other threads

    def _on_disk(self, work: Coroutine[None, None, None]) -> None:
        task = asyncio.create_task(work)
        self._disk_work.add(task)
        task.add_done_callback(self._disk_work.discard)

    async def _flush(self, number: int, pending: PendingFlush) -> None:
        try:
            await asyncio.get_running_loop().run_in_executor(self._disk, pending.run)
            self._storage.complete(pending)
        except Exception as error:  # noqa: BLE001 - ends the node, whatever it is
            self.fail(error)
        else:
            self.handle(inputs.Flushed(number))

    async def _install(self, fetched: FetchedSnapshot) -> None:
        try:
            voters, level = await asyncio.get_running_loop().run_in_executor(self._disk, fetched.verify)
            size_bytes = self._storage.install(fetched)
        except (CorruptLogError, CorruptBatch) as error:
            log.warning("Rejected a fetched snapshot", extra={"path": str(fetched.writer.path), "error": str(error)})
            self._storage.drop_fetched()
            self.handle(inputs.SnapshotRejected(fetched.id))
        except Exception as error:  # noqa: BLE001 - ends the node, whatever it is
            self.fail(error)
        else:
            self.handle(inputs.SnapshotInstalled(fetched.id, size_bytes, voters, level))

    # The end

    def fail(self, error: Exception) -> None:
        """End the node because of an error: of the disk, a defect, or of a state machine that cannot apply the log."""
        if self.failure is None:
            self.failure = error
            is_expected = isinstance(error, LogError | CorruptBatch)
            log.error(
                "Stopped the node of the quorum after an error",
                extra={"error": str(error)},
                exc_info=None if is_expected else error,
            )
        self._end()

    def _end(self) -> None:
        self.ended.set()
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._cleaning is not None:
            self._cleaning.cancel()
        self._commit_waits.abandon()
        if self._accumulator is not None:
            self._accumulator.drain()
        for future in self._waiting.values():
            if not future.done():
                future.set_exception(CloseConnection("the node of the quorum has stopped"))

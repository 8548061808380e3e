"""The shell of one simulated node: carries out each Ready in order, and may crash between any two of its parts."""

from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING

from controller_core.quorum import ready as results
from controller_core.quorum.batches import Batch
from controller_core.quorum.inputs import (
    Flushed,
    Input,
    LogCleaned,
    Request,
    Response,
    SnapshotCreated,
    SnapshotInstalled,
)
from controller_core.quorum.messages import (
    FailedResponse,
    FetchResponse,
    FetchSnapshotResponse,
    ReadRange,
    RequestBody,
    ResponseBody,
    VoteRequest,
    VoteResponse,
)
from controller_core.quorum.node import Node
from controller_core.quorum.rules import Settings
from controller_core.quorum.start import start
from controller_core.quorum.states import NEVER
from controller_core.quorum.step import step, tick
from kafka_wire import ErrorCode
from tests.sim.disk import Disk, DiskError, Entry, SnapshotFile

if TYPE_CHECKING:
    from tests.sim.cluster import Cluster

LISTENER = "CONTROLLER"


@dataclass(frozen=True)
class Clock:
    """A node's own clock, which starts anywhere and goes at its own rate."""

    start_ms: int = 0
    percent: int = 100

    def local(self, now_ms: int) -> int:
        """Return the node's time."""
        return self.start_ms + now_ms * self.percent // 100

    def delay(self, local_ms: int) -> int:
        """Return how long a time of the node takes."""
        return -(-local_ms * 100 // self.percent)


class Host:
    """One node with its disk. `node` is None while its process does not run."""

    def __init__(self, cluster: "Cluster", settings: Settings, disk: Disk, clock: Clock) -> None:
        self.cluster, self.settings, self.disk, self.clock = cluster, settings, disk, clock
        self.id = settings.key.id
        self.node: Node | None = None
        self.incarnation = 0
        self.paused_until_ms = 0
        self._tick_ms = NEVER
        self._requests = 0
        self._callers: dict[int, Callable[[results.Reply], None]] = {}

    def start(self) -> None:
        """Start the process from what is on disk; with a damaged one it does not start."""
        assert self.node is None, self.id
        try:
            self.disk.open()
        except DiskError as error:
            self.cluster.scheduler.trace(self.id, error)
            return
        self.incarnation += 1
        self._callers, self._tick_ms = {}, NEVER
        now_ms = self.clock.local(self.cluster.scheduler.now_ms)
        seed = self.cluster.scheduler.random.getrandbits(64)
        log, history = self.disk.log_view(), self.disk.history()
        ready = start(self.settings, self.disk.election, log, history, seed, now_ms)
        self.cluster.checks.started(self, ready.node)
        self._carry_out(ready)

    def crash(self) -> None:
        """End the process at once."""
        if self.node is not None:
            self.cluster.scheduler.trace(self.id, "crash")
            self.node = None
            self.disk.crash(self.cluster.scheduler.random)
            self.cluster.checks.crashed(self)

    def handle(self, message: Input) -> None:
        """Give the node a message."""
        self._run(lambda node, now_ms: step(node, message, now_ms), type(message).__name__)

    def ask(self, body: RequestBody, reply: Callable[[results.Reply], None]) -> None:
        """Send a request of another node or of a client, and run an action with the reply."""
        if self.node is None:
            return
        self._requests += 1
        self._callers[self._requests] = lambda answer: self._check_and(reply, body, answer)
        self.cluster.checks.request_arrives(self, body)
        self.handle(Request(self._requests, LISTENER, body))

    def _check_and(self, reply: Callable[[results.Reply], None], request: RequestBody, answer: results.Reply) -> None:
        if isinstance(request, VoteRequest) and isinstance(answer.body, VoteResponse):
            self.cluster.checks.votes(self, request, answer.body)
        reply(answer)

    def command(self, make: Callable[[int], Input], reply: Callable[[results.Reply], None]) -> None:
        """Give the node a command that is answered."""
        self._requests += 1
        self._callers[self._requests] = reply
        self.handle(make(self._requests))

    def later(self, delay_ms: int, action: Callable[[], None]) -> None:
        """Run an action of this process, unless it has ended before; while it is paused it waits."""
        incarnation = self.incarnation

        def run() -> None:
            if self.incarnation != incarnation or self.node is None:
                return
            wait_ms = self.paused_until_ms - self.cluster.scheduler.now_ms
            if wait_ms > 0:
                self.cluster.scheduler.after(wait_ms, run)
            else:
                action()

        self.cluster.scheduler.after(delay_ms, run)

    def _tick(self, due_ms: int) -> None:
        if due_ms == self._tick_ms:
            self._tick_ms = NEVER
            self._run(tick, "tick")

    def _run(self, act: Callable[[Node, int], results.Ready], name: str) -> None:
        if self.node is None:
            return
        before, now_ms = self.node, self.clock.local(self.cluster.scheduler.now_ms)
        ready = act(before, now_ms)
        self.cluster.scheduler.trace(
            self.id, name, type(ready.node.state).__name__, ready.node.epoch, ready.node.log.end_offset
        )
        self.cluster.checks.stepped(self, before, ready)
        self._carry_out(ready)

    def _carry_out(self, ready: results.Ready) -> None:
        """Persist, send, apply; each may be the last that this process does."""
        cluster, before = self.cluster, self.node
        self.node = ready.node
        for part in (self._store_election, self._write_log, self._send, partial(self._answer, before)):
            if cluster.faults.crashes_now():
                self.crash()
                return
            try:
                part(ready)
            except DiskError:
                self.crash()
                return
        self._wait_for(ready)
        cluster.checks.carried_out(self, ready)

    def _wait_for(self, ready: results.Ready) -> None:
        if ready.next_tick_ms not in {self._tick_ms, NEVER}:
            self._tick_ms = due_ms = ready.next_tick_ms
            local_ms = due_ms - self.clock.local(self.cluster.scheduler.now_ms)
            self.later(self.clock.delay(max(0, local_ms)), lambda: self._tick(due_ms))
        elif ready.next_tick_ms == NEVER:
            self._tick_ms = NEVER

    def _store_election(self, ready: results.Ready) -> None:
        if ready.election is not None:
            self.disk.election = ready.election

    def _write_log(self, ready: results.Ready) -> None:
        for operation in ready.log:
            match operation:
                case results.Appended(batches=batches):
                    for batch in batches:
                        self.disk.append(Entry(batch, self.cluster.checks.appended(self, batch)))
                case results.Truncated(end_offset=end_offset):
                    self.cluster.checks.truncated(self, self.disk.truncate(end_offset))
                case results.SnapshotChunk() as chunk:
                    self._write_chunk(chunk)
        if ready.flush is not None:
            number = ready.flush
            self.disk.start_flush(number)
            self.later(self.cluster.faults.flush_delay_ms(), lambda: self._end_flush(number))

    def _end_flush(self, number: int) -> None:
        self.disk.end_flush(number)
        self.handle(Flushed(number))

    def _write_chunk(self, chunk: results.SnapshotChunk) -> None:
        before = b"" if chunk.position == 0 else self._partial(chunk)
        self.disk.partial = (chunk.id, before + chunk.data)
        if chunk.is_last:
            snapshot = self.cluster.snapshot_files[chunk.id]
            assert self.disk.partial[1] == snapshot.data, chunk.id
            self.later(self.cluster.faults.flush_delay_ms(), lambda: self._install(snapshot))

    def _partial(self, chunk: results.SnapshotChunk) -> bytes:
        assert self.disk.partial is not None, chunk
        snapshot_id, data = self.disk.partial
        assert (snapshot_id, len(data)) == (chunk.id, chunk.position), chunk
        return data

    def _install(self, snapshot: SnapshotFile) -> None:
        self.disk.install(snapshot)
        self.cluster.checks.installed(self, snapshot)
        self.handle(SnapshotInstalled(snapshot.id, len(snapshot.data), snapshot.voters, snapshot.kraft_version))

    def _send(self, ready: results.Ready) -> None:
        for outgoing in ready.requests:
            self.cluster.checks.sends(self, outgoing)
            self._send_one(outgoing)

    def _send_one(self, outgoing: results.Outgoing) -> None:
        cluster, incarnation = self.cluster, self.incarnation
        source, target = self.id, cluster.id_of(outgoing.destination)
        host = cluster.hosts[target]

        def respond(body: ResponseBody) -> None:
            if self.incarnation == incarnation:
                self.later(0, lambda: self.handle(Response(outgoing.destination.id, outgoing.correlation_id, body)))

        def arrive() -> None:
            if host.node is None:
                failed = FailedResponse(ErrorCode.NETWORK_EXCEPTION)
                cluster.network.deliver(target, source, lambda: respond(failed))
            else:
                host.later(0, lambda: host.ask(outgoing.body, answer))

        def answer(reply: results.Reply) -> None:
            body = reply.body
            assert not isinstance(body, results.AppendResult | results.UpgradeResult), body
            cluster.network.deliver(target, source, lambda: respond(body))

        cluster.network.deliver(source, target, arrive)

    def _answer(self, before: Node | None, ready: results.Ready) -> None:
        self.cluster.checks.before_answers(self, before, ready)
        for reply in ready.replies:
            caller = self._callers.pop(reply.request_id)
            body = self._filled(reply.body)
            self.cluster.checks.answers(body)
            caller(replace(reply, body=body))

    def _filled(self, body: object) -> "ResponseBody | results.AppendResult | results.UpgradeResult":
        """Return a response with the bytes that it names."""
        match body:
            case FetchResponse(read=ReadRange() as read):
                return replace(body, read=None, batches=self._read(read))
            case FetchSnapshotResponse(snapshot=snapshot_id, read_bytes=size) if snapshot_id is not None:
                snapshot = self.disk.snapshots[snapshot_id]
                self.disk.read_snapshot(snapshot)
                data = snapshot.data[body.position : body.position + size]
                return replace(body, data=data, read_bytes=0)
            case _:
                return body

    def _read(self, read: ReadRange) -> tuple[Batch, ...]:
        """Return batches from an offset, at least one; a byte for each record."""
        found: list[Entry] = []
        size = 0
        entries = self.disk.entries
        for entry in islice(entries, bisect_left(entries, read.offset, key=lambda one: one.batch.base_offset), None):
            batch = entry.batch
            size += batch.end_offset - batch.base_offset
            if batch.end_offset > read.end_offset or (found and size > read.max_bytes):
                break
            found.append(entry)
        self.disk.read_log(found)
        return tuple(entry.batch for entry in found)

    def make_snapshot(self) -> None:
        """Make a snapshot of what is committed, and delete the log before an older one."""
        node = self.node
        if node is None or node.installing is not None:
            return
        last = self.last_in_snapshot([entry.batch for entry in self.disk.entries])
        latest = max((snapshot.offset for snapshot in self.disk.snapshots), default=0)
        if last is None or last.end_offset <= latest:
            return
        older = [snapshot for snapshot in self.disk.snapshots if snapshot.offset > self.disk.start_offset]
        snapshot = self.cluster.snapshot_of(self, last)
        self.disk.snapshots[snapshot.id] = snapshot
        self.handle(SnapshotCreated(snapshot.id, len(snapshot.data)))
        if older and self.node is not None:
            start_offset = max(older).offset
            self.disk.clean(start_offset)
            self.handle(LogCleaned(start_offset))

    def last_in_snapshot(self, batches: Sequence[Batch]) -> Batch | None:
        """Return the last batch of the log that a snapshot made now has: the last committed one."""
        assert self.node is not None, self.id
        end_offset = self.node.log.high_watermark
        return next((batch for batch in reversed(batches) if batch.end_offset <= end_offset), None)

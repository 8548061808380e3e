"""A node of the quorum whose process has the controller of KRaft mode, without asyncio and sockets.

The controller, its follower of the log and the handlers are the product's. What they await is the commit of a record: a request is a
coroutine that runs up to this wait, and goes on when the quorum has committed the record or lost its leader.
"""

from collections.abc import Callable, Coroutine, Generator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

from controller_core.model import Endpoint
from controller_core.quorum import ready as results
from controller_core.quorum.batches import Batch, Position
from controller_core.quorum.inputs import Append
from controller_core.quorum.listening import ApplyRecords, ChangeLeader, Listening, LoadSnapshot, next_delivery
from controller_core.quorum.states import Leader
from controller_core.shell.active import OverloadedError, RefusedWriteError, TermEndedError
from controller_core.shell.kraft.controller import Identity, KRaftController
from controller_core.shell.quorum.wire_batches import encode_log
from kafka_log.files.snapshots import SnapshotReader
from kafka_wire.net.failures import CloseConnection
from tests.sim.host import Host

if TYPE_CHECKING:
    from tests.sim.kraft.cluster import KRaftCluster

ENDPOINT = Endpoint("CONTROLLER", "controller", 9_093, "PLAINTEXT")

Outcome = Any
"""Reply of a request, or the exception that ended it."""


@dataclass(eq=False)
class CommitWait:
    """A wait for the commit of a record; its result is whether the record is committed."""

    offset: int
    resume: Callable[[bool], None] | None = None

    def __await__(self) -> Generator["CommitWait", bool, bool]:
        """Wait."""
        return (yield self)


@dataclass(frozen=True)
class StoredSnapshot:
    """A snapshot as `LogFollower` reads it."""

    snapshot: Position
    data: bytes

    @property
    def size_bytes(self) -> int:
        """Size of the snapshot."""
        return len(self.data)

    def read(self, position: int, size: int) -> bytes:
        """Return some bytes."""
        return self.data[position : position + size]


class ControllerHost(Host):
    """Implements `shell.kraft.controller.NodeOfQuorum`. `controller` is None while the process does not run."""

    cluster: "KRaftCluster"
    controller: KRaftController | None = None
    loaded_snapshots = 0
    _listening: Listening
    _waits: list[CommitWait]
    _is_delivering: bool

    def start(self) -> None:
        """Start the process."""
        identity = Identity(
            node_id=self.id,
            cluster_id=self.cluster.cluster_id,
            endpoints=lambda: (ENDPOINT,),
            bootstrap=self.cluster.wishes.bootstrap(),
        )
        self._listening, self._waits, self._is_delivering = Listening(), [], False
        self.controller = KRaftController(self, identity, self.cluster.wishes.settings(), self._update)
        super().start()
        if self.node is None:
            self.controller = None

    def crash(self) -> None:
        """End the process at once: requests that wait get no answer."""
        super().crash()
        self.controller, self._waits = None, []

    # The node of the quorum, as the controller uses it

    @property
    def now_ms(self) -> int:
        """The time of the node."""
        return self.clock.local(self.cluster.scheduler.now_ms)

    @property
    def end_offset(self) -> int:
        """Offset of the next record of the log."""
        return 0 if self.node is None else self.node.log.end_offset

    @property
    def kraft_version(self) -> int:
        """Level of kraft.version."""
        return 0 if self.node is None else self.node.history.kraft_version

    def leads_in(self, epoch: int) -> bool:
        """Whether the node leads in an epoch."""
        return self.node is not None and isinstance(self.node.state, Leader) and self.node.epoch == epoch

    def append_now(self, epoch: int, payload: bytes, record_count: int) -> results.AppendResult:
        """Append a batch. Raises CloseConnection when the process ends before the commit."""
        found: list[results.Reply] = []
        self.command(lambda request_id: Append(request_id, epoch, payload, record_count), found.append)
        if not found:
            raise CloseConnection("the process has ended")
        assert isinstance(found[0].body, results.AppendResult), found
        return found[0].body

    async def committed(self, offset: int) -> bool:
        """Wait until a record of this leader is committed; False when it may be lost."""
        node = self.node
        if node is None or not isinstance(node.state, Leader):
            return False
        if (node.high_watermark or 0) > offset:
            return True
        return await CommitWait(offset)

    def fail(self, error: Exception) -> None:
        """Report a state machine that cannot apply the log: a defect."""
        raise error

    # Requests

    def run(self, work: Coroutine[Any, Any, Any], done: Callable[[Outcome], None] | None) -> None:
        """Run a request of this process up to its end, which may be after a commit; without `done` it has no answer."""
        incarnation, decided_at = self.incarnation, -1

        def resume(value: bool | None) -> None:
            nonlocal decided_at
            if self.incarnation != incarnation or self.node is None:
                work.close()
                return
            try:
                waiting: CommitWait = work.send(value)
            except StopIteration as end:
                self._answered(decided_at, end.value, done)
            except (TermEndedError, OverloadedError, RefusedWriteError) as error:
                if done is not None:
                    done(error)
            else:
                decided_at = self.end_offset
                waiting.resume = resume
                self._waits.append(waiting)

        resume(None)
        if self.node is not None:
            self.cluster.metadata.decided(self)

    def _answered(self, decided_at: int, answer: Outcome, done: Callable[[Outcome], None] | None) -> None:
        if done is not None:
            if decided_at >= 0:
                self.cluster.metadata.answers(self, decided_at)
            done(answer)

    def _end_waits(self, *, is_committed: bool, below: int | None = None) -> None:
        ended = [wait for wait in self._waits if below is None or wait.offset < below]
        self._waits = [wait for wait in self._waits if wait not in ended]
        for process in ended:
            resume = process.resume
            assert resume is not None, process
            self.later(0, lambda resume=resume: resume(is_committed))

    # What the node has new

    def _carry_out(self, ready: results.Ready) -> None:
        super()._carry_out(ready)
        if self.node is None:
            self.controller, self._waits = None, []
            return
        for notice in ready.notices:
            match notice:
                case results.LeaderChanged():
                    self._end_waits(is_committed=False)
                case results.Committed(high_watermark=high_watermark):
                    self._end_waits(is_committed=True, below=high_watermark)
        self._update()

    def _update(self) -> None:
        """Deliver what the node has new, later."""
        if not self._is_delivering:
            self._is_delivering = True
            self.later(self.cluster.apply_delay_ms(), self._deliver)

    def _deliver(self) -> None:
        self._is_delivering = False
        node, controller = self.node, self.controller
        assert node is not None, self.id
        assert controller is not None, self.id
        delivery = next_delivery(self._listening, node)
        if delivery is None:
            return
        end_offset, follower = 0, controller.follower
        match delivery:
            case LoadSnapshot(id=snapshot):
                stored = StoredSnapshot(snapshot, self.disk.snapshots[snapshot].data)
                follower.handle_snapshot(cast("SnapshotReader", stored))
                self.loaded_snapshots += 1
            case ApplyRecords(read=wanted):
                batches = self._read(wanted)
                self.cluster.metadata.committed_batches(batches)
                follower.handle_commit(b"".join(encode_log(batch, 0) for batch in batches))
                end_offset = batches[-1].end_offset
            case ChangeLeader(epoch=epoch, leader_id=leader_id):
                follower.handle_leader_change(epoch, leader_id)
        if self.node is not None:
            self._listening = self._listening.after(delivery, end_offset)
            self.cluster.metadata.applied(self)
            self._update()

    # Snapshots

    def last_in_snapshot(self, batches: Sequence[Batch]) -> Batch | None:
        """Return the last batch that the controller has applied: none within a transaction, and before there is a metadata version."""
        if self.controller is None:
            return None
        committed = self.controller.committed
        if committed.transaction is not None or committed.image.metadata_version is None:
            return None
        return next((batch for batch in batches if batch.end_offset == committed.end_offset), None)

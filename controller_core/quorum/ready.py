"""Result of a step: the next node, and what the shell does, in the order of the fields.

The shell carries out one `Ready` after another, and the fields of each in their order:

1. persist: `election`, then `log` in order. `election` is on disk (fsync) before anything after it. `log` is visible to reads of the log,
   not necessarily on disk; `flush` starts when it is written, runs concurrently with everything else and ends with a `Flushed` message.
2. send: `requests`, then `replies`. What they promise is on disk: a Fetch, or a request for votes, is sent only once the
   log is flushed, and votes are part of `election`.
3. apply: `notices`.

A flush that fails, or `election` that cannot be written, stops the process: neither may be tried again.
"""

from dataclasses import dataclass

from controller_core.quorum import inputs, messages, rules, states
from controller_core.quorum.batches import Batch, Position
from controller_core.quorum.changed import changed
from controller_core.quorum.node import Node, StoredElection
from kafka_wire import ErrorCode

# Random numbers (SplitMix64) are state of the node, seeded by the shell: a node with an equal state and an equal message does the same
# again.
_MASK = (1 << 64) - 1
_STEP = 0x9E3779B97F4A7C15


def draw(seed: int, bound: int) -> tuple[int, int]:
    """Return a number from 0 to below `bound`, and the next seed. Not for secrets.

    >>> number, seed = draw(7, 1000)
    >>> draw(7, 1000) == (number, seed), draw(seed, 1000)[0] == number
    (True, False)
    """
    seed = (seed + _STEP) & _MASK
    mixed = seed
    mixed = ((mixed ^ (mixed >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
    mixed = ((mixed ^ (mixed >> 27)) * 0x94D049BB133111EB) & _MASK
    return ((mixed ^ (mixed >> 31)) % bound if bound else 0), seed


@dataclass(frozen=True, slots=True)
class Appended:
    """Append these batches to the log."""

    batches: tuple[Batch, ...]


@dataclass(frozen=True, slots=True)
class Truncated:
    """Remove the records from an offset on."""

    end_offset: int


@dataclass(frozen=True, slots=True)
class SnapshotChunk:
    """Write bytes of a fetched snapshot at a position; position 0 starts the file again.

    With `is_last` the snapshot is complete: the shell checks it, flushes it, renames it, starts the log at its end, and reports
    SnapshotInstalled or SnapshotRejected. No request promises that the bytes are on disk, so they may be written after the requests of
    the same Ready are sent.
    """

    id: Position
    position: int
    data: bytes
    is_last: bool


LogOperation = Appended | Truncated | SnapshotChunk


@dataclass(frozen=True, slots=True)
class Outgoing:
    """A request to another node. The shell returns a Response with the same correlation id, or a FailedResponse."""

    destination: rules.Destination
    correlation_id: int
    body: messages.RequestBody


@dataclass(frozen=True, slots=True)
class AppendResult:
    """Reply to Append: the offset of its first record, or NOT_LEADER_OR_FOLLOWER or RECORD_LIST_TOO_LARGE."""

    error: ErrorCode
    base_offset: int = -1


@dataclass(frozen=True, slots=True)
class UpgradeResult:
    """Reply to UpgradeKRaftVersion, with a reason if it was refused."""

    error: ErrorCode
    message: str | None = None


@dataclass(frozen=True, slots=True)
class Reply:
    """The reply to a request of the shell's or of another node."""

    request_id: int
    body: messages.ResponseBody | AppendResult | UpgradeResult


@dataclass(frozen=True, slots=True)
class Committed:
    """Records before an offset are committed and may be applied."""

    high_watermark: int


@dataclass(frozen=True, slots=True)
class LeaderChanged:
    """A new epoch or leader. If it is this node, `start_offset` is the first offset of its epoch.

    A node's own leadership takes effect when the state machine has applied the record at `start_offset`, that is all committed before.
    """

    epoch: int
    leader_id: int | None
    start_offset: int | None = None


@dataclass(frozen=True, slots=True)
class Violation:
    """Another node broke the protocol, and what it asked for was not done; or it refuses this node. Needs a person."""

    reason: str


@dataclass(frozen=True, slots=True)
class Stopped:
    """The node has shut down, and answers nothing any more. `timed_out`: it could not hand over before its time was over."""

    timed_out: bool


Notice = Committed | LeaderChanged | Violation | Stopped


@dataclass(frozen=True, slots=True)
class Ready:
    """What the shell does now, in the order of the fields. `next_tick_ms` is the time of the next `tick`, unless a message comes first."""

    node: Node
    election: StoredElection | None = None
    log: tuple[LogOperation, ...] = ()
    flush: int | None = None
    requests: tuple[Outgoing, ...] = ()
    replies: tuple[Reply, ...] = ()
    notices: tuple[Notice, ...] = ()
    next_tick_ms: int = states.NEVER


class Draft:
    """A Ready that is being made: the functions of a step change it in turn."""

    def __init__(self, node: Node, now_ms: int) -> None:
        self.node = node
        self.now_ms = now_ms
        self.log: list[LogOperation] = []
        self.requests: list[Outgoing] = []
        self.replies: list[Reply] = []
        self.notices: list[Notice] = []
        self.flush: int | None = None
        self._before = node.stored

    @property
    def state(self) -> states.State:
        """The node's state."""
        return self.node.state

    def set_state(self, state: states.State) -> None:
        """Change the state without a transition, as when a timer starts again."""
        self.node = changed(self.node, state=state)

    def store_election(self) -> None:
        """Have the current epoch, leader and vote on disk before anything is sent."""
        self.node = changed(self.node, stored=self.node.election)

    def draw(self, bound: int) -> int:
        """Draw a random number below a bound from the node's seed."""
        number, seed = draw(self.node.seed, bound)
        self.node = changed(self.node, seed=seed)
        return number

    def send(self, destination: rules.Destination, body: messages.RequestBody) -> bool:
        """Send a request unless the connection is busy or backs off; return whether it was sent."""
        connections = self.node.connections
        if not connections.is_ready(destination.id, self.now_ms):
            return False
        timeout_ms = self.now_ms + self.node.settings.request_timeout_ms
        sent = connections.sent(destination.id, timeout_ms, type(body))
        self.node = changed(self.node, connections=sent)
        self.requests.append(Outgoing(destination, sent.last_correlation_id, body))
        return True

    def reset_connections(self) -> None:
        """Ignore the answers to earlier requests."""
        self.node = changed(self.node, connections=self.node.connections.reset())

    def answer(self, request: inputs.Request, body: messages.ResponseBody) -> None:
        """Reply to a request."""
        self.replies.append(Reply(request.id, body))

    def append(self, batches: tuple[Batch, ...]) -> None:
        """Append batches to the log; their voter sets count at once."""
        self.node = changed(self.node, log=self.node.log.append(batches), history=self.node.history.append(batches))
        self.log.append(Appended(batches))

    def truncate(self, end_offset: int) -> None:
        """Remove records from the end of the log, and the voter sets in them."""
        history = self.node.history.truncate(end_offset)
        self.node = changed(self.node, log=self.node.log.truncate(end_offset), history=history)
        self.log.append(Truncated(end_offset))

    def flush_log(self) -> None:
        """Start a flush if the log has records that none covers; while one runs the next waits for its end."""
        log = self.node.log
        if log.flush is None and log.flushed_offset < log.end_offset:
            self.node = changed(self.node, log=log.start_flush())
            self.flush = self.node.log.flush_count

    def commit(self, high_watermark: int) -> None:
        """Raise the high watermark."""
        log = self.node.log
        raised = changed(log, high_watermark=max(log.high_watermark, high_watermark))
        self.node = changed(self.node, high_watermark=high_watermark, log=raised)
        if raised is not log and raised.high_watermark > log.high_watermark:
            self.notices.append(Committed(raised.high_watermark))

    def violation(self, reason: str) -> None:
        """Report that another node broke the protocol."""
        self.notices.append(Violation(reason))

    def finish(self, next_tick_ms: int) -> Ready:
        """Return the result."""
        stored = self.node.stored
        return Ready(
            self.node,
            stored if stored != self._before else None,
            tuple(self.log),
            self.flush,
            tuple(self.requests),
            tuple(self.replies),
            tuple(self.notices),
            next_tick_ms,
        )

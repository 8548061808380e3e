"""Latencies and rates of a quorum's node, over the windows and with the definitions of Kafka's raft-metrics.

Source: KafkaRaftMetrics, and SampledStat, Rate and TimeRatio of Kafka's metrics.
"""

from collections import deque
from dataclasses import dataclass, field

from controller_core.quorum.node import Node
from controller_core.quorum.ready import Appended, Ready
from controller_core.quorum.states import Candidate, Follower, Leader, Prospective, State

WINDOW_MS = 30_000
"""Length of a window (metrics.sample.window.ms); a value has the current window and the one before it."""

KEPT_MS = 2 * WINDOW_MS

PENDING_MAX = 10_000
"""Appends whose commit is awaited; of more, the latencies of the latest are not measured."""

NOTHING = float("nan")
"""Average and maximum of no value, as in Kafka."""


@dataclass(slots=True)
class _Window:
    start_ms: int
    total: float = 0
    count: int = 0
    maximum: float = NOTHING


class Windows:
    """Values of the last 30 to 60 seconds."""

    def __init__(self) -> None:
        self._windows: deque[_Window] = deque()

    def record(self, value: float, now_ms: int) -> None:
        """Add a value."""
        self._purge(now_ms)
        if not self._windows or now_ms - self._windows[-1].start_ms >= WINDOW_MS:
            self._windows.append(_Window(now_ms))
        window = self._windows[-1]
        window.total += value
        window.count += 1
        window.maximum = value if window.count == 1 else max(window.maximum, value)

    def average(self, now_ms: int) -> float:
        """Return the average."""
        self._purge(now_ms)
        count = sum(window.count for window in self._windows)
        return sum(window.total for window in self._windows) / count if count else NOTHING

    def maximum(self, now_ms: int) -> float:
        """Return the largest value."""
        self._purge(now_ms)
        return max((window.maximum for window in self._windows), default=NOTHING)

    def rate(self, now_ms: int) -> float:
        """Return the sum per second. A first window counts as a whole one, so that a first value is no peak."""
        self._purge(now_ms)
        if not self._windows:
            return 0
        elapsed_ms = now_ms - self._windows[0].start_ms
        if elapsed_ms < WINDOW_MS:
            elapsed_ms += WINDOW_MS
        return sum(window.total for window in self._windows) * 1000 / elapsed_ms

    def _purge(self, now_ms: int) -> None:
        while self._windows and now_ms - self._windows[0].start_ms >= KEPT_MS:
            self._windows.popleft()


@dataclass(frozen=True, slots=True)
class _Pending:
    """An appended batch whose commit is awaited."""

    end_offset: int
    records: int
    appended_ms: int


@dataclass(slots=True)
class RaftMeasurements:
    """Latencies and rates of one node, from its results."""

    commit_latency: Windows = field(default_factory=Windows)
    """Milliseconds from append to commit, divided by the records of the batch, as in Kafka."""
    election_latency: Windows = field(default_factory=Windows)
    """Milliseconds from the start of the last round of votes to a leader."""
    fetched_records: Windows = field(default_factory=Windows)
    appended_records: Windows = field(default_factory=Windows)
    _election_start_ms: int | None = None
    _pending: deque[_Pending] = field(default_factory=deque)
    _busy_s: float = 0
    _measured_s: float | None = None

    def observe(self, before: Node | None, ready: Ready, now_ms: int) -> None:
        """Take what a result contributes."""
        state = ready.node.state
        if before is None or _is_new(before.state, state):
            self._enter(state, now_ms)
        if not isinstance(state, Leader):
            self._pending.clear()
        for operation in ready.log:
            if isinstance(operation, Appended):
                self._count(operation, state, now_ms)
        high_watermark = ready.node.high_watermark or 0
        while self._pending and self._pending[0].end_offset <= high_watermark:
            committed = self._pending.popleft()
            self.commit_latency.record((now_ms - committed.appended_ms) / committed.records, now_ms)

    def _enter(self, state: State, now_ms: int) -> None:
        if isinstance(state, Prospective | Candidate):
            self._election_start_ms = now_ms
        elif isinstance(state, Leader | Follower) and self._election_start_ms is not None:
            self.election_latency.record(now_ms - self._election_start_ms, now_ms)
            self._election_start_ms = None

    def _count(self, operation: Appended, state: State, now_ms: int) -> None:
        batches = operation.batches
        records = batches[-1].end_offset - batches[0].base_offset
        if not isinstance(state, Leader):
            self.fetched_records.record(records, now_ms)
            return
        self.appended_records.record(records, now_ms)
        if len(self._pending) < PENDING_MAX:
            self._pending.append(_Pending(batches[-1].end_offset, records, now_ms))

    def worked(self, seconds: float) -> None:
        """Add time in which the node was busy."""
        self._busy_s += seconds

    def idle_ratio(self, now_s: float) -> float:
        """Return the part of the time since the last call in which the node waited; 1 at the first call."""
        measured_s, self._measured_s = self._measured_s, now_s
        busy_s, self._busy_s = self._busy_s, 0.0
        if measured_s is None or now_s <= measured_s:
            return 1.0
        return max(0.0, 1 - busy_s / (now_s - measured_s))


def _is_new(before: State, after: State) -> bool:
    return type(before) is not type(after) or before.epoch != after.epoch

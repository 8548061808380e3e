"""Producers of a log that is opened or truncated: from the latest snapshot, and the batches behind it.

Source: Kafka's UnifiedLog.rebuildProducerState and LogLoader.recoverSegment.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path

from kafka_log.files.producer_snapshots import ProducerSnapshots
from kafka_log.files.segment import Segment
from kafka_log.files.segment_batches import read_whole_batches
from kafka_log.files.transaction_index_file import TransactionIndexFile
from kafka_log.format.producer_batches import read_producer_batches
from kafka_log.format.producer_states import ProducerStates
from kafka_log.format.transaction_index import AbortedTransaction

CHUNK_BYTES = 4 * 1024 * 1024
"""Read at once, as in the check of a segment."""

DEFAULT_EXPIRATION_MS = 86_400_000
"""Default of producer.id.expiration.ms."""


class ProducerRecovery:
    """Rebuilds the transaction index of each checked segment, and takes a snapshot of the producers at its end."""

    def __init__(self, folder: Path, *, log_start_offset: int, now_ms: int, expiration_ms: int) -> None:
        self._folder = folder
        self._log_start_offset = log_start_offset
        self._now_ms = now_ms
        self._expiration_ms = expiration_ms
        self._states = ProducerStates()
        self._snapshots = ProducerSnapshots(folder)
        self._aborted: list[AbortedTransaction] = []
        self._base_offset = 0

    def is_sound(self, segment: Segment) -> bool:
        """Return whether the transaction index of a flushed segment can be read; otherwise the segment is checked."""
        return TransactionIndexFile(self._folder, segment.base_offset).error() is None

    def begin(self, segment: Segment, opened: list[Segment], later: list[int]) -> None:
        """Load the producers at the start of a segment."""
        self._states = ProducerStates()
        self._snapshots = ProducerSnapshots(self._folder)
        self._aborted = []
        self._base_offset = segment.base_offset
        rebuild_producers(
            self._states,
            self._snapshots,
            opened,
            segment_offsets=[*(other.base_offset for other in opened), segment.base_offset, *later],
            log_start_offset=self._log_start_offset,
            last_offset=segment.base_offset,
            now_ms=self._now_ms,
            expiration_ms=self._expiration_ms,
        )

    def replay(self, batches: bytes) -> None:
        """Apply batches of the segment. A marker that cannot be read is skipped, and its transaction stays open."""
        self._aborted += self._states.replay(read_producer_batches(batches, skip_bad_markers=True))

    def end(self, end_offset: int) -> None:
        """Write the transaction index and the snapshot."""
        index = TransactionIndexFile(self._folder, self._base_offset)
        index.reset()
        index.append(self._aborted)
        self._states.end_offset = end_offset
        self._snapshots.take(self._states)


def rebuild_producers(
    states: ProducerStates,
    snapshots: ProducerSnapshots,
    segments: Sequence[Segment],
    *,
    segment_offsets: Sequence[int],
    log_start_offset: int,
    last_offset: int,
    now_ms: int,
    expiration_ms: int,
    is_clean: bool = False,
) -> None:
    """Bring `states` to `last_offset`, and leave a snapshot there.

    `segments` are those to read batches from, `segment_offsets` the base offsets of all: at the last two of them snapshots are taken
    too, so that a later truncation finds one. A log that was closed cleanly and has no snapshot never had a producer; it is not read.
    """
    wanted = {*segment_offsets[-2:], last_offset}
    if is_clean and not snapshots.offsets():
        for offset in sorted(wanted):
            states.end_offset = offset
            snapshots.take(states)
        return
    had_none = states.is_empty and states.end_offset >= last_offset
    snapshots.delete_outside(log_start_offset, last_offset)
    if last_offset != states.end_offset:
        snapshots.load_latest(states, log_start_offset, now_ms=now_ms, expiration_ms=expiration_ms)
    else:
        states.raise_start(log_start_offset)
        snapshots.after_start_moved(log_start_offset)
    # A truncation cannot add producers to a log without any.
    if not had_none and states.end_offset < last_offset:
        for segment in _segments_between(segments, states.end_offset, last_offset):
            states.end_offset = max(segment.base_offset, states.end_offset, log_start_offset)
            if segment.base_offset in wanted:
                snapshots.take(states)
            for batches in _batches_between(segment, states.end_offset, last_offset):
                states.replay(read_producer_batches(batches, skip_bad_markers=True))
    states.end_offset = last_offset
    snapshots.take(states)


def _segments_between(segments: Sequence[Segment], offset: int, end_offset: int) -> list[Segment]:
    """Return the segments from the one that has `offset` to the one before `end_offset`."""
    floor = max((segment.base_offset for segment in segments if segment.base_offset <= offset), default=offset)
    return [segment for segment in segments if floor <= segment.base_offset < end_offset]


def _batches_between(segment: Segment, offset: int, end_offset: int) -> Iterator[bytes]:
    """Yield whole batches from the one that has `offset` to the one before that with `end_offset`."""
    first, last = segment.find(offset), segment.find(end_offset)
    position = segment.size_bytes if first is None else first.position
    end = segment.size_bytes if last is None else last.position
    yield from read_whole_batches(segment, position, end, CHUNK_BYTES)

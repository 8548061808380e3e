"""The metadata log as an observer follows it, in memory: the image of what is committed, and batches that are not committed yet.

The log is not kept on disk: a start reads the controllers' latest snapshot and what follows it (ADR 64). Work is done in slices, between
which the event loop serves others. No I/O. Source: KafkaRaftClient (as observer) and MetadataLoader of Kafka.
"""

import struct
from collections import deque
from collections.abc import Iterator

from kafka_log.format.control_records import MESSAGES, last_contained_timestamp_ms
from kafka_metadata.failures import MetadataError
from kafka_metadata.image import MetadataImage
from kafka_metadata.metadata_log import MetadataLog, apply_batch
from kafka_metadata.record_codec import decode_record
from kafka_metadata.replay import replay
from kafka_wire import codec
from kafka_wire.records import ControlType, Record, RecordBatch, control_type, decode_batches

MAX_PENDING_BYTES = 64 * 1024 * 1024
"""Bytes of batches that are not committed: more than a quorum appends in the time of a commit, by far."""

_VERSION = struct.Struct(">h")


class FollowedLog:
    """What an observer has of the log."""

    def __init__(self) -> None:
        self.applied = MetadataLog()
        """The image of committed records, and how far it is."""
        self.high_watermark = -1
        """Offset before which the leader has committed, as it answered last; -1 before its first answer."""
        self.kraft_version = 0
        """Level of kraft.version in the log's control records."""
        self._pending: deque[RecordBatch] = deque()
        self._pending_bytes = 0

    @property
    def end(self) -> tuple[int, int]:
        """Offset of the next record to fetch, and the epoch of the last one that was fetched."""
        if self._pending:
            header = self._pending[-1].header
            return header.last_offset + 1, header.partition_leader_epoch
        return self.applied.end_offset, self.applied.epoch

    @property
    def is_caught_up(self) -> bool:
        """Whether everything is applied that the leader had committed at its last answer."""
        return 0 <= self.high_watermark <= self.applied.end_offset

    def append(self, records: bytes) -> None:
        """Replay fetched batches. Raises CorruptBatch, and MetadataError for batches that do not follow the last one."""
        for batch in decode_batches(records):
            end_offset, _ = self.end
            if batch.header.base_offset != end_offset:
                raise MetadataError(f"The leader sent a batch at offset {batch.header.base_offset} for {end_offset}.")
            if self._pending_bytes > MAX_PENDING_BYTES:
                return  # They are fetched again after the next commit.
            self._pending.append(batch)
            self._pending_bytes += batch.header.size_bytes

    def truncate(self, end_offset: int) -> None:
        """Forget batches that another leader does not have. Raises MetadataError if committed ones are among them."""
        if end_offset < self.applied.end_offset:
            raise MetadataError(
                f"The leader's log ends at offset {end_offset}, but records up to {self.applied.end_offset} were committed."
            )
        while self._pending and self._pending[-1].header.last_offset >= end_offset:
            self._pending_bytes -= self._pending.pop().header.size_bytes

    def commit(self, high_watermark: int) -> Iterator[None]:
        """Apply what is committed, with a pause after each batch. Raises MetadataError for a record that cannot be applied."""
        self.high_watermark = max(self.high_watermark, high_watermark)
        while self._pending and self._pending[0].header.last_offset < self.high_watermark:
            batch = self._pending.popleft()
            self._pending_bytes -= batch.header.size_bytes
            if batch.header.is_control:
                self._take_control(batch)
            self.applied = apply_batch(self.applied, batch)
            yield

    def load(self, snapshot: bytes, end_offset: int, epoch: int) -> Iterator[None]:
        """Replace everything by a snapshot, with a pause after each batch. Raises CorruptBatch and MetadataError."""
        image = MetadataImage()
        kraft_version = 0
        for batch in decode_batches(snapshot):
            if batch.header.is_control:
                kraft_version = max(kraft_version, _kraft_version(batch.records))
            else:
                found = (decode_record(record.value, record.offset) for record in batch.records)
                image = replay(image, found, batch.header.base_offset)
            yield
        self._pending.clear()
        self._pending_bytes = 0
        self.kraft_version = kraft_version
        self.high_watermark = max(self.high_watermark, end_offset)
        self.applied = MetadataLog(image, end_offset, epoch, last_contained_timestamp_ms(snapshot))

    def _take_control(self, batch: RecordBatch) -> None:
        self.kraft_version = max(self.kraft_version, _kraft_version(batch.records))


def _kraft_version(records: tuple[Record, ...] | list[Record]) -> int:
    """Return the level of kraft.version in control records, 0 without one."""
    for record in records:
        if control_type(record) is ControlType.KRAFT_VERSION and record.value is not None:
            (version,) = _VERSION.unpack_from(record.value)
            level: int = codec.decode(MESSAGES[ControlType.KRAFT_VERSION], version, record.value)["kraft_version"]
            return level
    return 0

"""State of one idempotent producer in a log, and the rules for its next batch.

A producer numbers its records. The log keeps the last five batches of each producer, so that it recognizes a batch that was sent again, and
refuses one that does not continue the numbers. A producer with a higher epoch replaces the one before it. Source: KIP-98, Kafka's
ProducerStateEntry and ProducerAppendInfo (without the verification of transactions by their coordinator, KIP-890).
"""

from dataclasses import dataclass, replace
from enum import Enum
from typing import NamedTuple

from kafka_log.errors import RefusedAppendError
from kafka_log.format.producer_batches import (
    NO_PRODUCER_EPOCH,
    NO_SEQUENCE,
    SEQUENCES,
    EndMarker,
    ProducerBatch,
)
from kafka_wire import ErrorCode
from kafka_wire.records import NO_TIMESTAMP

BATCHES_KEPT = 5
"""A producer has at most five requests in flight (max.in.flight.requests.per.connection), so it repeats none of more batches."""

NO_COORDINATOR_EPOCH = -1
MAX_PRODUCER_EPOCH = 2**15 - 1


class Origin(Enum):
    """Sender of batches, which decides how they are checked. Source: Kafka's AppendOrigin."""

    CLIENT = "client"
    """A producer: sequence numbers and epochs are checked."""
    COORDINATOR = "coordinator"
    """A coordinator on this broker, whose records have no sequence numbers: only epochs are checked."""
    REPLICATION = "replication"
    """The leader, or the log itself when it is recovered: the batches were checked when the leader took them."""


class LastBatch(NamedTuple):
    """One of the last batches of a producer."""

    last_sequence: int
    last_offset: int
    offset_delta: int
    """Number of records before the last one."""
    timestamp_ms: int

    @property
    def first_sequence(self) -> int:
        """Sequence number of the first record."""
        return (
            NO_SEQUENCE if self.last_sequence == NO_SEQUENCE else (self.last_sequence - self.offset_delta) % SEQUENCES
        )

    @property
    def first_offset(self) -> int:
        """Offset of the first record."""
        return self.last_offset - self.offset_delta


@dataclass(frozen=True, slots=True)
class ProducerEntry:
    """State of a producer in a log."""

    producer_id: int
    epoch: int = NO_PRODUCER_EPOCH
    coordinator_epoch: int = NO_COORDINATOR_EPOCH
    last_timestamp_ms: int = NO_TIMESTAMP
    """Of its last batch or end marker; a producer without an open transaction expires some time after it."""
    transaction_first_offset: int | None = None
    """Offset of the first record of its open transaction."""
    batches: tuple[LastBatch, ...] = ()
    """At most BATCHES_KEPT, the last one at the end; all of the same epoch."""

    @property
    def last_sequence(self) -> int:
        """Sequence number of its last record."""
        return self.batches[-1].last_sequence if self.batches else NO_SEQUENCE

    @property
    def last_data_offset(self) -> int:
        """Offset of its last record, -1 without one."""
        return self.batches[-1].last_offset if self.batches else -1

    @property
    def last_offset_delta(self) -> int:
        """Number of records before the last one in its last batch."""
        return self.batches[-1].offset_delta if self.batches else 0

    def is_expired(self, now_ms: int, expiration_ms: int) -> bool:
        """Return whether it was idle for `expiration_ms` (producer.id.expiration.ms); never while a transaction is open."""
        return self.transaction_first_offset is None and now_ms - self.last_timestamp_ms >= expiration_ms


def find_duplicate(entry: ProducerEntry, batch: ProducerBatch) -> LastBatch | None:
    """Return the kept batch with the same epoch and sequence numbers, whose offsets answer a batch that was sent again."""
    if batch.epoch != entry.epoch:
        return None
    wanted = (batch.base_sequence, batch.last_sequence)
    return next((kept for kept in entry.batches if (kept.first_sequence, kept.last_sequence) == wanted), None)


def with_data(entry: ProducerEntry, batch: ProducerBatch, origin: Origin, *, known_epoch: int) -> ProducerEntry:
    """Return the entry after a batch of data. Raises RefusedAppendError.

    `known_epoch` is the epoch of the log's entry before this append, which may have several batches.
    """
    _check_epoch(entry, batch, origin)
    if origin is Origin.CLIENT:
        _check_sequence(entry, batch, known_epoch)
    is_open = entry.transaction_first_offset is not None
    # Kafka refuses it from a leader too, and then has a replica that cannot follow, or a log that cannot be opened.
    if is_open and not batch.is_transactional and origin is not Origin.REPLICATION:
        raise RefusedAppendError(
            ErrorCode.INVALID_TXN_STATE,
            f"Producer {batch.producer_id} has an open transaction, and its batch at offset {batch.base_offset} is not "
            "transactional. Commit or abort the transaction first.",
        )
    last = LastBatch(
        batch.last_sequence, batch.last_offset, batch.last_offset - batch.base_offset, batch.max_timestamp_ms
    )
    kept = entry.batches if entry.epoch == batch.epoch else ()
    return replace(
        entry,
        epoch=batch.epoch,
        last_timestamp_ms=batch.max_timestamp_ms,
        transaction_first_offset=batch.base_offset
        if batch.is_transactional and not is_open
        else entry.transaction_first_offset,
        batches=(*kept, last)[-BATCHES_KEPT:],
    )


def with_marker(
    entry: ProducerEntry, batch: ProducerBatch, marker: EndMarker, origin: Origin, *, transaction_version: int = 0
) -> ProducerEntry:
    """Return the entry after the end of a transaction. Raises RefusedAppendError.

    From `transaction_version` 2 on, each end of a transaction raises the epoch (KIP-890), so that a marker of the same epoch is a late one.
    """
    _check_epoch(entry, batch, origin, transaction_version)
    if origin is not Origin.REPLICATION and entry.coordinator_epoch > marker.coordinator_epoch:
        raise RefusedAppendError(
            ErrorCode.TRANSACTION_COORDINATOR_FENCED,
            f"The marker for producer {batch.producer_id} is of coordinator epoch {marker.coordinator_epoch}, which is below "
            f"the last seen epoch {entry.coordinator_epoch}. Another broker is the transaction coordinator.",
        )
    return replace(
        entry,
        epoch=batch.epoch,
        coordinator_epoch=marker.coordinator_epoch,
        last_timestamp_ms=marker.timestamp_ms,
        transaction_first_offset=None,
        batches=entry.batches if entry.epoch == batch.epoch else (),
    )


def _check_epoch(entry: ProducerEntry, batch: ProducerBatch, origin: Origin, transaction_version: int = 0) -> None:
    if origin is Origin.REPLICATION:
        return
    raises_epoch = transaction_version >= 2
    # The same marker, written again after its answer was lost (KAFKA-19999)
    is_repeated = batch.epoch == entry.epoch and (
        entry.transaction_first_offset is None or batch.epoch == MAX_PRODUCER_EPOCH
    )
    if batch.epoch < entry.epoch or (raises_epoch and batch.epoch == entry.epoch and not is_repeated):
        raise RefusedAppendError(
            ErrorCode.INVALID_PRODUCER_EPOCH,
            f"Producer {batch.producer_id} has epoch {batch.epoch} at offset {batch.base_offset}, the last seen epoch is "
            f"{entry.epoch}. Another producer with the same transactional id may run.",
        )


def _check_sequence(entry: ProducerEntry, batch: ProducerBatch, known_epoch: int) -> None:
    if batch.epoch != entry.epoch:
        in_sequence = batch.base_sequence == 0 or entry.epoch == NO_PRODUCER_EPOCH
    else:
        # A producer that is not known may start anywhere: its records may have been deleted by retention.
        in_sequence = known_epoch == NO_PRODUCER_EPOCH or batch.base_sequence == _next_sequence(entry.last_sequence)
    if not in_sequence:
        raise RefusedAppendError(
            ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
            f"Producer {batch.producer_id} with epoch {batch.epoch} sent sequence number {batch.base_sequence} at offset "
            f"{batch.base_offset}; the last one is {entry.last_sequence} of epoch {entry.epoch}. "
            "Batches in between may be lost.",
        )


def _next_sequence(sequence: int) -> int:
    return (sequence + 1) % SEQUENCES

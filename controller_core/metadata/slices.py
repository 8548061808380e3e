"""Slices of the metadata log: successive records, or columns of many, and what they do to an image and to a cluster.

Columns take a third of the time of records: partitions are decoded by columns, many at a time, where each record is a new state that depends
on no other one; all other records by the codec, which is the reference.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from heapq import merge
from itertools import pairwise
from operator import itemgetter
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from controller_core.metadata import column_records, replayed_records, state_replay
from controller_core.model import Cluster
from kafka_metadata import failures, record_codec
from kafka_metadata.draft import Draft
from kafka_metadata.metadata_log import MARKERS, MetadataLog, apply_records
from kafka_metadata.records import (
    ClearElrRecord,
    MetadataRecord,
    PartitionChangeRecord,
    PartitionRecord,
    RemoveTopicRecord,
)
from kafka_metadata.replay import replay_into
from kafka_wire.columns import record_decoder, record_encoder
from kafka_wire.records import batches_of_records


class Slice(NamedTuple):
    """Records that one step applies."""

    first_offset: int
    last_offset: int
    """Records between are of the slice, except in a snapshot, whose slices have one kind of records."""
    found: list[MetadataRecord] | record_encoder.RecordColumns

    @property
    def has_markers(self) -> bool:
        """Whether a transaction begins or ends."""
        return not isinstance(self.found, record_encoder.RecordColumns) and any(
            isinstance(record, MARKERS) for record in self.found
        )


def are_applied_as_columns(columns: record_encoder.RecordColumns) -> bool:
    """Return whether columns can be a slice as they are."""
    return state_replay.are_states(columns) or state_replay.are_whole(columns)


def apply_slice(log: MetadataLog, part: Slice) -> MetadataLog:
    """Return the image of the log after a slice. Raises MetadataError, which names the offset."""
    if not isinstance(part.found, record_encoder.RecordColumns):
        return apply_records(log, part.first_offset, part.found)
    draft = Draft(log.image if log.transaction is None else log.transaction.image)
    change_draft(draft, part)
    if log.transaction is None:
        return replace(log, image=draft.result(), end_offset=part.last_offset + 1)
    transaction = replace(log.transaction, image=draft.result())
    return replace(log, transaction=transaction, end_offset=part.last_offset + 1)


def change_draft(draft: Draft, part: Slice) -> None:
    """Apply a slice without markers of transactions to the draft of an image. Raises MetadataError, which names the offset."""
    if not isinstance(part.found, record_encoder.RecordColumns):
        replay_into(draft, part.found, part.first_offset)
        return
    with _named(part, part.found):
        (state_replay.set_partitions if _are_partitions(part.found) else state_replay.change_states)(
            draft.topics, part.found
        )


def replay_slice(cluster: Cluster, part: Slice) -> None:
    """Apply a slice without markers of transactions to a cluster. Raises MetadataError, which names the offset."""
    if not isinstance(part.found, record_encoder.RecordColumns):
        replayed_records.replay_records(cluster, part.found, part.first_offset)
        return
    with _named(part, part.found):
        (state_replay.replay_partitions if _are_partitions(part.found) else state_replay.replay_states)(
            cluster, part.found
        )


def _are_partitions(columns: record_encoder.RecordColumns) -> bool:
    return columns.message == "PartitionRecord"


@contextmanager
def _named(part: Slice, columns: record_encoder.RecordColumns) -> Iterator[None]:
    try:
        yield
    except failures.MetadataError as error:
        raise failures.MetadataError(
            f"A {columns.message} between the offsets {part.first_offset} and {part.last_offset} cannot be applied: {error}."
        ) from error


FEWEST_RECORDS = 20
"""Fewer are read sooner one by one than by columns."""

MOST_RECORDS = 2_500
"""Records that are decoded at once, in some 2 ms. A batch of the log has at most 10,000, one of Kafka's snapshots up to 8 MiB."""

SLICE_RECORDS = 250
"""Records of a slice: 1 to 5 ms of a controller."""

_NOT_REORDERED = (PartitionRecord, PartitionChangeRecord, RemoveTopicRecord, ClearElrRecord)
"""Records whose place among the partitions of a batch counts; no snapshot has them in addition to its columns."""

_Columns = tuple[npt.NDArray[np.int64], record_encoder.RecordColumns]
"""Offsets, and the records that have them."""

_Order = Callable[[Sequence[tuple[int, MetadataRecord]], Sequence[_Columns]], Iterator[Slice]]
"""Makes slices of the records that are in no column, with their offsets, and of the columns."""


def read_slices(batch: bytes, record_count: int) -> Iterator[Slice]:
    """Yield the records of one batch in their order. Raises MetadataError, CorruptBatch and UnsupportedCompression."""
    return _read(batch, record_count, _in_order)


def read_snapshot_slices(batch: bytes, record_count: int) -> Iterator[Slice]:
    """Yield the records of one batch of a snapshot: of each part, first all that are not partitions. Raises as `read_slices`.

    A snapshot has each entry once, and a topic before its partitions, so that their order does not count otherwise. Columns would have
    the partitions of one topic only, which may be one or two.
    """
    return _read(batch, record_count, _partitions_last)


def _read(batch: bytes, record_count: int, order: _Order) -> Iterator[Slice]:
    if record_count < FEWEST_RECORDS:
        yield from _slices(_by_codec(batch))
        return
    for part in record_decoder.decode_parts(batch, MOST_RECORDS):
        others = [(record.offset, record_codec.decode_record(record.value, record.offset)) for record in part.others]
        yield from order(others, part.columns)


def _partitions_last(others: Sequence[tuple[int, MetadataRecord]], columns: Sequence[_Columns]) -> Iterator[Slice]:
    is_usual = all(_is_used(found) for _, found in columns)
    if not is_usual or any(isinstance(record, _NOT_REORDERED) for _, record in others):
        yield from _in_order(others, columns)
        return
    yield from _slices(others)
    for offsets, found in columns:
        yield from _column_slices(offsets, found)


def _is_used(columns: record_encoder.RecordColumns) -> bool:
    return columns.message == "PartitionRecord" and are_applied_as_columns(columns)


def _by_codec(batch: bytes) -> Iterator[tuple[int, MetadataRecord]]:
    for _, found in batches_of_records(batch):
        for record in found:
            yield record.offset, record_codec.decode_record(record.value, record.offset)


def _slices(found: Iterable[tuple[int, MetadataRecord | record_encoder.RecordColumns]]) -> Iterator[Slice]:
    """Yield columns as they are, and slices of records, whose offsets increase by one in each."""
    some: list[MetadataRecord] = []
    end = 0
    for offset, record in found:
        if some and (isinstance(record, record_encoder.RecordColumns) or offset != end or len(some) == SLICE_RECORDS):
            yield Slice(end - len(some), end - 1, some)
            some = []
        if isinstance(record, record_encoder.RecordColumns):
            yield Slice(offset, offset + len(record) - 1, record)
        else:
            some.append(record)
            end = offset + 1
    if some:
        yield Slice(end - len(some), end - 1, some)


def _in_order(others: Iterable[tuple[int, MetadataRecord]], columns: Sequence[_Columns]) -> Iterator[Slice]:
    """Yield slices in the order of the offsets: columns where enough records follow one another."""
    return _slices(merge(others, *(_runs(*column) for column in columns), key=itemgetter(0)))


def _runs(
    offsets: npt.NDArray[np.int64], columns: record_encoder.RecordColumns
) -> Iterator[tuple[int, MetadataRecord | record_encoder.RecordColumns]]:
    """Yield offsets, and the record or the columns of several records that begin there."""
    make, is_used = _RECORDS[columns.message], are_applied_as_columns(columns)
    ends: list[int] = (np.flatnonzero(np.diff(offsets) != 1) + 1).tolist() if is_used else []
    for run_begin, run_end in pairwise((0, *ends, len(columns))):
        for begin in range(run_begin, run_end, SLICE_RECORDS):
            end = min(begin + SLICE_RECORDS, run_end)
            some = columns[begin:end]
            if is_used and len(some) >= FEWEST_RECORDS:
                yield int(offsets[begin]), some
            else:
                yield from zip(offsets[begin:end].tolist(), make(some), strict=True)


def _column_slices(offsets: npt.NDArray[np.int64], columns: record_encoder.RecordColumns) -> Iterator[Slice]:
    for begin in range(0, len(columns), SLICE_RECORDS):
        some = columns[begin : begin + SLICE_RECORDS]
        yield Slice(int(offsets[begin]), int(offsets[begin + len(some) - 1]), some)


_RECORDS: Mapping[str, Callable[[record_encoder.RecordColumns], Iterator[MetadataRecord]]] = {
    "PartitionRecord": column_records.partition_records,
    "PartitionChangeRecord": column_records.change_records,
}

"""Slices of the metadata log: successive records, or columns of many, and what they do to an image and to a cluster.

Columns take a third of the time of records: they are read (`slice_reading`) where every record is a new state of a partition that depends
on no other one.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import NamedTuple

from controller_core.metadata.replayed_records import replay_records
from controller_core.metadata.state_replay import are_states, change_states, replay_states
from controller_core.metadata.whole_replay import are_whole, replay_partitions, set_partitions
from controller_core.model import Cluster
from kafka_metadata.draft import Draft
from kafka_metadata.failures import MetadataError
from kafka_metadata.metadata_log import MARKERS, MetadataLog, apply_records
from kafka_metadata.records import MetadataRecord
from kafka_metadata.replay import replay_into
from kafka_wire.columns.record_encoder import RecordColumns


class Slice(NamedTuple):
    """Records that one step applies."""

    first_offset: int
    last_offset: int
    """Records between are of the slice, except in a snapshot, whose slices have one kind of records."""
    found: list[MetadataRecord] | RecordColumns

    @property
    def has_markers(self) -> bool:
        """Whether a transaction begins or ends."""
        return not isinstance(self.found, RecordColumns) and any(isinstance(record, MARKERS) for record in self.found)


def are_applied_as_columns(columns: RecordColumns) -> bool:
    """Return whether columns can be a slice as they are."""
    return are_states(columns) or are_whole(columns)


def apply_slice(log: MetadataLog, part: Slice) -> MetadataLog:
    """Return the image of the log after a slice. Raises MetadataError, which names the offset."""
    if not isinstance(part.found, RecordColumns):
        return apply_records(log, part.first_offset, part.found)
    draft = Draft(log.image if log.transaction is None else log.transaction.image)
    change_draft(draft, part)
    if log.transaction is None:
        return replace(log, image=draft.result(), end_offset=part.last_offset + 1)
    transaction = replace(log.transaction, image=draft.result())
    return replace(log, transaction=transaction, end_offset=part.last_offset + 1)


def change_draft(draft: Draft, part: Slice) -> None:
    """Apply a slice without markers of transactions to the draft of an image. Raises MetadataError, which names the offset."""
    if not isinstance(part.found, RecordColumns):
        replay_into(draft, part.found, part.first_offset)
        return
    with _named(part, part.found):
        (set_partitions if _are_partitions(part.found) else change_states)(draft.topics, part.found)


def replay_slice(cluster: Cluster, part: Slice) -> None:
    """Apply a slice without markers of transactions to a cluster. Raises MetadataError, which names the offset."""
    if not isinstance(part.found, RecordColumns):
        replay_records(cluster, part.found, part.first_offset)
        return
    with _named(part, part.found):
        (replay_partitions if _are_partitions(part.found) else replay_states)(cluster, part.found)


def _are_partitions(columns: RecordColumns) -> bool:
    return columns.message == "PartitionRecord"


@contextmanager
def _named(part: Slice, columns: RecordColumns) -> Iterator[None]:
    try:
        yield
    except MetadataError as error:
        raise MetadataError(
            f"A {columns.message} between the offsets {part.first_offset} and {part.last_offset} cannot be applied: {error}."
        ) from error

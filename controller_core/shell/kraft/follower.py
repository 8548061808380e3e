"""The metadata log in memory: the image and, in a standby, the cluster, as far as records are committed.

    snapshot ──► image and cluster
    committed batch ──► image, and cluster unless this process is active: its active term has applied the records at the append
    loss of the leadership ──► cluster (rebuilt from the image): what was not committed is gone

All work is done in slices, between which the event loop serves others. Nothing new is delivered in the meantime (`is_busy`). What slices of
many records make stays, and is frozen: a collection over it would block the event loop, for 100 ms with 100,000 partitions. Records of an open
transaction reach the cluster at its end, when it is rebuilt: only the first records of a cluster are in a transaction.
"""

import asyncio
import gc
import time
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import islice
from typing import Protocol

from controller_core.metadata.replayed_records import replay_records
from controller_core.metadata.slices import (
    SLICE_RECORDS,
    apply_slice,
    change_draft,
    read_slices,
    read_snapshot_slices,
    replay_slice,
)
from controller_core.model import Cluster
from controller_core.shell.pace import EXCHANGE_ITERATIONS
from kafka_log.files.snapshots import SnapshotReader
from kafka_log.format.control_records import last_contained_timestamp_ms
from kafka_metadata.draft import Draft
from kafka_metadata.image import MetadataImage
from kafka_metadata.metadata_log import MetadataLog, apply_batch
from kafka_metadata.snapshot import image_records
from kafka_wire.records import BatchHeader, RecordBatch, batch_headers

SLICE_S = 0.002
"""Time after which the event loop serves others (`exchanges_run`): after one slice of many records."""


class Role(Protocol):
    """What the process does in addition to following the log."""

    def elected(self, epoch: int) -> None:
        """Begin an active term: everything before the epoch is applied, and the first record of it."""

    def leader_known(self) -> None:
        """Take note that a leader of an epoch is known, this node or another."""

    def deposed(self) -> None:
        """End the active term: this node does not lead any more, or leads in a later epoch."""

    def advanced(self, size_bytes: int) -> None:
        """Take note that another committed batch is applied."""


class LogFollower:
    """A state machine on the quorum's log. Implements `shell.quorum.listeners.Listener`."""

    def __init__(
        self,
        node_id: int,
        make_cluster: Callable[[], Cluster],
        role: Role,
        *,
        idle: Callable[[], None],
        failed: Callable[[Exception], None],
    ) -> None:
        """`idle` asks for deliveries, `failed` ends the node: its state is not that of the others any more."""
        self.log = MetadataLog()
        """The image and how far it is: always at the end of a batch."""
        self.cluster = make_cluster()
        """While this process is active, that of its term: with what is not committed."""
        self.snapshots_loaded = 0
        """Since the start."""
        self._node_id = node_id
        self._make_cluster = make_cluster
        self._role = role
        self._idle = idle
        self._failed = failed
        self._is_active = False
        self._work: deque[Iterator[None]] = deque()
        self._is_scheduled = False

    @property
    def is_busy(self) -> bool:
        """Whether something that was delivered is not applied yet."""
        return bool(self._work)

    def handle_snapshot(self, snapshot: SnapshotReader) -> None:
        """Replace the state by that of a snapshot."""
        data = snapshot.read(0, snapshot.size_bytes)
        self._begin(self._load(data, snapshot.snapshot.offset, snapshot.snapshot.epoch))

    def handle_commit(self, batches: bytes) -> None:
        """Apply committed batches."""
        self._begin(self._follow(batches))

    def handle_leader_change(self, epoch: int, leader_id: int | None) -> None:
        """End the active term, if there is one; become active, if this node leads."""
        self._begin(self._change_leader(epoch, leader_id))

    # Steps

    def _load(self, data: bytes, end_offset: int, epoch: int) -> Iterator[None]:
        draft, cluster = Draft(MetadataImage()), self._make_cluster()
        for position, header in batch_headers(data):
            if header.is_control:
                continue
            for found in read_snapshot_slices(data[position : position + header.size_bytes], header.record_count):
                change_draft(draft, found)
                replay_slice(cluster, found)
                gc.freeze()
                yield
        self.log = MetadataLog(draft.result(), end_offset, epoch, last_contained_timestamp_ms(data))
        self.cluster = cluster
        self.snapshots_loaded += 1

    def _follow(self, data: bytes) -> Iterator[None]:
        for position, header in batch_headers(data):
            if header.is_control:
                self.log = apply_batch(self.log, RecordBatch(header, ()))
            else:
                yield from self._apply(header, data[position : position + header.size_bytes])
            self._role.advanced(header.size_bytes)

    def _apply(self, header: BatchHeader, batch: bytes) -> Iterator[None]:
        after = self.log
        is_rebuilt_later = False
        for found in read_slices(batch, header.record_count):
            is_rebuilt_later |= after.transaction is not None or found.has_markers
            after = apply_slice(after, found)
            if not self._is_active and not is_rebuilt_later:
                replay_slice(self.cluster, found)
            if header.record_count > SLICE_RECORDS:
                gc.freeze()
            yield
        self.log = replace(
            after,
            end_offset=header.last_offset + 1,
            epoch=header.partition_leader_epoch,
            last_timestamp_ms=header.max_timestamp_ms,
        )
        if is_rebuilt_later and after.transaction is None and not self._is_active:
            yield from self._rebuild()

    def _change_leader(self, epoch: int, leader_id: int | None) -> Iterator[None]:
        if self._is_active:
            self._is_active = False
            self._role.deposed()
            yield from self._rebuild()
        if leader_id is not None:
            self._role.leader_known()
        if leader_id == self._node_id:
            self._is_active = True
            self._role.elected(epoch)

    def _rebuild(self) -> Iterator[None]:
        """Make the cluster from the image."""
        cluster, found = self._make_cluster(), image_records(self.log.image)
        while some := list(islice(found, SLICE_RECORDS)):
            replay_records(cluster, some)
            gc.freeze()
            yield
        self.cluster = cluster

    # Slices

    def _begin(self, steps: Iterator[None]) -> None:
        self._work.append(steps)
        if not self._is_scheduled:
            self._run()

    def _run(self) -> None:
        self._is_scheduled = False
        begin_s = time.perf_counter()
        try:
            while self._work and time.perf_counter() - begin_s < SLICE_S:
                if next(self._work[0], self) is self:
                    self._work.popleft()
        except Exception as error:  # noqa: BLE001 - ends the node, whatever it is
            self._work.clear()
            self._failed(error)
            return
        if self._work:
            self._is_scheduled = True
            self._run_after(EXCHANGE_ITERATIONS)
        else:
            self._idle()

    def _run_after(self, iterations: int) -> None:
        if iterations:
            asyncio.get_running_loop().call_soon(self._run_after, iterations - 1)
        else:
            self._run()

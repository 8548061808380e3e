"""Progress of Reassignments, measured from the sizes of logs every few seconds.

The first sample of a process covers the whole plan, later samples only partitions in progress. Before a throttled plan starts, two samples
of the whole plan measure its growth, which decides whether the throttle suffices. Samples are kept in memory: after a restart the figures
are available again with the second sample.
"""

from __future__ import annotations

from collections.abc import Callable

from kafka_operator.admin.port import Admin
from kafka_operator.decide.plans.plan_packing import Recorded
from kafka_operator.decide.reassignments.move_progress import MEASURE_EVERY_S, Measured, Memory, measure
from kafka_operator.decide.reassignments.partition_progress import (
    PartitionProgress,
    find_progress,
    find_rollback_progress,
)
from kafka_operator.decide.reassignments.reassignment import in_direction
from kafka_operator.decide.reassignments.reassignment_view import ReassignmentView
from kafka_operator.engine.reassignment_reads import query_sizes
from kafka_operator.resources.reassignment import Partition, Reassignment, State
from kafka_operator.resources.reassignment_terms import Action
from reconciler.names import Key


class MoveProgress:
    """Samples of each Reassignment; the clock is injected."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self.clock = clock
        self._memories: dict[Key, tuple[bool, Memory]] = {}

    def due(self, item: Reassignment) -> bool:
        """Return whether a sample is due."""
        status = item.status
        if status.state not in {State.PENDING, State.RUNNING, State.ROLLING_BACK} or item.action is Action.CANCEL:
            return False
        if item.action is Action.ROLLBACK and not status.rollback:  # such measurements do not apply to the rollback
            return False
        if not status.handed_over and item.throttle is None:
            return False
        memory = self._memory(item)
        return memory is None or self.clock() - memory.taken_s >= MEASURE_EVERY_S

    async def measure(self, admin: Admin, item: Reassignment, view: ReassignmentView) -> Measured:
        """Take a sample, and return the progress since the previous one."""
        assert isinstance(view.recorded, Recorded), item.key
        directed = in_direction(item.status, view.recorded)
        find = find_rollback_progress if item.status.rollback else find_progress
        partitions = find(directed, item.status, view.current)
        before = self._memory(item)
        wanted = _partitions_to_sample(item, partitions, directed, whole=before is None)
        brokers = _brokers(directed) & set(view.broker_ids)
        sizes = await query_sizes(admin, brokers, wanted) if wanted else {}
        measured, memory = measure(partitions, sizes, before, self.clock(), view.broker_ids)
        self._memories[item.key] = (item.status.rollback, memory)
        return measured

    def forget(self, key: Key) -> None:
        """Remove the samples."""
        self._memories.pop(key, None)

    def _memory(self, item: Reassignment) -> Memory | None:
        """Return the samples of the current direction: a rollback starts without samples."""
        back, memory = self._memories.get(item.key, (False, None))
        return memory if back == item.status.rollback else None


def _partitions_to_sample(
    item: Reassignment, partitions: PartitionProgress, directed: Recorded, *, whole: bool
) -> list[Partition]:
    if whole or not item.status.handing_over:
        return [entry.partition for entry in directed.plan]
    return [entry.partition for entry in (*partitions.moving, *partitions.due)]


def _brokers(directed: Recorded) -> set[int]:
    different = {entry.replicas for entries in (directed.plan, directed.base) for entry in entries}
    return {broker for replicas in different for broker in replicas}

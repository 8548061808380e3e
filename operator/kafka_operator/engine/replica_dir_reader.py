"""Directories of the replicas of plans that move them between directories. Of large plans, those that do not move are read only at intervals."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass

from kafka_operator.admin.port import Admin
from kafka_operator.decide.kafka.replica_dirs import ReplicaDirs, brokers_named, brokers_to_copy, replica_dirs_of
from kafka_operator.decide.plans.plan_packing import Recorded
from kafka_operator.decide.reassignments.reassignment import in_direction
from kafka_operator.engine.reassignment_reads import FULL_EVERY_S, MAX_NAMED_PARTITIONS
from kafka_operator.resources.reassignment import Assignment, Partition, Reassignment
from reconciler.names import Key


@dataclass(frozen=True, slots=True)
class _Kept:
    """Directories as last read, and the time of the last full read."""

    dirs: ReplicaDirs
    full_s: float


class ReplicaDirReader:
    """Reads directories; the clock is injected."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._kept: dict[Key, _Kept] = {}

    async def read(self, admin: Admin, item: Reassignment, recorded: Recorded, alive: Collection[int]) -> ReplicaDirs:
        """Return the directories of the replicas of a plan; brokers that do not answer, or are not among the live ones, are omitted."""
        plan = in_direction(item.status, recorded).plan
        kept, now_s = self._kept.get(item.key), self._clock()
        if kept is None or len(plan) <= MAX_NAMED_PARTITIONS or now_s - kept.full_s >= FULL_EVERY_S:
            names, before, full_s = [entry.partition for entry in plan], {}, now_s
        else:
            names = _changing(plan, item.status.handing_over, kept.dirs)
            changing = set(names)
            before, full_s = {name: dirs for name, dirs in kept.dirs.items() if name not in changing}, kept.full_s
        found = await self._query(admin, plan, names, alive) if names else {}
        self._kept[item.key] = _Kept({**before, **found}, full_s)
        return self._kept[item.key].dirs

    def forget(self, key: Key) -> None:
        """Remove what is known of a Reassignment."""
        self._kept.pop(key, None)

    @staticmethod
    async def _query(
        admin: Admin, plan: Sequence[Assignment], names: Sequence[Partition], alive: Collection[int]
    ) -> ReplicaDirs:
        brokers = sorted(brokers_named(plan) & set(alive))
        found = replica_dirs_of(
            await admin.describe_replica_dirs(brokers, names if len(names) <= MAX_NAMED_PARTITIONS else None)
        )
        return {name: found[name] for name in names if name in found}


def _changing(plan: Sequence[Assignment], handing_over: int, dirs: ReplicaDirs) -> list[Partition]:
    """Return the partitions that may have changed: those that were submitted and have not arrived, and those with a future log."""
    return [
        entry.partition
        for number, entry in enumerate(plan)
        if (number < handing_over and brokers_to_copy(entry, dirs.get(entry.partition, {})))
        or any(found.future is not None for found in dirs.get(entry.partition, {}).values())
    ]

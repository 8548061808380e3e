"""Reads a cluster for a what-if: partitions, sizes, disks, throttles. An answer that is denied becomes a note, and its figures unknown."""

from __future__ import annotations

from collections.abc import Awaitable, Iterable, Mapping
from dataclasses import dataclass
from typing import TypeVar

from controller_core.views.what_if import Rate, RateSource, Snapshot, snapshot_of
from kafka_operator.admin.port import AdminError, AdminReads
from kafka_operator.decide.kafka.observed import Failure
from kafka_operator.decide.reassignments.throttle import RATES
from kafka_operator.what_if.columns import brokers_of, columns_of
from reconciler.decide.listed import listed

MAX_NAMED = 5
"""Brokers named in a note."""

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class ClusterRead:
    """A cluster, the rate of its throttles, and notes about what could not be read."""

    snapshot: Snapshot
    throttle_bytes_per_second: int | None = None
    notes: tuple[str, ...] = ()

    def rate(self, given_bytes_per_second: int | None) -> Rate:
        """Return the rate of copies: the given one, else the lowest throttle, else the default."""
        if given_bytes_per_second is not None:
            return Rate(given_bytes_per_second, RateSource.GIVEN)
        if self.throttle_bytes_per_second is not None:
            return Rate(self.throttle_bytes_per_second, RateSource.THROTTLE)
        return Rate()


async def read_cluster(source: AdminReads) -> ClusterRead:
    """Read a cluster; AdminError when its partitions cannot be read."""
    notes: list[str] = []
    layout = await source.describe_layout(None)
    brokers = sorted(layout.racks)
    moves = await _or_note(source.list_reassignments(), {}, "running reassignments", notes)
    min_isr = await _or_note(source.describe_min_isr(list(layout.topics)), {}, "min.insync.replicas", notes)
    sizes = await _or_note(source.describe_log_dirs(brokers, None), {}, "the sizes of logs", notes)
    disks = await _or_note(source.describe_disks(brokers), {}, "the capacities of disks", notes)
    settings = await _or_note(source.describe_broker_configs(brokers, RATES), {}, "the throttles of brokers", notes)
    notes += _failures("the sizes of logs", sizes)
    notes += _failures("the throttles of brokers", settings)
    columns = columns_of(layout, moves, min_isr, sizes)
    snapshot = snapshot_of(columns, brokers_of(layout, disks))
    return ClusterRead(snapshot, _lowest_rate(settings), tuple(notes))


async def _or_note(call: Awaitable[T], unknown: T, what: str, notes: list[str]) -> T:
    try:
        return await call
    except AdminError as error:
        notes.append(f"{what} cannot be read: {error}")
        return unknown


def _failures(what: str, found: Mapping[int, object]) -> Iterable[str]:
    failed = {broker: answer for broker, answer in sorted(found.items()) if isinstance(answer, Failure)}
    if failed:
        first = next(iter(failed.values()))
        yield f"brokers {listed(list(failed), MAX_NAMED)} do not return {what}: {first.name}: {first.message}"


def _lowest_rate(settings: Mapping[int, Mapping[str, str] | Failure]) -> int | None:
    rates = [
        int(value)
        for found in settings.values()
        if not isinstance(found, Failure)
        for value in found.values()
        if value.isdecimal() and int(value) > 0
    ]
    return min(rates, default=None)

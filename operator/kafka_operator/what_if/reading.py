"""Reads a cluster for a what-if: partitions, sizes, disks, throttles. An answer that is denied becomes a note, and its figures unknown."""

from __future__ import annotations

from collections.abc import Awaitable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeVar

from controller_core.views.what_if import Rate, RateSource, Snapshot, snapshot_of
from kafka_operator.admin.port import AdminError
from kafka_operator.decide.layout import BrokerDisks, BrokerSizes, Layout
from kafka_operator.decide.observed import Failure, Moves
from kafka_operator.decide.throttle import RATES
from kafka_operator.resources.reassignment import Partition
from kafka_operator.what_if.columns import brokers_of, columns_of

MAX_NAMED = 5
"""Brokers named in a note."""

T = TypeVar("T")


class Source(Protocol):
    """The Admin calls of a what-if, all of which only read; every call may raise AdminError."""

    async def describe_layout(self, names: Sequence[str] | None) -> Layout:
        """Return all topics and brokers."""
        ...

    async def list_reassignments(self) -> Moves:
        """Return all partitions that are being reassigned."""
        ...

    async def describe_min_isr(self, topics: Collection[str]) -> Mapping[str, int]:
        """Return min.insync.replicas of each topic."""
        ...

    async def describe_log_dirs(
        self, broker_ids: Collection[int], partitions: Collection[Partition] | None
    ) -> BrokerSizes:
        """Return the sizes of all logs."""
        ...

    async def describe_disks(self, broker_ids: Collection[int]) -> BrokerDisks:
        """Return the disks of brokers."""
        ...

    async def describe_broker_configs(
        self, broker_ids: Collection[int], names: Sequence[str]
    ) -> Mapping[int, Mapping[str, str] | Failure]:
        """Return settings that are set on brokers."""
        ...


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


async def read_cluster(source: Source) -> ClusterRead:
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
        named = ", ".join(map(str, list(failed)[:MAX_NAMED])) + (" and others" if len(failed) > MAX_NAMED else "")
        first = next(iter(failed.values()))
        yield f"brokers {named} do not return {what}: {first.name}: {first.message}"


def _lowest_rate(settings: Mapping[int, Mapping[str, str] | Failure]) -> int | None:
    rates = [
        int(value)
        for found in settings.values()
        if not isinstance(found, Failure)
        for value in found.values()
        if value.isdecimal() and int(value) > 0
    ]
    return min(rates, default=None)

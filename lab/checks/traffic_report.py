"""Report of a load: what was sent, acknowledged, refused and read back, and the conclusions. No I/O and no clock.

A record is identified by its sequence number; its value is `RUN-SEQUENCE`, so records of other runs on the same topic are distinct.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import NamedTuple


class ReadRecord(NamedTuple):
    """A record as it was read back."""

    partition: int
    offset: int
    value: bytes | None


@dataclass(frozen=True, slots=True)
class TrafficReport:
    """Result of a load; `ok` when clients saw no error and no acknowledged record was lost."""

    sent: int
    acked: int
    read_back: int
    """Acknowledged records that were read back; equal to `acked` when nothing was lost."""
    lost: tuple[int, ...]
    """Sequence numbers acknowledged and not read back."""
    twice: tuple[str, ...]
    """Records that are in the log more than once, with their places; none with an idempotent producer."""
    out_of_order: int
    """Records read back after one of a higher number from the same partition; none with an idempotent producer."""
    errors: tuple[str, ...]
    """Errors after all retries of the producer, one text for each record."""
    consumed: int
    """Different records that the consumer of a group saw while the load ran."""
    consumer_errors: tuple[str, ...]
    longest_gap_ms: float
    """Longest time without any acknowledgement."""
    longest_partition_gap_ms: dict[int, float]
    """The same for each partition. It shows a leader's failover, during which records of other partitions are acknowledged."""

    @property
    def duplicates(self) -> int:
        """Number of records that are in the log more than once."""
        return len(self.twice)

    @property
    def ok(self) -> bool:
        """Whether no acknowledged record was lost and no client saw an error."""
        return not self.lost and not self.errors and not self.consumer_errors

    def summary(self) -> str:
        """Return the figures in one line for a person."""
        worst = max(self.longest_partition_gap_ms.values(), default=0.0)
        return (
            f"{self.sent} sent, {self.acked} acked, {self.read_back} read back, {len(self.lost)} lost, "
            f"{self.duplicates} duplicates, {len(self.errors) + len(self.consumer_errors)} client errors, "
            f"longest gap {self.longest_gap_ms:.0f} ms (one partition: {worst:.0f} ms)"
        )


@dataclass(slots=True)
class Gaps:
    """The longest time between two acknowledgements, in seconds."""

    last_s: float | None = None
    longest_s: float = 0.0

    def note(self, now_s: float) -> None:
        """Take an acknowledgement at a monotonic time into account."""
        if self.last_s is not None:
            self.longest_s = max(self.longest_s, now_s - self.last_s)
        self.last_s = now_s


@dataclass(slots=True)
class Ledger:
    """Records of one load. The producer's side is written only by the sending thread, the consumer's only by the reading thread."""

    run: str
    errors: list[str] = field(default_factory=list)
    consumer_errors: list[str] = field(default_factory=list)
    _sent: int = 0
    _acked: set[int] = field(default_factory=set)
    _consumed: set[int] = field(default_factory=set)
    _overall: Gaps = field(default_factory=Gaps)
    _partitions: dict[int, Gaps] = field(default_factory=dict)

    @property
    def acked(self) -> int:
        """Number of records acknowledged so far."""
        return len(self._acked)

    @property
    def acked_partitions(self) -> int:
        """Number of partitions with an acknowledged record."""
        return len(self._partitions)

    def value(self, sequence: int) -> bytes:
        """Return the value of a record."""
        return f"{self.run}-{sequence}".encode("ascii")

    def sent(self) -> None:
        """Note that a record was passed to the producer."""
        self._sent += 1

    def acknowledged(self, value: bytes | None, partition: int, now_s: float) -> None:
        """Note an acknowledgement at a monotonic time in seconds."""
        sequence = self._sequence(value)
        assert sequence is not None, f"an acknowledgement of {value!r}, which run {self.run} did not send"
        self._acked.add(sequence)
        self._overall.note(now_s)
        self._partitions.setdefault(partition, Gaps()).note(now_s)

    def consumed(self, value: bytes | None) -> None:
        """Note a record that the consumer of a group saw."""
        sequence = self._sequence(value)
        if sequence is not None:
            self._consumed.add(sequence)

    def missing(self, values: Iterable[bytes | None]) -> set[int]:
        """Return the acknowledged records that are not among `values`."""
        return self._acked - {self._sequence(value) for value in values}

    def report(self, read_back: Iterable[ReadRecord]) -> TrafficReport:
        """Return what follows from the records read, in the order in which each partition was read.

        A record that was read twice from one place is one record: its reader had to start again.
        """
        seen: dict[int, set[tuple[int, int]]] = {}
        highest: dict[int, int] = {}
        out_of_order = 0
        for partition, offset, value in read_back:
            sequence = self._sequence(value)
            if sequence is None:
                continue
            out_of_order += sequence < highest.get(partition, -1) and sequence not in seen
            highest[partition] = max(sequence, highest.get(partition, -1))
            seen.setdefault(sequence, set()).add((partition, offset))
        return TrafficReport(
            sent=self._sent,
            acked=len(self._acked),
            read_back=len(self._acked & seen.keys()),
            lost=tuple(sorted(self._acked - seen.keys())),
            twice=tuple(
                f"record {sequence} at " + ", ".join(f"{partition}@{offset}" for partition, offset in sorted(places))
                for sequence, places in sorted(seen.items())
                if len(places) > 1
            ),
            out_of_order=out_of_order,
            errors=tuple(self.errors),
            consumed=len(self._consumed),
            consumer_errors=tuple(self.consumer_errors),
            longest_gap_ms=self._overall.longest_s * 1000,
            longest_partition_gap_ms={
                partition: gaps.longest_s * 1000 for partition, gaps in sorted(self._partitions.items())
            },
        )

    def _sequence(self, value: bytes | None) -> int | None:
        run, _, number = (value or b"").decode("ascii", errors="replace").rpartition("-")
        return int(number) if run == self.run else None

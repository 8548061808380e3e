"""Committed offsets of the groups of one partition of `__consumer_offsets`, as of the records that were replayed.

Offsets of transactions count when the transaction's marker is replayed. Source: Kafka's OffsetMetadataManager.
"""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from light_broker.core.groups.records import CommittedOffset, OffsetRecord

Place = tuple[str, str, int]
"""Group, topic and partition."""


@dataclass(frozen=True, slots=True)
class _Commit:
    record_offset: int
    value: CommittedOffset


@dataclass(slots=True)
class CommittedOffsets:
    """The offsets of all groups of a partition."""

    _by_group: dict[str, dict[str, dict[int, _Commit]]] = field(default_factory=dict)
    _in_transactions: dict[int, dict[Place, _Commit]] = field(default_factory=dict)
    """Offsets of open transactions by producer id."""
    _open: Counter[Place] = field(default_factory=Counter)
    """Number of open transactions with an offset."""

    def get(self, group_id: str, topic: str, partition: int) -> CommittedOffset | None:
        """Return a committed offset."""
        commit = self._by_group.get(group_id, {}).get(topic, {}).get(partition)
        return None if commit is None else commit.value

    def of_group(self, group_id: str) -> Iterator[tuple[str, int, CommittedOffset]]:
        """Iterate over the committed offsets of a group: topic, partition, offset."""
        for topic, partitions in self._by_group.get(group_id, {}).items():
            for partition, commit in partitions.items():
                yield topic, partition, commit.value

    def of_topic(self, topic: str) -> Iterator[tuple[str, int, CommittedOffset]]:
        """Iterate over the committed offsets for a topic: group, partition, offset."""
        for group_id, topics in self._by_group.items():
            for partition, commit in topics.get(topic, {}).items():
                yield group_id, partition, commit.value

    def is_unstable(self, group_id: str, topic: str, partition: int) -> bool:
        """Whether an open transaction has an offset for a partition."""
        return self._open[group_id, topic, partition] > 0 if self._open else False

    def unstable_places(self, group_id: str) -> list[tuple[str, int]]:
        """List the partitions with offsets of open transactions of a group."""
        return [(topic, partition) for other, topic, partition in self._open if other == group_id]

    def replay(self, record_offset: int, record: OffsetRecord, *, producer_id: int | None = None) -> None:
        """Replay a record at an offset of the log; of a transaction if it has a producer id."""
        place = (record.group_id, record.topic, record.partition)
        if record.value is None:
            self._remove(place)
        elif producer_id is None:
            self._put(place, _Commit(record_offset, record.value))
        else:
            commits = self._in_transactions.setdefault(producer_id, {})
            if place not in commits:
                self._open[place] += 1
            commits[place] = _Commit(record_offset, record.value)

    def end_transaction(self, producer_id: int, *, commits: bool) -> tuple[str, ...]:
        """Commit, or drop, the offsets of a transaction; return the groups that have an offset now.

        An offset with a higher record offset stays: compaction may have removed the record by which the transaction's one was replaced.
        """
        ended = self._in_transactions.pop(producer_id, {})
        for place, commit in ended.items():
            self._close(place)
            if commits:
                group_id, topic, partition = place
                current = self._by_group.get(group_id, {}).get(topic, {}).get(partition)
                if current is None or current.record_offset < commit.record_offset:
                    self._put(place, commit)
        return tuple({group_id: None for group_id, _, _ in ended}) if commits else ()

    def content(self) -> Mapping[Place, CommittedOffset]:
        """Return all committed offsets."""
        return {
            (group_id, topic, partition): value
            for group_id in self._by_group
            for topic, partition, value in self.of_group(group_id)
        }

    def _put(self, place: Place, commit: _Commit) -> None:
        group_id, topic, partition = place
        self._by_group.setdefault(group_id, {}).setdefault(topic, {})[partition] = commit

    def _remove(self, place: Place) -> None:
        """Remove an offset, also from open transactions; empty maps do not stay."""
        group_id, topic, partition = place
        topics = self._by_group.get(group_id, {})
        partitions = topics.get(topic, {})
        partitions.pop(partition, None)
        if topic in topics and not partitions:
            del topics[topic]
        if group_id in self._by_group and not topics:
            del self._by_group[group_id]
        for commits in self._in_transactions.values():
            if commits.pop(place, None) is not None:
                self._close(place)

    def _close(self, place: Place) -> None:
        self._open[place] -= 1
        if not self._open[place]:
            del self._open[place]

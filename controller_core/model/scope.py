"""What an event touches: everything, topics, or single partitions. Leaves out who waits for whom: `shell.turns`."""

from collections.abc import Iterable
from dataclasses import dataclass

from controller_core.model.ids import TopicPartition


@dataclass(frozen=True, slots=True)
class Scope:
    """Partitions and topics that an event reads and changes."""

    everything: bool = False
    topics: frozenset[str] = frozenset()
    partitions: frozenset[TopicPartition] = frozenset()

    def meets(self, other: "Scope") -> bool:
        """Whether the two touch a common partition, so that one must wait for the other's writes."""
        if self.everything or other.everything:
            return True
        return (
            not self.topics.isdisjoint(other.topics)
            or not self.partitions.isdisjoint(other.partitions)
            or any(partition.topic in other.topics for partition in self.partitions)
            or any(partition.topic in self.topics for partition in other.partitions)
        )


ALL = Scope(everything=True)
NOTHING = Scope()


def topics(names: Iterable[str]) -> Scope:
    """Make the scope of whole topics."""
    return Scope(topics=frozenset(names))


def partitions(names: Iterable[TopicPartition]) -> Scope:
    """Make the scope of single partitions."""
    return Scope(partitions=frozenset(names))

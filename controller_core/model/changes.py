"""Changes to the cluster's state in both modes, as values: the result of decisions. `Change` is any change.

A change is a fact of the domain ("these partitions have these leaders now"). The ZooKeeper shell translates changes that outlive the
process into fenced multi-writes, a quorum's shell into metadata records; `apply` of the mode applies them in memory once they
are committed, and `propagation` derives the requests to brokers. Partitions are in columns: one change may hold 200,000 of them.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import TypeVar
from uuid import UUID

from controller_core.model import columns, quorum_changes, zookeeper_changes
from controller_core.model.ids import NO_EPOCH
from controller_core.model.move import Move
from controller_core.model.origin import Origin

Value = TypeVar("Value")

Directories = tuple[UUID, ...]
"""Directory of each replica of a partition, in the order of the replicas."""


class RequestsToBrokers(Enum):
    """Requests that brokers get for a change of partition states."""

    LEADER_AND_ISR = "leader and isr"
    """LeaderAndIsr to the replicas, then UpdateMetadata to all brokers."""
    METADATA_ONLY = "metadata only"
    """UpdateMetadata to all brokers: the leader requested the change and gets it with the response."""


@dataclass(frozen=True, slots=True, eq=False)
class FirstStates:
    """First leaders and ISRs of new partitions, which KRaft writes together with their assignment. Leader and partition epoch are 0."""

    leader: columns.IntArray
    isr: columns.IntArray
    """Shape (n, longest), padded with -1."""
    directories: Mapping[int, UUID]
    """Directory of a broker's new replicas, by broker id."""


@dataclass(frozen=True, slots=True, eq=False)
class TopicAdded:
    """A new topic with its assignment. In ZooKeeper mode its partitions have no state yet (NewPartition)."""

    name: str
    topic_id: UUID | None
    partitions: columns.IntArray
    """Partition ids, ascending: shape (n,)."""
    replicas: columns.IntArray
    """Shape (n, longest), padded with -1."""
    origin: Origin
    moves: Mapping[int, Move] = field(default_factory=dict)
    """Running moves by partition id, for a topic that was found with some."""
    configs: Mapping[str, str] = field(default_factory=dict)
    states: FirstStates | None = None
    """None: the partitions get their first leaders by a later change."""


@dataclass(frozen=True, slots=True, eq=False)
class PartitionsAdded:
    """Partitions of a topic were added."""

    topic: str
    partitions: columns.IntArray
    replicas: columns.IntArray
    origin: Origin
    states: FirstStates | None = None
    """None: the partitions get their first leaders by a later change."""


@dataclass(frozen=True, slots=True, eq=False)
class PartitionStates:
    """Partitions have a new leader, ISR or leader epoch. Columns over the same rows."""

    rows: columns.IntArray
    leader: columns.IntArray
    leader_epoch: columns.IntArray
    isr: columns.IntArray
    requests: RequestsToBrokers
    replicas: columns.IntArray | None = None
    """New replica lists. In ZooKeeper mode the targets of moves whose target replicas are all in sync; in KRaft mode also the unions of
    moves that start. None: they stay."""
    unclean: columns.BoolArray | None = None
    """Rows whose new leader was not in sync: acknowledged records may be lost (C7). None: no row."""
    recovering: columns.BoolArray | None = None
    """Rows whose leader reports that it still recovers from an unclean election (KIP-704). None: unchanged."""
    elr: columns.IntArray | None = None
    """Eligible leader replicas after the change (KIP-966, KRaft mode). None: unchanged."""
    last_known_elr: columns.IntArray | None = None
    """The last leader of partitions without one (KIP-966, KRaft mode). None: unchanged."""
    moves: Mapping[int, Move | None] | None = None
    """Running moves after the change, by row (KRaft mode): started, changed, or (None) ended. Rows without an entry keep theirs."""
    directories: Mapping[int, Directories] | None = None
    """Directories of all replicas after the change, by row (KRaft mode). Rows without an entry keep theirs."""

    def recovering_after(self, before: columns.BoolArray) -> columns.BoolArray:
        """Return the rows whose leader recovers after the change: one that was not in sync does, until it reports the end."""
        reported = before if self.recovering is None else self.recovering
        return reported if self.unclean is None else reported | self.unclean

    def take(self, positions: columns.IntArray) -> "PartitionStates":
        """Return the entries at some positions (indices into the columns, not row numbers)."""
        return PartitionStates(
            self.rows[positions],
            self.leader[positions],
            self.leader_epoch[positions],
            self.isr[positions],
            self.requests,
            None if self.replicas is None else self.replicas[positions],
            None if self.unclean is None else self.unclean[positions],
            None if self.recovering is None else self.recovering[positions],
            None if self.elr is None else self.elr[positions],
            None if self.last_known_elr is None else self.last_known_elr[positions],
            _in_rows(self.moves, self.rows[positions]),
            _in_rows(self.directories, self.rows[positions]),
        )


def _in_rows(by_row: Mapping[int, Value] | None, rows: columns.IntArray) -> Mapping[int, Value] | None:
    return by_row and {row: by_row[row] for row in rows.tolist() if row in by_row}


@dataclass(frozen=True, slots=True)
class BrokerUnregistered:
    """A broker never returns. In ZooKeeper mode nothing waits for the stray logs on it any longer, in memory only."""

    broker: int
    broker_epoch: int = NO_EPOCH
    """Epoch of the registration that ends (KRaft mode)."""


@dataclass(frozen=True, slots=True)
class TopicRemoved:
    """A topic was deleted."""

    topic: str
    origin: Origin


@dataclass(frozen=True, slots=True)
class ProducerIdsAllocated:
    """The producer ids from first to last were allocated to a broker."""

    broker: int
    first: int
    last: int
    broker_epoch: int = NO_EPOCH


@dataclass(frozen=True, slots=True)
class ProducerIdsObserved:
    """End of the last block of producer ids as found written."""

    block_end: int


Change = (
    TopicAdded
    | PartitionsAdded
    | PartitionStates
    | BrokerUnregistered
    | TopicRemoved
    | ProducerIdsAllocated
    | ProducerIdsObserved
    | quorum_changes.QuorumChange
    | zookeeper_changes.ZooKeeperChange
)

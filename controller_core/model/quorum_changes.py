"""Changes that exist only in KRaft mode, as values: brokers, configurations, feature levels, and records replayed in columns."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from uuid import UUID

from controller_core.model.broker import Broker
from controller_core.model.columns import BoolArray, IntArray
from controller_core.model.move import Move
from kafka_metadata.records import ResourceType


@dataclass(frozen=True, slots=True)
class BrokerRegistered:
    """A broker registered, for the first time or again (KRaft mode). Another epoch means another incarnation."""

    broker: Broker


@dataclass(frozen=True, slots=True)
class BrokerChanged:
    """State of a registered broker that changed (KRaft mode); None: unchanged."""

    broker: int
    broker_epoch: int
    fenced: bool | None = None
    in_controlled_shutdown: bool | None = None
    directories: tuple[UUID, ...] | None = None
    """Log directories that are still online."""
    cordoned_directories: tuple[UUID, ...] | None = None


@dataclass(frozen=True, slots=True)
class HeartbeatObserved:
    """A broker has read the metadata up to this offset (KRaft mode). In memory only."""

    broker: int
    metadata_offset: int
    may_shut_down: bool = False
    """Whether a response has allowed the broker to shut down."""


@dataclass(frozen=True, slots=True)
class ShutdownOffsetObserved:
    """A broker may shut down when the other brokers have read the metadata up to this offset (KRaft mode). In memory only."""

    broker: int
    offset: int


@dataclass(frozen=True, slots=True)
class BrokerSuspected:
    """The connection with a broker's heartbeats ended: it is elected only where no other replica can lead. In memory only."""

    broker: int


@dataclass(frozen=True, slots=True)
class BrokerLeaving:
    """A part of a broker's partitions is taken from it, the rest follows: it gets none until then (KRaft mode). In memory only."""

    broker: int


@dataclass(frozen=True, slots=True)
class ConfigsChanged:
    """Configurations of one resource that changed (KRaft mode); None: removed."""

    type: ResourceType
    name: str
    """Empty for the default of all brokers."""
    values: Mapping[str, str | None]


@dataclass(frozen=True, slots=True)
class FeatureLevelChanged:
    """A feature has another level for the whole cluster (KRaft mode); level 0 means off."""

    name: str
    level: int


@dataclass(frozen=True, slots=True, eq=False)
class PartitionsReplayed:
    """Whole states of partitions, from records of the log (KRaft mode). Partitions that are unknown are added."""

    topics: Sequence[tuple[str, int]]
    """Names, and how many of the partitions each has, which follow one another."""
    partitions: IntArray
    """Partition ids, each once in a topic: shape (n,), as all columns; lists have shape (n, longest) and are padded with -1."""
    replicas: IntArray
    isr: IntArray
    leader: IntArray
    leader_epoch: IntArray
    partition_epoch: IntArray
    recovering: BoolArray
    elr: IntArray
    last_known_elr: IntArray
    directory_ids: Sequence[UUID]
    directories: IntArray
    """The directory of each replica: a place in `directory_ids`."""
    moves: Mapping[int, Move]
    """Running moves by place in the columns; the others have none."""


@dataclass(frozen=True, slots=True, eq=False)
class StatesReplayed:
    """New states of known partitions, from records of the log (KRaft mode). Columns over the same rows; each raises the partition epoch by 1."""

    rows: IntArray
    leader: IntArray
    leader_epoch: IntArray
    isr: IntArray
    recovering: BoolArray
    elr: IntArray
    last_known_elr: IntArray


@dataclass(frozen=True, slots=True)
class ElrCleared:
    """The eligible leader replicas of a topic, or (None) of all topics, are discarded (KRaft mode): min.insync.replicas changed."""

    topic: str | None


QuorumChange = (
    BrokerRegistered
    | BrokerChanged
    | HeartbeatObserved
    | ShutdownOffsetObserved
    | BrokerSuspected
    | BrokerLeaving
    | ConfigsChanged
    | FeatureLevelChanged
    | PartitionsReplayed
    | StatesReplayed
    | ElrCleared
)

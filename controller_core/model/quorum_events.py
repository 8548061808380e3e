"""Events of KRaft mode: registrations, heartbeats and directories of brokers, as values.

No event has a time: the shell decides by `quorum_mode.sessions` whether a broker's session is valid, and the event contains the result.
Where an event needs the end of the log (`log_end`, the offset of the next record), the loop sets it each time it decides about the event.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from uuid import UUID

from controller_core.model import quorum_changes, scope
from controller_core.model.broker import Endpoint, FeatureRange
from controller_core.model.ids import NO_EPOCH, TopicPartition
from controller_core.model.scope import Scope


@dataclass(frozen=True, slots=True)
class RegisterBroker:
    """Request of a broker process to be registered (BrokerRegistration 0 to 4)."""

    broker: int
    cluster_id: str
    incarnation_id: UUID
    endpoints: tuple[Endpoint, ...]
    rack: str | None
    features: tuple[FeatureRange, ...]
    directories: tuple[UUID, ...] = ()
    """Log directories that are online. Version 2 and later."""
    previous_broker_epoch: int = NO_EPOCH
    """Epoch of the incarnation that shut down cleanly before this process (version 3 and later); NO_EPOCH: not known to be clean."""
    is_migrating: bool = False
    """Whether the broker comes from ZooKeeper mode (KIP-866)."""
    session_is_valid: bool = False
    """Whether the session of the registered incarnation has not expired."""
    log_end: int = NO_EPOCH
    """Offset of the registration's record: the epoch of a new incarnation."""
    kraft_version: int = 0
    """Level of kraft.version, which the quorum's control records have."""
    scope: Scope = scope.ALL


@dataclass(frozen=True, slots=True)
class Heartbeat:
    """Heartbeat of a broker (BrokerHeartbeat 0 to 2)."""

    broker: int
    broker_epoch: int
    metadata_offset: int
    """Offset up to which the broker has read the metadata."""
    wants_fence: bool = False
    wants_shutdown: bool = False
    offline_directories: tuple[UUID, ...] = ()
    cordoned_directories: tuple[UUID, ...] | None = None
    """None: the broker does not know them yet, or the version has none."""
    is_continued: bool = False
    """Whether a part of the broker's partitions has moved for its controlled shutdown: this event moves further ones."""
    scope: Scope = scope.ALL


@dataclass(frozen=True, slots=True)
class ReportDirectories:
    """Directories that a heartbeat reported as offline or cordoned."""

    broker: int
    broker_epoch: int
    offline: tuple[UUID, ...]
    cordoned: tuple[UUID, ...] | None
    scope: Scope = scope.ALL


@dataclass(frozen=True, slots=True)
class NoteShutdownOffset:
    """The leaders of a broker in controlled shutdown are moved: other brokers must read this far before it may shut down."""

    broker: int
    log_end: int = NO_EPOCH
    scope: Scope = scope.ALL


@dataclass(frozen=True, slots=True)
class FenceBroker:
    """The session of a broker's incarnation expired."""

    broker: int
    broker_epoch: int
    scope: Scope = scope.ALL


@dataclass(frozen=True, slots=True)
class HeartbeatConnectionEnded:
    """The connection over which a broker's incarnation sent its heartbeats ended."""

    broker: int
    broker_epoch: int
    scope: Scope = scope.ALL


@dataclass(frozen=True, slots=True)
class AssignReplicasToDirs:
    """Request of a broker that reports in which of its directories replicas are (KIP-858)."""

    broker: int
    broker_epoch: int
    directories: Mapping[TopicPartition, UUID]

    @property
    def scope(self) -> Scope:
        """The partitions named."""
        return scope.partitions(self.directories)


@dataclass(frozen=True, slots=True)
class ElectWaitingLeaders:
    """Elect leaders for partitions without one that have a replica which may lead."""

    scope: Scope = scope.ALL


@dataclass(frozen=True, slots=True)
class ElectUncleanLeaders:
    """Elect leaders for partitions without one whose topics allow an unclean leader: at most a number of them."""

    count: int
    scope: Scope = scope.ALL


@dataclass(frozen=True, slots=True)
class ChangeConfigs:
    """Write configurations that are valid."""

    changes: tuple[quorum_changes.ConfigsChanged, ...]
    scope: Scope = scope.ALL


QuorumEvent = (
    RegisterBroker
    | Heartbeat
    | ReportDirectories
    | NoteShutdownOffset
    | ElectWaitingLeaders
    | FenceBroker
    | HeartbeatConnectionEnded
    | AssignReplicasToDirs
    | ElectUncleanLeaders
    | ChangeConfigs
)

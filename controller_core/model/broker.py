"""Broker registrations."""

from dataclasses import dataclass
from uuid import UUID

from kafka_metadata.directory_ids import LOST_DIRECTORY, MIGRATING_DIRECTORY, UNASSIGNED_DIRECTORY


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Address of one listener of a broker."""

    listener: str
    host: str
    port: int
    security_protocol: str
    """PLAINTEXT, SSL, SASL_PLAINTEXT or SASL_SSL."""


@dataclass(frozen=True, slots=True)
class FeatureRange:
    """Levels of a feature that a process supports, both ends included."""

    name: str
    minimum: int
    maximum: int


@dataclass(frozen=True, slots=True)
class Broker:
    """One registration of a broker. The same id with another epoch is another incarnation of that broker.

    In ZooKeeper mode a registered broker is never fenced, and the fields below `rack` keep their defaults.
    """

    id: int
    epoch: int
    """In ZooKeeper mode the registration znode's czxid (KIP-380), in KRaft mode the offset of its record: requests carry it, and older
    ones are refused."""
    endpoints: tuple[Endpoint, ...]
    rack: str | None = None
    incarnation_id: UUID | None = None
    """Random id of the process."""
    fenced: bool = False
    """Whether the broker is out of service: it leads no partition, and clients do not see it."""
    in_controlled_shutdown: bool = False
    directories: tuple[UUID, ...] = ()
    """Log directories that are online; empty below metadata.version 3.7-IV2."""
    cordoned_directories: tuple[UUID, ...] | None = None
    """Directories that get no new replicas (KIP-1066); None until the broker has reported them."""
    features: tuple[FeatureRange, ...] = ()

    def endpoint(self, listener: str) -> Endpoint | None:
        """Return the endpoint of a listener by name; None if the broker does not have that listener."""
        return next((endpoint for endpoint in self.endpoints if endpoint.listener == listener), None)

    @property
    def may_get_replicas(self) -> bool:
        """Whether the broker has a log directory that is not cordoned."""
        return not self.directories or not set(self.directories) <= set(self.cordoned_directories or ())

    @property
    def default_directory(self) -> UUID:
        """Directory of a new replica: known only if the broker has exactly one (ClusterControlManager.defaultDir)."""
        if not self.directories:
            return MIGRATING_DIRECTORY
        return self.directories[0] if len(self.directories) == 1 else UNASSIGNED_DIRECTORY

    def has_online(self, directory: UUID) -> bool:
        """Whether a replica in a directory is online (DirectoryId.isOnline)."""
        if directory in {UNASSIGNED_DIRECTORY, MIGRATING_DIRECTORY}:
            return True
        # Registrations below metadata.version 3.7-IV2 name no directories; such a broker stops when it loses its last one.
        return directory != LOST_DIRECTORY and (not self.directories or directory in self.directories)


@dataclass(frozen=True, slots=True)
class BrokerProgress:
    """What the active controller knows of an incarnation of a broker from its heartbeats (KRaft mode)."""

    metadata_offset: int = -1
    """Offset up to which the broker has read the metadata."""
    shutdown_offset: int = -1
    """Offset that the other brokers must have read before the broker may shut down; -1 outside controlled shutdown."""
    may_shut_down: bool = False
    """Whether a response has allowed the broker to shut down."""

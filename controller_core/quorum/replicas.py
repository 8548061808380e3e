"""Identity and addresses of replicas: who a node is, and where it listens."""

from dataclasses import dataclass
from uuid import UUID

NO_NODE = -1
"""Kafka's id for "no node" in requests and responses."""

NO_DIRECTORY = UUID(int=0)
"""Kafka's directory id for "unknown" in requests and records; here it is None."""


@dataclass(frozen=True, slots=True)
class ReplicaKey:
    """A node id with the id of its log directory, which changes when a disk is replaced or wiped.

    `directory_id` is None where it is unknown: at kraft.version 0 and from peers before Kafka 3.9.
    """

    id: int
    directory_id: UUID | None = None

    def accepts(self, other: "ReplicaKey") -> bool:
        """Whether another key names the replica with this key; a key without a directory accepts every directory.

        >>> ReplicaKey(1).accepts(ReplicaKey(1, UUID(int=7)))
        True
        >>> ReplicaKey(1, UUID(int=7)).accepts(ReplicaKey(1))
        False
        """
        return self.id == other.id and (self.directory_id is None or self.directory_id == other.directory_id)

    def order(self) -> tuple[int, int]:
        """Return the sort key: the id, then the directory id."""
        return self.id, (self.directory_id or NO_DIRECTORY).int


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Address of one listener of a node."""

    listener: str
    host: str
    port: int


Endpoints = tuple[Endpoint, ...]


def endpoint_of(endpoints: Endpoints, listener: str) -> Endpoint | None:
    """Return the endpoint of a listener."""
    return next((endpoint for endpoint in endpoints if endpoint.listener == listener), None)

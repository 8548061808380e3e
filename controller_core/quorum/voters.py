"""Replicas, by id and directory, and voter sets: voters with their endpoints and supported kraft.version range (KIP-853)."""

from collections.abc import Iterable
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


STATIC_VOTERS = 0
"""kraft.version 0: the voters come from the configuration, and directory ids are not known."""

DYNAMIC_VOTERS = 1
"""kraft.version 1 (KIP-853): the voters come from control records of the log."""


@dataclass(frozen=True, slots=True)
class VersionRange:
    """Supported levels of kraft.version, both inclusive."""

    minimum: int
    maximum: int

    def __contains__(self, level: int) -> bool:
        return self.minimum <= level <= self.maximum


@dataclass(frozen=True, slots=True)
class Voter:
    """A voter as the quorum decides with it: recorded in the log, or only configured and then without a directory id.

    `Voter` of kafka_log/format/control_records.py is the entry of a voters record; `wire_batches.py` of the shell creates it from this value.
    """

    key: ReplicaKey
    endpoints: Endpoints = ()
    kraft_versions: VersionRange = VersionRange(STATIC_VOTERS, STATIC_VOTERS)


@dataclass(frozen=True, slots=True)
class VoterSet:
    """Voters in the order of their ids; an id occurs once."""

    voters: tuple[Voter, ...] = ()

    @staticmethod
    def of(voters: Iterable[Voter]) -> "VoterSet":
        """Return the set of some voters; of two with one id the later one is in it."""
        by_id = {voter.key.id: voter for voter in voters}
        return VoterSet(tuple(by_id[voter_id] for voter_id in sorted(by_id)))

    def __len__(self) -> int:
        return len(self.voters)

    @property
    def ids(self) -> tuple[int, ...]:
        """Ids of the voters, ascending."""
        return tuple(voter.key.id for voter in self.voters)

    @property
    def keys(self) -> frozenset[ReplicaKey]:
        """Keys of the voters."""
        return frozenset(voter.key for voter in self.voters)

    @property
    def majority(self) -> int:
        """Number of voters that is more than half of them."""
        return len(self.voters) // 2 + 1

    def voter(self, node_id: int) -> Voter | None:
        """Return the voter with an id."""
        for voter in self.voters:
            if voter.key.id == node_id:
                return voter
        return None

    def endpoints(self, node_id: int) -> Endpoints:
        """Return a voter's endpoints; none if the id is no voter's."""
        voter = self.voter(node_id)
        return voter.endpoints if voter else ()

    def is_voter(self, key: ReplicaKey) -> bool:
        """Whether a replica is a voter; where the set has no directory id, the id decides."""
        voter = self.voter(key.id)
        return voter is not None and voter.key.accepts(key)

    def is_only_voter(self, key: ReplicaKey) -> bool:
        """Whether a replica is the only voter."""
        return len(self) == 1 and self.is_voter(key)

    def needs_update(self, voter: Voter) -> bool:
        """Whether the set has this voter with other endpoints, another version range or no directory id."""
        known = self.voter(voter.key.id)
        return known is not None and known.key.accepts(voter.key) and known != voter

    def add(self, voter: Voter) -> "VoterSet | None":
        """Return the set with one more voter; None if its id is in the set."""
        return None if self.voter(voter.key.id) else VoterSet.of((*self.voters, voter))

    def remove(self, key: ReplicaKey) -> "VoterSet | None":
        """Return the set without a voter; None if the key is not exactly a voter's, or the last voter's."""
        voter = self.voter(key.id)
        if voter is None or voter.key != key or len(self) == 1:
            return None
        return VoterSet(tuple(other for other in self.voters if other is not voter))

    def update(self, voter: Voter) -> "VoterSet | None":
        """Return the set with new facts about a voter; None if its key is no voter's."""
        return VoterSet.of((*self.voters, voter)) if self.is_voter(voter.key) else None

    def update_by_id(self, voter: Voter) -> "VoterSet | None":
        """Return the set with new facts about a voter, with any directory id; None if its id is no voter's."""
        return VoterSet.of((*self.voters, voter)) if self.voter(voter.key.id) else None

    def supports(self, kraft_version: int) -> bool:
        """Whether all voters support a level of kraft.version."""
        return all(kraft_version in voter.kraft_versions for voter in self.voters)

    def overlaps(self, other: "VoterSet") -> bool:
        """Whether each majority of one set has a voter in each majority of the other, because at most one voter came and one left."""
        return len(self.keys - other.keys) <= 1 and len(other.keys - self.keys) <= 1

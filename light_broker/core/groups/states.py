"""A group and its members, as values. Source: Kafka's ClassicGroup, ClassicGroupMember and ClassicGroupState.

JoinGroup and SyncGroup requests that wait for their answer are known by a number that the shell chooses.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

CONSUMER_PROTOCOL = "consumer"
"""Protocol type of consumers (ConsumerProtocol.PROTOCOL_TYPE)."""


@dataclass(frozen=True, slots=True)
class Protocol:
    """A protocol that a member supports, such as the assignor `range`, with the member's metadata in it, for the leader."""

    name: str
    metadata: bytes


@dataclass(frozen=True, slots=True)
class Member:
    """A member of a group."""

    id: str
    instance_id: str | None
    """`group.instance.id` of a static member (KIP-345)."""
    client_id: str
    client_host: str
    """As in Java's InetAddress.toString: `/10.0.0.1`."""
    rebalance_timeout_ms: int
    session_timeout_ms: int
    protocol_type: str
    protocols: tuple[Protocol, ...]
    """In the order of the member's preference."""
    assignment: bytes = b""
    is_new: bool = False
    """Whether it has not been in a generation yet. Such a member is removed even while its JoinGroup waits."""

    def metadata(self, protocol: str) -> bytes:
        """Return the metadata of a protocol that the member supports."""
        return next(candidate.metadata for candidate in self.protocols if candidate.name == protocol)


@dataclass(frozen=True, slots=True)
class Empty:
    """No members. The group exists until its last offset expires; or it was never more than a place for offsets."""


@dataclass(frozen=True, slots=True)
class InitialDelay:
    """Wait for further members of a group that had none (group.initial.rebalance.delay.ms)."""

    delay_ms: int
    """The current wait."""
    remaining_ms: int
    """Time by which the wait may still be extended."""
    has_new_member: bool = False
    """Whether a member joined during the current wait, which extends it."""


@dataclass(frozen=True, slots=True)
class PreparingRebalance:
    """JoinGroup requests wait until all members have joined, at most for the longest rebalance timeout of a member."""

    initial: InitialDelay | None = None
    """Set in the first rebalance of a group without members, which never ends before its delay."""


@dataclass(frozen=True, slots=True)
class CompletingRebalance:
    """SyncGroup requests wait for the assignments of the leader."""

    pending_sync: frozenset[str]
    """Members that have not sent SyncGroup."""


@dataclass(frozen=True, slots=True)
class Stable:
    """The members have their assignments."""

    pending_sync: frozenset[str] = frozenset()
    """Members that have not fetched theirs by SyncGroup."""


@dataclass(frozen=True, slots=True)
class Dead:
    """The group is being deleted: a tombstone is being stored, or the partition has another leader."""


State = Empty | PreparingRebalance | CompletingRebalance | Stable | Dead

NAMES: Mapping[type[State], str] = {
    Empty: "Empty",
    PreparingRebalance: "PreparingRebalance",
    CompletingRebalance: "CompletingRebalance",
    Stable: "Stable",
    Dead: "Dead",
}
"""Names of the states in responses."""


@dataclass(frozen=True, slots=True)
class Group:
    """A group of the classic protocol."""

    id: str
    state: State = Empty()
    state_since_ms: int | None = None
    """Time of day of the last transition; None: unknown, from a record of an old version."""
    generation: int = 0
    protocol_type: str | None = None
    protocol: str | None = None
    """The protocol of this generation."""
    leader: str | None = None
    members: Mapping[str, Member] = field(default_factory=dict)
    """By id, in the order in which they joined."""
    static_members: Mapping[str, str] = field(default_factory=dict)
    """Ids of static members by their instance ids."""
    pending_members: frozenset[str] = frozenset()
    """Member ids that were given out and have not joined yet (KIP-394)."""
    joins: Mapping[str, int] = field(default_factory=dict)
    """JoinGroup requests that wait, by member."""
    syncs: Mapping[str, int] = field(default_factory=dict)
    """SyncGroup requests that wait, by member."""
    subscribed_topics: frozenset[str] | None = None
    """Topics of all members; None: unknown, because the protocol is not that of consumers or cannot be read."""
    is_stored: bool = True
    """Whether the log contains the group. A new group is not shown before."""

    @property
    def state_name(self) -> str:
        """Name of the state in responses."""
        return NAMES[type(self.state)]

    @property
    def has_all_joined(self) -> bool:
        """Whether every member, and every given out member id, waits for the end of the rebalance."""
        return len(self.joins) == len(self.members) and not self.pending_members

    @property
    def rebalance_timeout_ms(self) -> int:
        """Longest rebalance timeout of a member."""
        return max((member.rebalance_timeout_ms for member in self.members.values()), default=0)

    @property
    def uses_consumer_protocol(self) -> bool:
        """Whether its members are consumers."""
        return self.protocol_type == CONSUMER_PROTOCOL

    def is_subscribed_to(self, topic: str) -> bool:
        """Whether a member subscribes to a topic. Consumers whose topics are unknown might."""
        if self.subscribed_topics is None:
            return self.uses_consumer_protocol
        return topic in self.subscribed_topics

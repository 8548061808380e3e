"""Events of a group: requests of members, timers, and results of appends, as values."""

from dataclasses import dataclass

from kafka_wire import ErrorCode
from light_broker.core.groups.states import Member, Protocol

UNKNOWN_MEMBER = ""
"""Member id in the first JoinGroup of a member, and in LeaveGroup for a static member that only has its instance id."""


@dataclass(frozen=True, slots=True)
class JoinGroup:
    """A client joins, or joins again."""

    request_id: int
    group_id: str
    member_id: str
    instance_id: str | None
    client_id: str
    client_host: str
    session_timeout_ms: int
    rebalance_timeout_ms: int
    protocol_type: str
    protocols: tuple[Protocol, ...]
    random_id: str
    """A random UUID, for the id of a new member."""
    needs_known_member_id: bool = True
    """Whether the client first gets its member id and then joins with it (KIP-394): from version 4."""
    can_skip_assignment: bool = True
    """Whether a leader that comes back understands that it is not to assign (KIP-814): from version 9."""
    reason: str | None = None
    """The client's reason (KIP-800)."""


@dataclass(frozen=True, slots=True)
class SyncGroup:
    """A member asks for its assignment; the leader also brings those of all members."""

    request_id: int
    member_id: str
    instance_id: str | None
    generation: int
    protocol_type: str | None
    protocol: str | None
    assignments: tuple[tuple[str, bytes], ...] = ()
    """By member id."""


@dataclass(frozen=True, slots=True)
class Heartbeat:
    """A member is alive."""

    request_id: int
    member_id: str
    instance_id: str | None
    generation: int


@dataclass(frozen=True, slots=True)
class Leaver:
    """A member that leaves: itself, or removed by an administrator by its instance id."""

    member_id: str
    instance_id: str | None = None
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class LeaveGroup:
    """Members leave."""

    request_id: int
    leavers: tuple[Leaver, ...]


@dataclass(frozen=True, slots=True)
class SessionExpired:
    """A member has not been heard of for its session timeout."""

    member_id: str


@dataclass(frozen=True, slots=True)
class JoinTimedOut:
    """The time for members to join is over."""


@dataclass(frozen=True, slots=True)
class SyncTimedOut:
    """The time for members to send SyncGroup is over."""


@dataclass(frozen=True, slots=True)
class Loaded:
    """The group was read from the log by a broker that begins to lead its partition."""


@dataclass(frozen=True, slots=True)
class Unloaded:
    """Another broker leads the partition."""


@dataclass(frozen=True, slots=True)
class GroupCreated:
    """Result of the append of a new group."""

    error: ErrorCode = ErrorCode.NONE


@dataclass(frozen=True, slots=True)
class EmptyGenerationStored:
    """Result of the append of a generation without members."""

    error: ErrorCode = ErrorCode.NONE


@dataclass(frozen=True, slots=True)
class AssignmentStored:
    """Result of the append of a generation's assignments."""

    generation: int
    leader: str
    assignments: tuple[tuple[str, bytes], ...]
    error: ErrorCode = ErrorCode.NONE


@dataclass(frozen=True, slots=True)
class StaticMemberStored:
    """Result of the append of a static member's new id."""

    request_id: int
    member_id: str
    replaced: Member
    """The member with its old id, protocols and timeouts."""
    leader: str | None
    """Leader before the replacement."""
    can_skip_assignment: bool
    error: ErrorCode = ErrorCode.NONE


Stored = GroupCreated | EmptyGenerationStored | AssignmentStored | StaticMemberStored
"""Results of appends."""

Request = JoinGroup | SyncGroup | Heartbeat | LeaveGroup
"""Requests of members."""

Timer = SessionExpired | JoinTimedOut | SyncTimedOut

Event = Request | Timer | Loaded | Unloaded | Stored

"""Effects of a decision on a group, in the order in which the shell carries them out."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from kafka_wire import ErrorCode
from light_broker.core.groups.events import Stored, Timer
from light_broker.core.groups.records import GroupRecord


@dataclass(frozen=True, slots=True)
class Joined:
    """Answer to JoinGroup."""

    error: ErrorCode = ErrorCode.NONE
    member_id: str = ""
    generation: int = -1
    protocol_type: str | None = None
    protocol: str | None = None
    leader: str = ""
    members: tuple[tuple[str, str | None, bytes], ...] = ()
    """For the leader: id, instance id and metadata of each member."""
    skip_assignment: bool = False


@dataclass(frozen=True, slots=True)
class Synced:
    """Answer to SyncGroup."""

    error: ErrorCode = ErrorCode.NONE
    protocol_type: str | None = None
    protocol: str | None = None
    assignment: bytes = b""


@dataclass(frozen=True, slots=True)
class HeartbeatReceived:
    """Answer to Heartbeat."""

    error: ErrorCode = ErrorCode.NONE


@dataclass(frozen=True, slots=True)
class Left:
    """Answer to LeaveGroup."""

    error: ErrorCode = ErrorCode.NONE
    members: tuple[tuple[str, str | None, ErrorCode], ...] = ()
    """Member id, instance id and error of each member of the request."""


Answer = Joined | Synced | HeartbeatReceived | Left


@dataclass(frozen=True, slots=True)
class Reply:
    """Answer a request. `is_stored` answers wait until the decision's records are below the high watermark."""

    request_id: int
    answer: Answer
    is_stored: bool = False


@dataclass(frozen=True, slots=True)
class Append:
    """Append a record. Its result comes back as the event `then`, with the error set."""

    record: GroupRecord
    then: Stored


@dataclass(frozen=True, slots=True)
class StartTimer:
    """Deliver an event after a delay; replaces the timer of an equal key."""

    timer: Timer
    delay_ms: int


@dataclass(frozen=True, slots=True)
class StopTimer:
    """Drop a timer, if there is one."""

    timer: Timer


@dataclass(frozen=True, slots=True)
class Noted:
    """A change for the log: a message and its values."""

    message: str
    values: Mapping[str, object] = field(default_factory=dict)


Effect = Reply | Append | StartTimer | StopTimer | Noted

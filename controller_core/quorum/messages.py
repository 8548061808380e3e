"""Messages between nodes, as values: the fields of Kafka's schemas for the one partition of the quorum.

Topic, partition and throttle time are constants that the mapping to schemas adds. An absent node id is NO_NODE, an absent epoch or
offset -1, as on the wire; an absent directory id is None. `Leadership` is in every response: the sender's epoch and leader, with the
leader's endpoint on the listener of the request where it is known (tagged NodeEndpoints).
"""

from dataclasses import dataclass

from controller_core.quorum.batches import Batch, Position
from controller_core.quorum.voters import NO_NODE, Endpoint, Endpoints, ReplicaKey, VersionRange
from kafka_wire import ErrorCode

NONE = ErrorCode.NONE

UNKNOWN = -1
"""Epoch or offset that is not known."""

ANY_HIGH_WATERMARK = (1 << 63) - 1
"""High watermark of a Fetch below version 18, which is not answered because the high watermark rose."""


@dataclass(frozen=True, slots=True)
class Leadership:
    """Epoch and leader that the sender of a response knows."""

    epoch: int = UNKNOWN
    leader_id: int = NO_NODE
    endpoint: Endpoint | None = None


@dataclass(frozen=True, slots=True)
class VoteRequest:
    """Vote 0 to 2. `voter` is whom the request is for, None before version 1; `last` is the candidate's log end."""

    cluster_id: str | None
    epoch: int
    candidate: ReplicaKey
    voter: ReplicaKey | None
    last: Position
    pre_vote: bool = False


@dataclass(frozen=True, slots=True)
class VoteResponse:
    """Response to a VoteRequest."""

    error: ErrorCode = NONE
    leadership: Leadership = Leadership()
    granted: bool = False


@dataclass(frozen=True, slots=True)
class BeginQuorumEpochRequest:
    """BeginQuorumEpoch 0 and 1; endpoints and voter are absent in version 0."""

    cluster_id: str | None
    epoch: int
    leader_id: int
    endpoints: Endpoints = ()
    voter: ReplicaKey | None = None


@dataclass(frozen=True, slots=True)
class BeginQuorumEpochResponse:
    """Response to a BeginQuorumEpochRequest."""

    error: ErrorCode = NONE
    leadership: Leadership = Leadership()


@dataclass(frozen=True, slots=True)
class EndQuorumEpochRequest:
    """EndQuorumEpoch 0 and 1. The successors are in the order of their logs, longest first; without directory ids in version 0."""

    cluster_id: str | None
    epoch: int
    leader_id: int
    successors: tuple[ReplicaKey, ...] = ()
    endpoints: Endpoints = ()


@dataclass(frozen=True, slots=True)
class EndQuorumEpochResponse:
    """Response to an EndQuorumEpochRequest."""

    error: ErrorCode = NONE
    leadership: Leadership = Leadership()


@dataclass(frozen=True, slots=True)
class FetchRequest:
    """Fetch from version 13 on. `fetched` is the follower's log end: fetch offset and last fetched epoch."""

    cluster_id: str | None
    epoch: int
    replica: ReplicaKey
    fetched: Position
    high_watermark: int = ANY_HIGH_WATERMARK
    max_wait_ms: int = 0
    max_bytes: int = 1024 * 1024


@dataclass(frozen=True, slots=True)
class ReadRange:
    """Records that the shell reads for a response: at least one batch from `offset`, more up to `max_bytes`, all before `end_offset`."""

    offset: int
    end_offset: int
    max_bytes: int


@dataclass(frozen=True, slots=True)
class FetchResponse:
    """Response to a FetchRequest. A sender sets `read`, and the shell puts the records in; a receiver gets decoded `batches`."""

    error: ErrorCode = NONE
    leadership: Leadership = Leadership()
    high_watermark: int = UNKNOWN
    log_start_offset: int = UNKNOWN
    diverging: Position | None = None
    snapshot: Position | None = None
    read: ReadRange | None = None
    batches: tuple[Batch, ...] = ()


@dataclass(frozen=True, slots=True)
class FetchSnapshotRequest:
    """FetchSnapshot 0 and 1."""

    cluster_id: str | None
    epoch: int
    replica: ReplicaKey
    snapshot: Position
    position: int
    max_bytes: int = 1024 * 1024


@dataclass(frozen=True, slots=True)
class FetchSnapshotResponse:
    """Response to a FetchSnapshotRequest. A sender sets `read_bytes`, by which the shell reads `data` from `position`."""

    error: ErrorCode = NONE
    leadership: Leadership = Leadership()
    snapshot: Position | None = None
    size_bytes: int = 0
    position: int = 0
    read_bytes: int = 0
    data: bytes = b""


@dataclass(frozen=True, slots=True)
class ApiVersionsRequest:
    """ApiVersions, by which a leader asks a new voter for the levels of kraft.version that it supports."""


@dataclass(frozen=True, slots=True)
class ApiVersionsResponse:
    """The part of an ApiVersions response that concerns the quorum; None if the node does not list kraft.version."""

    error: ErrorCode = NONE
    kraft_versions: VersionRange | None = None


@dataclass(frozen=True, slots=True)
class AddRaftVoterRequest:
    """AddRaftVoter 0 and 1; version 0 is always answered after the commit."""

    cluster_id: str | None
    timeout_ms: int
    voter: ReplicaKey
    endpoints: Endpoints
    ack_when_committed: bool = True


@dataclass(frozen=True, slots=True)
class AddRaftVoterResponse:
    """Response to an AddRaftVoterRequest; without a message the shell uses that of the error."""

    error: ErrorCode = NONE
    message: str | None = None


@dataclass(frozen=True, slots=True)
class RemoveRaftVoterRequest:
    """RemoveRaftVoter 0."""

    cluster_id: str | None
    voter: ReplicaKey


@dataclass(frozen=True, slots=True)
class RemoveRaftVoterResponse:
    """Response to a RemoveRaftVoterRequest."""

    error: ErrorCode = NONE
    message: str | None = None


@dataclass(frozen=True, slots=True)
class UpdateRaftVoterRequest:
    """UpdateRaftVoter 0."""

    cluster_id: str | None
    epoch: int
    voter: ReplicaKey
    endpoints: Endpoints
    kraft_versions: VersionRange


@dataclass(frozen=True, slots=True)
class UpdateRaftVoterResponse:
    """Response to an UpdateRaftVoterRequest."""

    error: ErrorCode = NONE
    leadership: Leadership = Leadership()


@dataclass(frozen=True, slots=True)
class DescribeQuorumRequest:
    """DescribeQuorum 0 to 2."""


@dataclass(frozen=True, slots=True)
class ReplicaState:
    """A replica in a DescribeQuorumResponse. Times are -1 for a replica that has not fetched or caught up."""

    key: ReplicaKey
    end_offset: int
    last_fetch_ms: int
    last_caught_up_ms: int
    endpoints: Endpoints = ()
    """Of voters: Nodes in version 2."""


@dataclass(frozen=True, slots=True)
class DescribeQuorumResponse:
    """Response to a DescribeQuorumRequest."""

    error: ErrorCode = NONE
    leadership: Leadership = Leadership()
    high_watermark: int = UNKNOWN
    voters: tuple[ReplicaState, ...] = ()
    observers: tuple[ReplicaState, ...] = ()


@dataclass(frozen=True, slots=True)
class FailedResponse:
    """A request without a response: an error of the connection, or an error code for the whole request.

    UNSUPPORTED_VERSION: the peer does not have the API, the version or a field that the request needs.
    """

    error: ErrorCode


RequestBody = (
    VoteRequest
    | BeginQuorumEpochRequest
    | EndQuorumEpochRequest
    | FetchRequest
    | FetchSnapshotRequest
    | ApiVersionsRequest
    | AddRaftVoterRequest
    | RemoveRaftVoterRequest
    | UpdateRaftVoterRequest
    | DescribeQuorumRequest
)
ResponseBody = (
    VoteResponse
    | BeginQuorumEpochResponse
    | EndQuorumEpochResponse
    | FetchResponse
    | FetchSnapshotResponse
    | ApiVersionsResponse
    | AddRaftVoterResponse
    | RemoveRaftVoterResponse
    | UpdateRaftVoterResponse
    | DescribeQuorumResponse
    | FailedResponse
)

"""Inputs of a node, each one message of `step`: requests and responses of other nodes, and reports and commands of the shell."""

from dataclasses import dataclass

from controller_core.quorum import batches, messages
from controller_core.quorum.voters import VoterSet


@dataclass(frozen=True, slots=True)
class Request:
    """A request of another node or of a tool. The reply has the same `id`, which is unique among those not yet answered."""

    id: int
    listener: str
    body: messages.RequestBody


@dataclass(frozen=True, slots=True)
class Response:
    """The response to the request with this correlation id, or that there is none."""

    source: int
    correlation_id: int
    body: messages.ResponseBody


@dataclass(frozen=True, slots=True)
class Flushed:
    """A flush has ended: everything that was in the log when it was ordered is on disk."""

    number: int


@dataclass(frozen=True, slots=True)
class SnapshotInstalled:
    """The fetched snapshot is complete on disk and has replaced the log; its control records, if it has any."""

    id: batches.Position
    size_bytes: int
    voters: VoterSet | None
    kraft_version: int


@dataclass(frozen=True, slots=True)
class SnapshotRejected:
    """The fetched snapshot is not valid and was deleted; the log is unchanged."""

    id: batches.Position


@dataclass(frozen=True, slots=True)
class SnapshotCreated:
    """The state machine has completed a snapshot of committed records."""

    id: batches.Position
    size_bytes: int


@dataclass(frozen=True, slots=True)
class LogCleaned:
    """Records and snapshots before an offset, at which a snapshot ends, were deleted."""

    start_offset: int


@dataclass(frozen=True, slots=True)
class Append:
    """Records to append as one batch, if the node leads in this epoch; the shell collects them for the linger time."""

    id: int
    epoch: int
    payload: bytes
    record_count: int


@dataclass(frozen=True, slots=True)
class Resign:
    """The controller cannot go on in an epoch; no effect in another epoch."""

    epoch: int


@dataclass(frozen=True, slots=True)
class UpgradeKRaftVersion:
    """Raise kraft.version, or check whether it can be raised."""

    id: int
    epoch: int
    level: int
    validate_only: bool = False


@dataclass(frozen=True, slots=True)
class Shutdown:
    """Stop, as a leader after handing over, at the latest when the time is over."""

    timeout_ms: int


Input = (
    Request
    | Response
    | Flushed
    | SnapshotInstalled
    | SnapshotRejected
    | SnapshotCreated
    | LogCleaned
    | Append
    | Resign
    | UpgradeKRaftVersion
    | Shutdown
)

"""Transactions (ZooKeeper's multi) as values: operations, outcomes, and batches.

An outcome is a value, never an exception: the controller handles it as an event. `session` sends transactions, `protocol` encodes
them.
"""

import enum
from collections.abc import Sequence
from dataclasses import dataclass

ANY_VERSION = -1
"""Matches every version, in a SetData or a Delete."""

MAX_BATCH_OPERATIONS = 500
"""Operations in one transaction: 53,000 setData a second were measured at this size, and larger ones are not faster."""

MAX_BATCH_BYTES = 524_288
"""Bytes in one transaction: half of ZooKeeper's limit for a packet (jute.maxbuffer, 1 MiB), because the servers of an ensemble
send the transaction to each other with additional headers under the same limit."""

OPERATION_OVERHEAD_BYTES = 96
"""Upper bound of an operation's size without its path and data: header, lengths, version, flags and ACLs."""


@dataclass(frozen=True, slots=True)
class Create:
    """Create a znode; fails with NODE_EXISTS, or with NO_NODE if its parent is missing."""

    path: str
    data: bytes | None
    """None is ZooKeeper's null, which Kafka writes to its empty znodes; it differs from b""."""
    ephemeral: bool = False
    sequential: bool = False


@dataclass(frozen=True, slots=True)
class SetData:
    """Replace a znode's data if the znode has this version; fails with BAD_VERSION or NO_NODE."""

    path: str
    data: bytes | None
    version: int


@dataclass(frozen=True, slots=True)
class Delete:
    """Delete a znode if it has this version; fails with BAD_VERSION, NO_NODE or NOT_EMPTY."""

    path: str
    version: int


@dataclass(frozen=True, slots=True)
class Check:
    """Require that a znode has this version; fails with BAD_VERSION or NO_NODE."""

    path: str
    version: int


Operation = Create | SetData | Delete | Check


class RefusedReason(enum.Enum):
    """Reason for which ZooKeeper rejected a transaction."""

    BAD_VERSION = "bad version"
    NO_NODE = "no node"
    NODE_EXISTS = "node exists"
    NOT_EMPTY = "not empty"
    NO_AUTH = "no auth"
    """The ACLs of a znode do not allow the operation."""
    TOO_LARGE = "too large"
    """The transaction exceeds the limit of a packet; it was not sent."""
    OTHER = "other"
    """Another non-retriable error (an ephemeral parent, a quota, an invalid path); `Refused.detail` names it."""


@dataclass(frozen=True, slots=True)
class Committed:
    """All operations were executed, atomically."""

    results: tuple[str | int | None, ...]
    """Result of each operation in order: a Create's path (with its sequence number), a SetData's new version, else None."""


@dataclass(frozen=True, slots=True)
class Refused:
    """No operation was executed, because one failed."""

    index: int
    """Index of the first operation that failed; -1 if the whole transaction was rejected."""
    reason: RefusedReason
    detail: str = ""


@dataclass(frozen=True, slots=True)
class Unknown:
    """The connection or session was lost before the response: all operations were executed, or none."""

    detail: str = ""


MultiResult = Committed | Refused | Unknown


@dataclass(frozen=True, slots=True)
class Batch:
    """One transaction with several groups of operations after one fence."""

    operations: tuple[Operation, ...]
    groups: tuple[int, ...]
    """Indexes of its groups in the input of plan_batches, in order."""


def operation_bytes(operation: Operation) -> int:
    """Return an upper bound of an operation's size on the wire, without the chroot."""
    path = operation.path
    size = OPERATION_OVERHEAD_BYTES + (len(path) if path.isascii() else len(path.encode()))
    if isinstance(operation, (SetData, Create)) and operation.data is not None:
        size += len(operation.data)
    return size


def plan_batches(
    groups: Sequence[Sequence[Operation]],
    fence: Check | None,
    max_operations: int = MAX_BATCH_OPERATIONS,
    max_bytes: int = MAX_BATCH_BYTES,
) -> list[Batch]:
    """Pack groups of operations into transactions in order, each with the fence first.

    A group is atomic: it is never split. A group that exceeds a limit by itself is a separate transaction: the session decides
    whether it can be sent. Empty groups are omitted.
    """
    head: tuple[Operation, ...] = () if fence is None else (fence,)
    head_bytes = sum(map(operation_bytes, head))
    batches: list[Batch] = []
    operations, members, size = list(head), list[int](), head_bytes
    for index, group in enumerate(groups):
        group_bytes = sum(map(operation_bytes, group))
        if members and (len(operations) + len(group) > max_operations or size + group_bytes > max_bytes):
            batches.append(Batch(tuple(operations), tuple(members)))
            operations, members, size = list(head), [], head_bytes
        if group:
            members.append(index)
            operations.extend(group)
            size += group_bytes
    if members:
        batches.append(Batch(tuple(operations), tuple(members)))
    return batches

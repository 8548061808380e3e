"""What a transaction (ZooKeeper's multi) asks for and how it ended, as plain values; and how to pack many into few.

A transaction's end is a value, never an exception: the controller's loop takes it as one more event. Left out: sending
(see `session`) and the bytes (see `protocol`).
"""

import enum
from collections.abc import Sequence
from dataclasses import dataclass

ANY_VERSION = -1
"""The version that matches every version, in a SetData or a Delete."""

MAX_BATCH_OPERATIONS = 500
"""Operations in one transaction: 53,000 setData a second were measured at this size, and larger ones gain nothing."""

MAX_BATCH_BYTES = 524_288
"""Bytes in one transaction: half of ZooKeeper's limit for any packet (jute.maxbuffer, 1 MiB), because the transaction is
written once more, with headers of its own, between the servers of an ensemble, where the same limit applies."""

OPERATION_OVERHEAD_BYTES = 96
"""An upper bound of what an operation takes beside its path and data: header, lengths, version, flags and the ACLs."""


@dataclass(frozen=True, slots=True)
class Create:
    """Create a znode; fails with NODE_EXISTS, or with NO_NODE when its parent is missing."""

    path: str
    data: bytes | None
    """None is ZooKeeper's null, which is what Kafka writes into its empty znodes; it is not the same as b""."""
    ephemeral: bool = False
    sequential: bool = False


@dataclass(frozen=True, slots=True)
class SetData:
    """Replace a znode's data if its version is the one given; fails with BAD_VERSION or NO_NODE."""

    path: str
    data: bytes | None
    version: int


@dataclass(frozen=True, slots=True)
class Delete:
    """Delete a znode if its version is the one given; fails with BAD_VERSION, NO_NODE or NOT_EMPTY."""

    path: str
    version: int


@dataclass(frozen=True, slots=True)
class Check:
    """Let the transaction through only if the znode has this version; fails with BAD_VERSION or NO_NODE."""

    path: str
    version: int


Operation = Create | SetData | Delete | Check


class RefusedReason(enum.Enum):
    """Why ZooKeeper did nothing of a transaction."""

    BAD_VERSION = "bad version"
    NO_NODE = "no node"
    NODE_EXISTS = "node exists"
    NOT_EMPTY = "not empty"
    NO_AUTH = "no auth"
    """The session's identity may not do this to that znode."""
    TOO_LARGE = "too large"
    """It is larger than a server takes in one packet; it was not sent."""
    OTHER = "other"
    """Anything else that no retry will mend (an ephemeral parent, a quota, an illegal path); `Refused.detail` names it."""


@dataclass(frozen=True, slots=True)
class Committed:
    """All was done, at once."""

    results: tuple[str | int | None, ...]
    """For each operation in order: a Create's path (with its sequence number), a SetData's new version, else None."""


@dataclass(frozen=True, slots=True)
class Refused:
    """Nothing was done, because of one operation."""

    index: int
    """The place of the first operation that failed; -1 when the whole transaction was refused."""
    reason: RefusedReason
    detail: str = ""


@dataclass(frozen=True, slots=True)
class Unknown:
    """The connection or the session went before the answer came: all was done, or nothing was."""

    detail: str = ""


MultiResult = Committed | Refused | Unknown


@dataclass(frozen=True, slots=True)
class Batch:
    """One transaction that carries several groups behind one fence."""

    operations: tuple[Operation, ...]
    groups: tuple[int, ...]
    """The indexes, into the groups that were planned, of the groups inside, in order."""


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
    """Pack groups of operations into transactions, each with the fence in front, in the order given.

    A group is atomic: it is never split. A group that passes a limit by itself travels alone: the session
    judges whether it can be sent.
    An empty group is in no batch: there is nothing to write for it.
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

"""ZooKeeper requests without a kazoo API, as kazoo's connection accepts them: a `type`, `serialize` and `deserialize`.

Multi-read (opcode 22, ZooKeeper 3.6: many getData and getChildren in one request, each with its own outcome) and multi
(opcode 14, a transaction, here with ZooKeeper's plain error codes). All integers are big-endian; a length of -1 is null.
Both responses are a sequence of results, each after a header (type, last, error), with a final header that has `last` set.
"""

import struct
from collections.abc import Sequence
from typing import NamedTuple

from kafka_zookeeper.acl import OPEN_TO_ALL, acl_bytes
from kafka_zookeeper.errors import ZooKeeperError
from kafka_zookeeper.writes import Check, Create, Delete, Operation, SetData

CREATE, DELETE, GET_DATA, SET_DATA, GET_CHILDREN, CHECK = 1, 2, 4, 5, 8, 13
MULTI, MULTI_READ = 14, 22
ERROR = -1
"""Type of a result that is an error."""

OK, NO_NODE = 0, -101

PACKET_HEADER_BYTES = 8
"""The transaction id and the opcode before every body."""

EPHEMERAL_FLAG, SEQUENTIAL_FLAG = 1, 2

_HEADER = struct.Struct("!iBi")
_INT = struct.Struct("!i")
_HEADER_AND_LENGTH = struct.Struct("!iBii")
_STAT = struct.Struct("!qq16xi8xq16x")
"""czxid, mzxid, (ctime, mtime), version, (cversion, aversion), ephemeralOwner, (dataLength, numChildren, pzxid)"""
_STAT_VERSION = struct.Struct("!32xi32x")

_LAST = _HEADER.pack(-1, True, -1)


def full_path(chroot: str, path: str) -> str:
    """Return a path with the chroot. Raises ValueError without a leading slash: the result would be outside the chroot."""
    if not path.startswith("/"):
        raise ValueError(f"the path {path!r} must begin with a slash")
    return f"{chroot}{path}" if path != "/" else chroot or "/"


class Node(NamedTuple):
    """Data and metadata of a znode."""

    data: bytes | None
    """None is ZooKeeper's null."""
    version: int
    czxid: int
    """The transaction that created it; for a broker's registration, the broker epoch."""
    mzxid: int
    """The transaction that last changed its data."""
    ephemeral_owner: int
    """The session it ends with; 0 for a persistent znode."""


class ResultError(NamedTuple):
    """One operation's failure, by ZooKeeper's error code."""

    code: int


class MultiReadResponse(NamedTuple):
    """Results of a multi-read, in the order of its paths."""

    results: list[Node | list[str] | ResultError]
    size_bytes: int


class MultiRead:
    """Request that reads many znodes (GET_DATA) or their children (GET_CHILDREN)."""

    type = MULTI_READ
    watcher = None

    def __init__(self, kind: int, paths: Sequence[str]) -> None:
        self._kind = kind
        self._paths = paths

    def __repr__(self) -> str:
        return f"MultiRead(kind={self._kind}, {len(self._paths)} paths)"

    def serialize(self) -> bytes:
        """Return the request's body; the 0 after each path requests no watch, which a multi-read cannot set."""
        head = _HEADER.pack(self._kind, False, -1)
        parts: list[bytes] = []
        for path in self._paths:
            encoded = path.encode()
            parts += (head, _INT.pack(len(encoded)), encoded, b"\0")
        return b"".join((*parts, _LAST))

    def deserialize(self, data: bytes, offset: int) -> MultiReadResponse:
        """Return the results; raises ZooKeeperError or struct.error if they do not match the request."""
        results: list[Node | list[str] | ResultError] = []
        start, unpack, stat, stat_bytes = offset, _HEADER_AND_LENGTH.unpack_from, _STAT.unpack_from, _STAT.size
        for _ in self._paths:
            kind, _last, _error, length = unpack(data, offset)
            offset += _HEADER_AND_LENGTH.size
            if kind == GET_DATA:
                end = offset + max(length, 0)
                czxid, mzxid, version, owner = stat(data, end)
                results.append(Node(None if length < 0 else data[offset:end], version, czxid, mzxid, owner))
                offset = end + stat_bytes
            elif kind == GET_CHILDREN:
                names, offset = _read_names(data, offset, length)
                results.append(names)
            elif kind == ERROR:
                results.append(ResultError(length))
            else:
                raise ZooKeeperError(f"the response to a multi-read has a result of the unknown type {kind}")
        if data[offset:] != _LAST:
            raise ZooKeeperError(
                f"the response to a multi-read of {len(self._paths)} znodes has a wrong number of results"
            )
        return MultiReadResponse(results, len(data) - start)


class MultiWrite:
    """Request of a transaction; `chroot` is added to its paths."""

    type = MULTI
    watcher = None

    def __init__(self, operations: Sequence[Operation], chroot: str = "", *, set_acl: bool = False) -> None:
        self._count = len(operations)
        self._body = b"".join(
            (*(_write_operation(operation, chroot, set_acl=set_acl) for operation in operations), _LAST)
        )

    def __repr__(self) -> str:
        return f"MultiWrite({self._count} operations)"

    @property
    def size_bytes(self) -> int:
        """Size of the packet, which a server compares with jute.maxbuffer."""
        return PACKET_HEADER_BYTES + len(self._body)

    def serialize(self) -> bytes:
        """Return the request's body."""
        return self._body

    def deserialize(self, data: bytes, offset: int) -> list[str | int | ResultError | None]:
        """Return one result for each operation: a path, a version, None, or an error (0: rolled back because of another)."""
        results: list[str | int | ResultError | None] = []
        for _ in range(self._count):
            kind, _last, _error = _HEADER.unpack_from(data, offset)
            offset += _HEADER.size
            if kind == CREATE:
                length = _INT.unpack_from(data, offset)[0]
                offset += _INT.size
                results.append(data[offset : offset + length].decode())
                offset += length
            elif kind == SET_DATA:
                results.append(_STAT_VERSION.unpack_from(data, offset)[0])
                offset += _STAT_VERSION.size
            elif kind == ERROR:
                results.append(ResultError(_INT.unpack_from(data, offset)[0]))
                offset += _INT.size
            elif kind in {DELETE, CHECK}:
                results.append(None)
            else:
                raise ZooKeeperError(f"the response to a transaction has a result of the unknown type {kind}")
        if data[offset:] != _LAST:
            raise ZooKeeperError(
                f"the response to a transaction of {self._count} operations has a wrong number of results"
            )
        return results


def _read_names(data: bytes, offset: int, count: int) -> tuple[list[str], int]:
    names = []
    for _ in range(count):
        length = _INT.unpack_from(data, offset)[0]
        offset += _INT.size
        names.append(data[offset : offset + length].decode())
        offset += length
    return names, offset


def _write_operation(operation: Operation, chroot: str, *, set_acl: bool) -> bytes:
    path = _write_bytes(full_path(chroot, operation.path).encode())
    match operation:
        case Create(data=data, ephemeral=ephemeral, sequential=sequential):
            flags = EPHEMERAL_FLAG * ephemeral | SEQUENTIAL_FLAG * sequential
            acl = acl_bytes(operation.path) if set_acl else OPEN_TO_ALL
            return _HEADER.pack(CREATE, False, -1) + path + _write_bytes(data) + acl + _INT.pack(flags)
        case SetData(data=data, version=version):
            return _HEADER.pack(SET_DATA, False, -1) + path + _write_bytes(data) + _INT.pack(version)
        case Delete(version=version):
            return _HEADER.pack(DELETE, False, -1) + path + _INT.pack(version)
        case Check(version=version):
            return _HEADER.pack(CHECK, False, -1) + path + _INT.pack(version)


def _write_bytes(data: bytes | None) -> bytes:
    return _INT.pack(-1) if data is None else _INT.pack(len(data)) + data

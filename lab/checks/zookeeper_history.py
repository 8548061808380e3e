"""Transaction log of a ZooKeeper server: all writes in their order, with the session that requested each.

A read of the tree shows one moment; the log shows all of them, so that a state that was wrong for a millisecond is found, and the log
shows the session that wrote it. The log is written before a client is answered, and can be read while the server runs; a record that is just being
written is left for the next read. `controller_history` checks the writes.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from lab.jute import CLOSE_SESSION, CREATES, DELETE, MULTI, SET_DATA, Reader

FILE_HEADER_BYTES = 16
"""Magic, version and database id (org.apache.zookeeper.server.persistence.FileHeader)."""

END_OF_RECORD = b"B"

DELETED = None
"""Data of a deleted znode; an empty znode has b""."""


class Write(NamedTuple):
    """One znode's change. Those of one transaction follow each other and have one `zxid`."""

    zxid: int
    session_id: int
    path: str
    data: bytes | None
    """Data of the znode after the write; `DELETED` after its deletion."""
    is_new: bool = False
    """Whether the write created the znode."""


def read_history(data_folder: Path) -> list[Write]:
    """Return all writes in the logs below a server's data folder, oldest first."""
    logs = sorted((data_folder / "version-2").glob("log.*"), key=lambda path: int(path.suffix[1:], 16))
    return [write for log in logs for record in _records(log) for write in _writes(record)]


def _records(log: Path) -> Iterator[bytes]:
    """Yield the records of one file: a checksum, a byte string and the letter B each; zeros fill what is not used yet."""
    reader = Reader(log.read_bytes(), FILE_HEADER_BYTES)
    while reader.offset + 12 < len(reader.data):
        reader.int64()
        record = reader.buffer()
        end = reader.data[reader.offset : reader.offset + 1]
        reader.offset += 1
        if not record or end != END_OF_RECORD:
            return
        yield record


def _writes(record: bytes) -> Iterator[Write]:
    reader = Reader(record)
    session_id, _, zxid, _, kind = reader.int64(), reader.int32(), reader.int64(), reader.int64(), reader.int32()
    if kind == MULTI:
        for _ in range(reader.int32()):
            of_one = reader.int32()
            yield from _change(zxid, session_id, of_one, Reader(reader.buffer() or b""))
    else:
        yield from _change(zxid, session_id, kind, reader)


def _change(zxid: int, session_id: int, kind: int, body: Reader) -> Iterator[Write]:
    """Yield what one operation did: nothing for a check, and for one that failed."""
    if kind in CREATES:
        yield Write(zxid, session_id, body.text(), body.buffer() or b"", is_new=True)
    elif kind == SET_DATA:
        yield Write(zxid, session_id, body.text(), body.buffer() or b"")
    elif kind == DELETE:
        yield Write(zxid, session_id, body.text(), DELETED)
    elif kind == CLOSE_SESSION and body.offset < len(body.data):
        # The session's ephemeral znodes were deleted; the record names them.
        for _ in range(body.int32()):
            yield Write(zxid, session_id, body.text(), DELETED)

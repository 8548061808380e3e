"""Reading of Jute, ZooKeeper's encoding: integers, byte strings, texts and access lists, all big-endian.

An incomplete record raises `struct.error` or `IndexError`; the lab reads only what ZooKeeper wrote.
"""

from __future__ import annotations

import struct

CREATE, DELETE, SET_DATA, CHECK, MULTI, CREATE_2, CREATE_CONTAINER, CREATE_TTL = 1, 2, 5, 13, 14, 15, 19, 21
CREATE_SESSION, CLOSE_SESSION, ERROR = -10, -11, -1
"""ZooKeeper's opcodes (ZooDefs.OpCode), as its requests and its transaction log carry them."""

CREATES = frozenset({CREATE, CREATE_2, CREATE_CONTAINER, CREATE_TTL})


class Reader:
    """Reads values one after another out of `data`, from `offset` on."""

    def __init__(self, data: bytes, offset: int = 0) -> None:
        self.data = data
        self.offset = offset

    def int32(self) -> int:
        """Read four bytes."""
        return self._number(">i", 4)

    def int64(self) -> int:
        """Read eight bytes."""
        return self._number(">q", 8)

    def boolean(self) -> bool:
        """Read one byte."""
        return bool(self._number(">b", 1))

    def buffer(self) -> bytes | None:
        """Read a byte string behind its length; None for a length of -1."""
        length = self.int32()
        if length < 0:
            return None
        self.offset += length
        return self.data[self.offset - length : self.offset]

    def text(self) -> str:
        """Read a text; an absent one is empty."""
        return (self.buffer() or b"").decode()

    def skip_acl(self) -> None:
        """Pass over an access list."""
        for _ in range(self.int32()):
            self.int32()
            self.buffer()
            self.buffer()

    def _number(self, form: str, size: int) -> int:
        (value,) = struct.unpack_from(form, self.data, self.offset)
        self.offset += size
        return int(value)

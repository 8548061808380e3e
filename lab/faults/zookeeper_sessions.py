"""Immediate end of another client's ZooKeeper session, by its number: the same as an expiry for its owner, without the wait.

A server stores no passwords: it computes a session's password from its number (ZooKeeperServer.generatePasswd), and so does this
module.
"""

from __future__ import annotations

import socket
import struct

from lab.errors import LabError
from lab.frames import receive_frame, send_frame
from lab.jute import CLOSE_SESSION, Reader

TIMEOUT_S = 10.0
SECRET = 0xB3415C00
"""ZooKeeperServer.superSecret, a public constant."""
MULTIPLIER, INCREMENT, MASK = 0x5DEECE66D, 0xB, (1 << 48) - 1
"""java.util.Random's."""
PASSWORD_BYTES = 16
ASKED_TIMEOUT_MS = 10_000
TRIES = 5
"""The session's owner reconnects at once, which closes this connection; it comes later than this client."""


def password_of(session_id: int) -> bytes:
    """Return a session's password: bytes of java.util.Random, seeded with its number and ZooKeeper's constant."""
    seed = (session_id ^ SECRET ^ MULTIPLIER) & MASK
    password = b""
    while len(password) < PASSWORD_BYTES:
        seed = (seed * MULTIPLIER + INCREMENT) & MASK
        password += struct.pack("<I", (seed >> 16) & 0xFFFFFFFF)
    return password


def end_session(port: int, session_id: int) -> None:
    """End a session of the server at this port of 127.0.0.1; nothing happens if it has already ended."""
    for _ in range(TRIES):
        if _end(port, session_id):
            return
    raise LabError(f"failed to end session {session_id:#x} of the ZooKeeper at port {port}")


def _end(port: int, session_id: int) -> bool:
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=TIMEOUT_S) as connection:
            head = struct.pack(">iqiqi", 0, 0, ASKED_TIMEOUT_MS, session_id, PASSWORD_BYTES)
            send_frame(connection, head + password_of(session_id) + b"\0")
            received = receive_frame(connection)
            if received is None:
                return False
            answer = Reader(received)
            answer.int32()
            if answer.int32() == 0:  # the time-out that a session gets that is over
                return True
            send_frame(connection, struct.pack(">ii", 1, CLOSE_SESSION))
            return receive_frame(connection) is not None
    except OSError:
        return False

"""Free TCP ports that stay free until the process that they are for has bound them, across any number of parallel runs.

A port that the kernel gives out for port 0 is free again when the socket closes. Here a port is taken from below the range that the
kernel gives out, and reserved by a lock on a file with its number; the lock ends with this process. So a restarted process finds its
port again. Other programs with fixed ports in the same range are noticed only if they listen already.
"""

from __future__ import annotations

import fcntl
import os
import random
import socket
import tempfile
from pathlib import Path

from lab.errors import LabError

LOWEST_PORT = 15000
"""Above the well-known services' ports (ZooKeeper 2181, etcd 2379, Kafka 9092, metrics 9xxx)."""

HIGHEST_PORT = 32767
"""Linux uses 32768 and above for outgoing connections by default."""

ATTEMPTS = 1000
"""Many times the ports that a lab uses at once, few enough to fail at once when something is wrong."""

_reserved: dict[int, int] = {}
"""Port -> descriptor of its locked file; open for the life of this process."""


def free_port() -> int:
    """Reserve one port on 127.0.0.1 for this process and return it."""
    generator = random.SystemRandom()
    for _ in range(ATTEMPTS):
        port = generator.randint(LOWEST_PORT, HIGHEST_PORT)
        if port not in _reserved and _reserve(port):
            return port
    raise LabError(f"no free port between {LOWEST_PORT} and {HIGHEST_PORT} after {ATTEMPTS} attempts")


def release_port(port: int) -> None:
    """Give a port back; a port that was never reserved is ignored."""
    descriptor = _reserved.pop(port, None)
    if descriptor is not None:
        os.close(descriptor)


def _reserve(port: int) -> bool:
    folder = Path(tempfile.gettempdir()) / f"kafka-steward-ports-{os.getuid()}"
    folder.mkdir(mode=0o700, exist_ok=True)
    descriptor = os.open(folder / str(port), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
            # A connection of an earlier run that lingers must not count as a listener.
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind(("127.0.0.1", port))
    except OSError:
        os.close(descriptor)
        return False
    _reserved[port] = descriptor
    return True

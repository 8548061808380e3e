"""ZooKeeper's own ACLs of the znodes that we create, as Kafka writes them with and without zookeeper.set.acl.

Source: ZkData.defaultAcls, ZooDefs.Ids. Left out: Kafka's ACLs, which are data (formats.acls).
"""

import struct

READ, ALL = 1, 31

_COUNT = struct.Struct("!i")


def _entry(permissions: int, scheme: bytes, who: bytes) -> bytes:
    return struct.pack(f"!ii{len(scheme)}si{len(who)}s", permissions, len(scheme), scheme, len(who), who)


_READ_BY_ALL = _entry(READ, b"world", b"anyone")
_OURS = _entry(ALL, b"auth", b"")
"""Whoever this connection has shown to be; ZooKeeper refuses it (InvalidACL) where it has shown nothing."""

OPEN_TO_ALL = _COUNT.pack(1) + _entry(ALL, b"world", b"anyone")
"""Everybody may do everything, which is what Kafka writes unless zookeeper.set.acl is on."""
_OURS_AND_READ_BY_ALL = _COUNT.pack(2) + _OURS + _READ_BY_ALL
_OURS_ALONE = _COUNT.pack(1) + _OURS

SENSITIVE = ("/config/users", "/config/brokers", "/delegation_token/tokens")
"""What begins so holds secrets, and nobody else may read it."""
OLD_CONSUMERS = "/consumers"
"""Written by consumers of before Kafka 0.9, each under a name of its own, so it is open always."""


def acl_bytes(path: str) -> bytes:
    """Return the ACLs of a new znode as ZooKeeper's protocol has them; `path` is below the chroot."""
    if path == OLD_CONSUMERS:
        return OPEN_TO_ALL
    return _OURS_ALONE if path.startswith(SENSITIVE) else _OURS_AND_READ_BY_ALL

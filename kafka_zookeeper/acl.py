"""ZooKeeper ACLs of new znodes, as Kafka writes them with and without zookeeper.set.acl.

Source: ZkData.defaultAcls, ZooDefs.Ids. formats.acls has Kafka's ACLs.
"""

import struct

READ, ALL = 1, 31

_COUNT = struct.Struct("!i")


def _entry(permissions: int, scheme: bytes, identity: bytes) -> bytes:
    return struct.pack(f"!ii{len(scheme)}si{len(identity)}s", permissions, len(scheme), scheme, len(identity), identity)


_READ_BY_ALL = _entry(READ, b"world", b"anyone")
_CREATOR_ALL = _entry(ALL, b"auth", b"")
"""The identity of the connection; ZooKeeper rejects it (InvalidACL) on an unauthenticated connection."""

OPEN_TO_ALL = _COUNT.pack(1) + _entry(ALL, b"world", b"anyone")
"""All permissions for everyone, which is what Kafka writes unless zookeeper.set.acl is on."""
_CREATOR_ALL_AND_READ_BY_ALL = _COUNT.pack(2) + _CREATOR_ALL + _READ_BY_ALL
_CREATOR_ONLY = _COUNT.pack(1) + _CREATOR_ALL

SENSITIVE = ("/config/users", "/config/brokers", "/delegation_token/tokens")
"""Prefixes of paths with secrets, which only the creator may read."""
OLD_CONSUMERS = "/consumers"
"""Written by consumers from before Kafka 0.9, each with its own identity, so it is always open."""


def acl_bytes(path: str) -> bytes:
    """Return the encoded ACLs of a new znode; `path` is without the chroot."""
    if path == OLD_CONSUMERS:
        return OPEN_TO_ALL
    return _CREATOR_ONLY if path.startswith(SENSITIVE) else _CREATOR_ALL_AND_READ_BY_ALL

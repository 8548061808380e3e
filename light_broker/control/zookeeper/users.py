"""ACLs and SCRAM credentials that a broker reads from ZooKeeper.

All of them are read again when a notification reports a change: a multi-read takes microseconds for each znode. ACLs that cannot be
decoded deny their resource to all but super users. Source: AclAuthorizer, ZkConfigManager.
"""

import logging
from collections.abc import Mapping

from kafka_node.authorization import acl
from kafka_node.authorization.acls import Acls
from kafka_wire.sasl.scram_keys import SCRAM_MECHANISMS, ScramCredential, decode_credential
from kafka_zookeeper import formats, paths
from kafka_zookeeper.formats import EntityType, FormatError
from kafka_zookeeper.session import Node, ZooKeeperSession

log = logging.getLogger(__name__)

KINDS = (acl.PatternType.LITERAL, acl.PatternType.PREFIXED)


async def read_acls(session: ZooKeeperSession) -> Acls:
    """Read all ACLs. Raises ZooKeeperError."""
    kinds = [(resource_type, kind) for resource_type in acl.RESOURCE_TYPES for kind in KINDS]
    parents = [
        paths.acls_of_type(resource_type.label, prefixed=kind is acl.PatternType.PREFIXED)
        for resource_type, kind in kinds
    ]
    names = await session.multi_children(parents)
    found = [
        (acl.Pattern(resource_type, name, kind), paths.child(parent, name))
        for (resource_type, kind), parent, children in zip(kinds, parents, names, strict=True)
        for name in children or ()
    ]
    nodes = await session.multi_get([path for _, path in found])
    return Acls({pattern: _entries(path, node) for (pattern, path), node in zip(found, nodes, strict=True)})


def _entries(path: str, node: Node | None) -> frozenset[acl.Entry]:
    try:
        decoded = formats.decode_acls(path, None if node is None else node.data)
    except FormatError as error:
        log.error(
            "Failed to decode ACLs; denying access to their resource for all but super users",
            extra={"error": str(error)},
        )
        return frozenset({acl.LOCKED})
    return frozenset(
        acl.Entry.of_labels(binding.principal, binding.host, binding.operation, binding.permission)
        for binding in decoded
    )


async def read_credentials(session: ZooKeeperSession) -> Mapping[str, Mapping[str, ScramCredential]]:
    """Read the SCRAM credentials of all users, by mechanism and user. Raises ZooKeeperError."""
    parent = f"{paths.CONFIG}/{EntityType.USERS}"
    names = await session.children(parent) or []
    user_paths = [paths.child(parent, name) for name in names]
    credentials: dict[str, dict[str, ScramCredential]] = {mechanism: {} for mechanism in SCRAM_MECHANISMS}
    for name, path, node in zip(names, user_paths, await session.multi_get(user_paths), strict=True):
        user = formats.desanitize(name)
        for mechanism, text in _config(path, node).items():
            if mechanism in credentials:
                try:
                    credentials[mechanism][user] = decode_credential(text)
                except ValueError as error:
                    log.error("Ignoring a malformed SCRAM credential", extra={"user": user, "error": str(error)})
    return credentials


def _config(path: str, node: Node | None) -> Mapping[str, str]:
    try:
        return formats.decode_config(path, None if node is None else node.data)
    except FormatError as error:
        log.error("Ignoring malformed configs", extra={"error": str(error)})
        return {}

"""The model's ACLs to and from what stands in znodes. Leaves out reading and writing them (keeper)."""

from collections.abc import Iterable

from kafka_node.authorization.acl import Entry, Operation, Pattern, PatternType, Permission, ResourceType
from kafka_node.authorization.acls import Entries
from kafka_zookeeper import formats, paths
from kafka_zookeeper.formats import AclEntry, AclResource
from kafka_zookeeper.session import Node

_OPERATIONS = {each.label: each for each in Operation}
_PERMISSIONS = {each.label: each for each in Permission}
_TYPES = {each.label: each for each in ResourceType}

TYPES = tuple(each for each in ResourceType if each > ResourceType.ANY)
"""The types that have ACLs."""


def is_prefixed(pattern: Pattern) -> bool:
    """Tell which of the two trees a pattern is in."""
    return pattern.pattern_type is PatternType.PREFIXED


def path_of(pattern: Pattern) -> str:
    """Name a pattern's znode; ValueError for a name that no znode can have."""
    return paths.acls(pattern.resource_type.label, pattern.name, prefixed=is_prefixed(pattern))


def parent_of(pattern: Pattern) -> str:
    """Name the znode above a pattern's."""
    return paths.acls_of_type(pattern.resource_type.label, prefixed=is_prefixed(pattern))


def read_entries(pattern: Pattern, node: Node | None) -> Entries:
    """Read a pattern's entries; FormatError where nobody can tell what they are."""
    found = formats.decode_acls(path_of(pattern), None if node is None else node.data)
    return frozenset(
        Entry(each.principal, each.host, _OPERATIONS[each.operation], _PERMISSIONS[each.permission]) for each in found
    )


def write_entries(entries: Iterable[Entry]) -> bytes:
    """Write entries."""
    return formats.encode_acls(
        AclEntry(each.principal, each.permission.label, each.operation.label, each.host) for each in entries
    )


def write_change(pattern: Pattern) -> bytes:
    """Write the notice that a pattern's ACLs have changed."""
    return formats.encode_acl_change(AclResource(pattern.resource_type.label, pattern.name, pattern.pattern_type.name))


def read_change(name: str, node: Node, *, prefixed: bool) -> Pattern:
    """Read whose ACLs have changed; FormatError."""
    decode = formats.decode_extended_acl_change if prefixed else formats.decode_acl_change
    found = decode(name, node.data)
    return Pattern(_TYPES[found.resource_type], found.name, PatternType[found.pattern_type])

"""Plain twin of `authorizer.authorize`: it compares every ACL by the definitions of KIP-11 and KIP-290."""

from collections.abc import Mapping
from collections.abc import Set as AbstractSet

from kafka_node.authorization.acl import (
    IMPLIED_BY,
    Entry,
    Operation,
    Pattern,
    PatternFilter,
    PatternType,
    Permission,
    ResourceType,
)
from kafka_node.authorization.authorizer import Rules


def may(
    acls: Mapping[Pattern, AbstractSet[Entry]],
    rules: Rules,
    principal: str,
    host: str,
    operation: Operation,
    resource_type: ResourceType,
    name: str,
) -> bool:
    """Whether an operation is allowed."""
    resource = PatternFilter(resource_type, name, PatternType.MATCH)
    matching = [entry for pattern, entries in acls.items() if resource.matches(pattern) for entry in entries]

    def has_entry(permission: Permission, operations: AbstractSet[Operation]) -> bool:
        return any(
            entry.permission is permission
            and entry.operation in operations
            and entry.principal in (principal, "User:*")
            and entry.host in (host, "*")
            for entry in matching
        )

    if principal in rules.super_users:
        return True
    if not matching:
        return rules.allow_everyone_if_no_acl
    if has_entry(Permission.DENY, {operation, Operation.ALL}):
        return False
    return has_entry(Permission.ALLOW, {operation, Operation.ALL, *IMPLIED_BY.get(operation, ())})

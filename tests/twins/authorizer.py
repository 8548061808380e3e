"""The plain twin of `authorizer.authorize`: it compares every ACL, by the words of KIP-11 and KIP-290."""

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
    """Tell whether it is allowed."""
    asked = PatternFilter(resource_type, name, PatternType.MATCH)
    guarding = [entry for pattern, entries in acls.items() if asked.matches(pattern) for entry in entries]

    def said(permission: Permission, operations: AbstractSet[Operation]) -> bool:
        return any(
            entry.permission is permission
            and entry.operation in operations
            and entry.principal in (principal, "User:*")
            and entry.host in (host, "*")
            for entry in guarding
        )

    if principal in rules.super_users:
        return True
    if not guarding:
        return rules.allow_everyone_if_no_acl
    if said(Permission.DENY, {operation, Operation.ALL}):
        return False
    return said(Permission.ALLOW, {operation, Operation.ALL, *IMPLIED_BY.get(operation, ())})

"""Authorization by Kafka's rules over its ACLs, fast for many ACLs.

Rules, in this order: a super user may do everything; a resource without any ACL is open to all or to none, as
`allow.everyone.if.no.acl.found` specifies; a denial that matches counts more than any permission; a permission that matches, or one
that implies the operation, allows; all else is denied.

Source: kafka.security.authorizer.AclAuthorizer, Authorizer.authorizeByResourceType (KIP-679). The plain twin is
`tests/twins/authorizer.py`. The module table lists the operations that a request needs.
"""

from dataclasses import dataclass

from kafka_node.authorization.acl import (
    IMPLIED_BY,
    WILDCARD,
    WILDCARD_PRINCIPAL,
    Entry,
    Operation,
    Pattern,
    PatternType,
    Permission,
    ResourceType,
)
from kafka_node.authorization.acls import Acls


@dataclass(frozen=True, slots=True)
class Rules:
    """Settings in addition to the ACLs."""

    super_users: frozenset[str] = frozenset()
    allow_everyone_if_no_acl: bool = False


@dataclass(frozen=True, slots=True)
class Allowed:
    """The operation is allowed, with the reason."""

    reason: str

    def __bool__(self) -> bool:
        """Be true."""
        return True


@dataclass(frozen=True, slots=True)
class Denied:
    """The operation is denied, with the reason."""

    reason: str

    def __bool__(self) -> bool:
        """Be false."""
        return False


Verdict = Allowed | Denied


def concerns(entry: Entry, principal: str, host: str) -> bool:
    """Return whether an entry applies to a principal at a host."""
    return entry.principal in {principal, WILDCARD_PRINCIPAL} and entry.host in {host, WILDCARD}


def allows(entry: Entry, operation: Operation) -> bool:
    """Return whether an entry allows an operation."""
    granted = entry.operation in {operation, Operation.ALL} or entry.operation in IMPLIED_BY.get(operation, ())
    return granted and entry.permission is Permission.ALLOW


def denies(entry: Entry, operation: Operation) -> bool:
    """Return whether an entry denies an operation."""
    return entry.permission is Permission.DENY and entry.operation in {operation, Operation.ALL}


def authorize(
    acls: Acls, rules: Rules, principal: str, host: str, operation: Operation, resource_type: ResourceType, name: str
) -> Verdict:
    """Judge one operation on one resource, named by its literal name; `principal` is TYPE:NAME."""
    if principal in rules.super_users:
        return Allowed("a super user")
    guarding = acls.guarding(resource_type, name)
    if not guarding:
        reason = "no ACL guards the resource"
        return Allowed(reason) if rules.allow_everyone_if_no_acl else Denied(reason)
    about = [entry for entries in guarding for entry in entries if concerns(entry, principal, host)]
    for entry in about:
        if denies(entry, operation):
            return Denied(f"an ACL denies {entry.operation.name} to {entry.principal} from {entry.host}")
    for entry in about:
        if allows(entry, operation):
            return Allowed(f"an ACL allows {entry.operation.name} to {entry.principal} from {entry.host}")
    return Denied("no ACL of the resource allows it")


def authorize_any(
    acls: Acls, rules: Rules, principal: str, host: str, operation: Operation, resource_type: ResourceType
) -> Verdict:
    """Judge whether there can be a resource of the type that the operation is allowed on (KIP-679).

    As in Kafka, an operation that implies this one does not count, and with allow_everyone_if_no_acl only a denial on all
    resources counts.
    """
    if principal in rules.super_users:
        return Allowed("a super user")
    literal, prefixed = _named(acls, principal, host, operation, resource_type, Permission.DENY)
    if WILDCARD in literal:
        return Denied("an ACL denies it on every resource")
    if rules.allow_everyone_if_no_acl:
        return Allowed("resources without an ACL are open to all")
    allowed, allowed_prefixes = _named(acls, principal, host, operation, resource_type, Permission.ALLOW)
    open_names = {name for name in allowed if name == WILDCARD or name not in literal}
    for name in open_names | allowed_prefixes:
        if name == WILDCARD and name in allowed:
            return Allowed("an ACL allows it on every resource")
        if not any(name[:length] in prefixed for length in range(1, len(name) + 1)):
            return Allowed(f"an ACL allows it on {name}")
    return Denied("no ACL allows it on any resource")


def _named(
    acls: Acls, principal: str, host: str, operation: Operation, resource_type: ResourceType, permission: Permission
) -> tuple[set[str], set[str]]:
    """Find the literal names and the prefixes that have an entry with a permission for an operation."""
    found: tuple[set[str], set[str]] = (set(), set())
    for pattern, entries in acls.patterns(resource_type):
        for entry in entries:
            if (
                entry.permission is permission
                and entry.operation in {operation, Operation.ALL}
                and concerns(entry, principal, host)
            ):
                found[pattern.pattern_type is PatternType.PREFIXED].add(pattern.name)
    return found


def authorize_all(
    acls: Acls, rules: Rules, principal: str, host: str, operation: Operation, resource_type: ResourceType
) -> Verdict:
    """Judge whether the operation is allowed on every resource of the type: no ACL may deny it on any name.

    For requests whose response contains resources that are not known in advance. Kafka has no such check: it filters its responses.
    """
    if principal in rules.super_users:
        return Allowed("a super user")
    known = [entries for _, entries in acls.patterns(resource_type)]
    if not known and rules.allow_everyone_if_no_acl:
        return Allowed("no ACL guards any resource of the type")
    if any(denies(entry, operation) for entries in known for entry in entries if concerns(entry, principal, host)):
        return Denied("an ACL denies it on some resources")
    every = acls.of(Pattern(resource_type, WILDCARD))
    if any(allows(entry, operation) for entry in every if concerns(entry, principal, host)):
        return Allowed("an ACL allows it on every resource")
    return Denied("no ACL allows it on every resource")

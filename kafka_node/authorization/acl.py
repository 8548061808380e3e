"""Kafka's ACL model: patterns of resources, entries that allow or deny operations on them, and filters.

Numbers are those of the wire (ResourceType, PatternType, AclOperation and AclPermissionType of kafka-clients), labels those of the
znodes and of `kafka-acls` (SecurityUtils). The module authorizer decides by ACLs.
"""

from dataclasses import dataclass
from enum import IntEnum

WILDCARD = "*"
"""As a literal resource's name: every resource of the type; as a host: every host."""
WILDCARD_PRINCIPAL = "User:*"
ANONYMOUS = "User:ANONYMOUS"
"""The principal of a caller without authentication (KafkaPrincipal.ANONYMOUS)."""
CLUSTER_NAME = "kafka-cluster"
"""The only name of a CLUSTER resource."""


class _Labelled(IntEnum):
    @property
    def label(self) -> str:
        """The name in znodes: `TransactionalId` of TRANSACTIONAL_ID."""
        return "".join(word.capitalize() for word in self.name.split("_"))


class ResourceType(_Labelled):
    """Types of protected resources."""

    UNKNOWN = 0
    ANY = 1
    TOPIC = 2
    GROUP = 3
    CLUSTER = 4
    TRANSACTIONAL_ID = 5
    DELEGATION_TOKEN = 6
    USER = 7


class PatternType(_Labelled):
    """How a pattern's name is compared; only filters have MATCH and ANY (KIP-290)."""

    UNKNOWN = 0
    ANY = 1
    MATCH = 2
    LITERAL = 3
    PREFIXED = 4


class Operation(_Labelled):
    """Operations on resources."""

    UNKNOWN = 0
    ANY = 1
    ALL = 2
    READ = 3
    WRITE = 4
    CREATE = 5
    DELETE = 6
    ALTER = 7
    DESCRIBE = 8
    CLUSTER_ACTION = 9
    DESCRIBE_CONFIGS = 10
    ALTER_CONFIGS = 11
    IDEMPOTENT_WRITE = 12
    CREATE_TOKENS = 13
    DESCRIBE_TOKENS = 14


class Permission(_Labelled):
    """Effect of an entry. Only filters have ANY."""

    UNKNOWN = 0
    ANY = 1
    DENY = 2
    ALLOW = 3


RESOURCE_TYPES = tuple(resource_type for resource_type in ResourceType if resource_type > ResourceType.ANY)
"""Resource types that have ACLs."""
_OPERATIONS = {operation.label: operation for operation in Operation}
_PERMISSIONS = {permission.label: permission for permission in Permission}

IMPLIED_BY: dict[Operation, frozenset[Operation]] = {
    Operation.DESCRIBE: frozenset({Operation.READ, Operation.WRITE, Operation.DELETE, Operation.ALTER}),
    Operation.DESCRIBE_CONFIGS: frozenset({Operation.ALTER_CONFIGS}),
}
"""Operations that imply the first where they are allowed. A denial implies nothing."""


@dataclass(frozen=True, slots=True, order=True)
class Pattern:
    """The resources that entries are for: `resource_type` is neither ANY nor UNKNOWN, `pattern_type` LITERAL or PREFIXED."""

    resource_type: ResourceType
    name: str
    pattern_type: PatternType = PatternType.LITERAL


@dataclass(frozen=True, slots=True, order=True)
class Entry:
    """One line of an ACL. `principal` is TYPE:NAME, `host` an address or `*`."""

    principal: str
    host: str
    operation: Operation
    permission: Permission

    @classmethod
    def of_labels(cls, principal: str, host: str, operation: str, permission: str) -> "Entry":
        """Return an entry by the labels of its operation and its permission. Raises KeyError for others."""
        return cls(principal, host, _OPERATIONS[operation], _PERMISSIONS[permission])


LOCKED = Entry(WILDCARD_PRINCIPAL, WILDCARD, Operation.ALL, Permission.DENY)
"""Entry in place of those that cannot be decoded: only super users have access."""


@dataclass(frozen=True, slots=True, order=True)
class Binding:
    """An entry with its pattern."""

    pattern: Pattern
    entry: Entry


@dataclass(frozen=True, slots=True)
class PatternFilter:
    """Selects patterns; a name of None selects all names."""

    resource_type: ResourceType = ResourceType.ANY
    name: str | None = None
    pattern_type: PatternType = PatternType.ANY

    def matches(self, pattern: Pattern) -> bool:
        """Return whether the filter selects a pattern; MATCH selects those that apply to a resource of the filter's name."""
        if self.resource_type not in {ResourceType.ANY, pattern.resource_type}:
            return False
        if self.pattern_type not in {PatternType.ANY, PatternType.MATCH, pattern.pattern_type}:
            return False
        if self.name is None or self.name == pattern.name:
            return True
        if self.pattern_type is not PatternType.MATCH:
            return False
        if pattern.pattern_type is PatternType.PREFIXED:
            return self.name.startswith(pattern.name)
        return pattern.name == WILDCARD


@dataclass(frozen=True, slots=True)
class EntryFilter:
    """Selects entries; None selects all."""

    principal: str | None = None
    host: str | None = None
    operation: Operation = Operation.ANY
    permission: Permission = Permission.ANY

    def matches(self, entry: Entry) -> bool:
        """Return whether the filter selects an entry; a wildcard in an entry is compared literally."""
        return (
            self.principal in {None, entry.principal}
            and self.host in {None, entry.host}
            and self.operation in {Operation.ANY, entry.operation}
            and self.permission in {Permission.ANY, entry.permission}
        )


@dataclass(frozen=True, slots=True)
class BindingFilter:
    """Selects bindings."""

    pattern: PatternFilter = PatternFilter()
    entry: EntryFilter = EntryFilter()

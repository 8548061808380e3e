"""Kafka's ACL model: which principal, from which host, may do what to which resources.

Numbers are those of the wire (ResourceType, PatternType, AclOperation and AclPermissionType of kafka-clients), labels those of the
znodes and of `kafka-acls` (SecurityUtils). Leaves out judging a question by ACLs (authorizer) and where ACLs are kept.
"""

from dataclasses import dataclass
from enum import IntEnum

WILDCARD = "*"
"""As a literal resource's name: every resource of the type; as a host: every host."""
WILDCARD_PRINCIPAL = "User:*"
ANONYMOUS = "User:ANONYMOUS"
"""Who has not said who he is (KafkaPrincipal.ANONYMOUS)."""
CLUSTER_NAME = "kafka-cluster"
"""The one name that a CLUSTER resource has."""


class _Labelled(IntEnum):
    @property
    def label(self) -> str:
        """The name in znodes: `TransactionalId` of TRANSACTIONAL_ID."""
        return "".join(word.capitalize() for word in self.name.split("_"))


class ResourceType(_Labelled):
    """What there is to be guarded."""

    UNKNOWN = 0
    ANY = 1
    TOPIC = 2
    GROUP = 3
    CLUSTER = 4
    TRANSACTIONAL_ID = 5
    DELEGATION_TOKEN = 6
    USER = 7


class PatternType(_Labelled):
    """How a pattern's name is compared; MATCH and ANY belong to filters alone (KIP-290)."""

    UNKNOWN = 0
    ANY = 1
    MATCH = 2
    LITERAL = 3
    PREFIXED = 4


class Operation(_Labelled):
    """What is done."""

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
    """What an entry says. ANY belongs to filters alone."""

    UNKNOWN = 0
    ANY = 1
    DENY = 2
    ALLOW = 3


IMPLIED_BY: dict[Operation, frozenset[Operation]] = {
    Operation.DESCRIBE: frozenset({Operation.READ, Operation.WRITE, Operation.DELETE, Operation.ALTER}),
    Operation.DESCRIBE_CONFIGS: frozenset({Operation.ALTER_CONFIGS}),
}
"""Whoever is allowed one of these is allowed the first as well. A denial implies nothing."""


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


@dataclass(frozen=True, slots=True, order=True)
class Binding:
    """An entry and what it is for."""

    pattern: Pattern
    entry: Entry


@dataclass(frozen=True, slots=True)
class PatternFilter:
    """Which patterns are meant; a name of None means all names."""

    resource_type: ResourceType = ResourceType.ANY
    name: str | None = None
    pattern_type: PatternType = PatternType.ANY

    def matches(self, pattern: Pattern) -> bool:
        """Tell whether a pattern is meant; by MATCH those are that would guard a resource of the filter's name."""
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
    """Which entries are meant; None means all."""

    principal: str | None = None
    host: str | None = None
    operation: Operation = Operation.ANY
    permission: Permission = Permission.ANY

    def matches(self, entry: Entry) -> bool:
        """Tell whether an entry is meant; a wildcard in an entry is compared as it stands."""
        return (
            self.principal in {None, entry.principal}
            and self.host in {None, entry.host}
            and self.operation in {Operation.ANY, entry.operation}
            and self.permission in {Permission.ANY, entry.permission}
        )


@dataclass(frozen=True, slots=True)
class BindingFilter:
    """Which bindings are meant."""

    pattern: PatternFilter = PatternFilter()
    entry: EntryFilter = EntryFilter()

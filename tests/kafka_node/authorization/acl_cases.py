"""Random ACLs and questions about them, dense enough that denials, prefixes and wildcards meet."""

import random
from dataclasses import dataclass

from kafka_node.authorization.acl import (
    Entry,
    EntryFilter,
    Operation,
    Pattern,
    PatternFilter,
    PatternType,
    Permission,
    ResourceType,
)
from kafka_node.authorization.authorizer import Rules

PRINCIPALS = ["User:alice", "User:bob", "User:*", "Role:alice"]
HOSTS = ["10.0.0.1", "10.0.0.2", "*"]
NAMES = ["a", "ab", "abc", "b", "*", "abd", "é", "a*"]
TYPES = [ResourceType.TOPIC, ResourceType.GROUP]
OPERATIONS = [operation for operation in Operation if operation > Operation.ANY]
FEW = [Operation.READ, Operation.DESCRIBE, Operation.ALTER_CONFIGS, Operation.DESCRIBE_CONFIGS, Operation.ALL]
MAX_ACLS = 8

Question = tuple[str, str, Operation, ResourceType, str]


@dataclass(frozen=True)
class Case:
    """A cluster's ACLs, what is set beside them, and what is asked."""

    acls: tuple[tuple[Pattern, Entry], ...]
    rules: Rules
    questions: tuple[Question, ...]
    filters: tuple[tuple[PatternFilter, EntryFilter], ...]

    def known(self) -> dict[Pattern, frozenset[Entry]]:
        """Give the ACLs by their pattern."""
        patterns = {pattern for pattern, _ in self.acls}
        return {each: frozenset(entry for pattern, entry in self.acls if pattern == each) for each in patterns}


def _acl(chance: random.Random) -> tuple[Pattern, Entry]:
    pattern = Pattern(
        chance.choice(TYPES), chance.choice(NAMES), chance.choice([PatternType.LITERAL, PatternType.PREFIXED])
    )
    permission = chance.choice([Permission.ALLOW, Permission.ALLOW, Permission.DENY])
    return pattern, Entry(
        chance.choice(PRINCIPALS), chance.choice(HOSTS), chance.choice([*FEW, *FEW, *OPERATIONS]), permission
    )


def _question(chance: random.Random) -> Question:
    operation = chance.choice([*FEW[:-1], *FEW[:-1], *OPERATIONS[1:]])
    # The user that is really called "*" is a different matter; nobody can log in by that name.
    return (
        chance.choice(["User:alice", "User:bob", "Role:alice"]),
        chance.choice(HOSTS[:2]),
        operation,
        chance.choice(TYPES),
        chance.choice(NAMES),
    )


def _filter(chance: random.Random) -> tuple[PatternFilter, EntryFilter]:
    patterns = [PatternType.ANY, PatternType.MATCH, PatternType.LITERAL, PatternType.PREFIXED]
    return (
        PatternFilter(
            chance.choice([ResourceType.ANY, *TYPES]), chance.choice([None, *NAMES]), chance.choice(patterns)
        ),
        EntryFilter(
            chance.choice([None, None, *PRINCIPALS]),
            chance.choice([None, None, *HOSTS]),
            chance.choice([Operation.ANY, Operation.ANY, *FEW]),
            chance.choice([Permission.ANY, Permission.ANY, Permission.ALLOW, Permission.DENY]),
        ),
    )


def random_case(chance: random.Random, questions: int = 10) -> Case:
    """Draw a case."""
    acls = dict.fromkeys(_acl(chance) for _ in range(chance.randint(0, MAX_ACLS)))
    super_users = frozenset({"User:bob"} if chance.random() < 0.2 else ())
    return Case(
        tuple(acls),
        Rules(super_users, chance.random() < 0.5),
        tuple(_question(chance) for _ in range(questions)),
        tuple(_filter(chance) for _ in range(3)),
    )

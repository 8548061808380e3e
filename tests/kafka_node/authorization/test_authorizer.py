"""Kafka's ACL model (KIP-11, KIP-290, KIP-679); judged/test_acl_judged.py compares it with Kafka."""

import random

from hypothesis import given
from hypothesis import strategies as st

from kafka_node.authorization.acl import Entry, Operation, Pattern, PatternType, Permission, ResourceType
from kafka_node.authorization.acls import Acls
from kafka_node.authorization.authorizer import Allowed, Denied, Rules, Verdict, authorize, authorize_all
from tests.kafka_node.authorization.acl_cases import random_case
from tests.twins.authorizer import may

ALICE = "User:alice"
HERE = "10.0.0.1"
DEFAULT_RULES = Rules()


def allow(operation: Operation, principal: str = ALICE, host: str = "*") -> Entry:
    """An entry that allows."""
    return Entry(principal, host, operation, Permission.ALLOW)


def deny(operation: Operation, principal: str = ALICE, host: str = "*") -> Entry:
    """An entry that denies."""
    return Entry(principal, host, operation, Permission.DENY)


def topic(name: str, pattern_type: PatternType = PatternType.LITERAL) -> Pattern:
    """A pattern of topics."""
    return Pattern(ResourceType.TOPIC, name, pattern_type)


def ask(
    acls: dict[Pattern, set[Entry]], operation: Operation, name: str = "orders", rules: Rules = DEFAULT_RULES
) -> Verdict:
    """Authorize an operation of alice."""
    return authorize(Acls(acls), rules, ALICE, HERE, operation, ResourceType.TOPIC, name)


@given(st.integers(0, 2**32))
def test_index_agrees_with_plain_twin(seed: int) -> None:
    """The plain twin reads every ACL."""
    case = random_case(random.Random(seed), questions=20)
    acls = Acls(case.known())

    for question in case.questions:
        assert may(case.known(), case.rules, *question) == bool(authorize(acls, case.rules, *question))


@given(st.integers(0, 2**32))
def test_removed_acls_have_no_effect(seed: int) -> None:
    """Only the last entries of each pattern count."""
    before, after = random_case(random.Random(seed)), random_case(random.Random(seed + 1))
    acls = Acls(before.known())
    for pattern in before.known():
        acls.put(pattern, ())
    assert list(acls.patterns()) == []
    for pattern, entries in after.known().items():
        acls.put(pattern, entries)

    assert dict(acls.patterns()) == after.known()
    for question in after.questions:
        assert may(after.known(), after.rules, *question) == bool(authorize(acls, after.rules, *question))


@given(st.integers(0, 2**32))
def test_authorize_all_implies_authorize_on_each_name(seed: int) -> None:
    """`authorize_all` never allows more than `authorize` on any name."""
    case = random_case(random.Random(seed), questions=20)
    acls = Acls(case.known())

    for principal, host, operation, resource_type, name in case.questions:
        if authorize_all(acls, case.rules, principal, host, operation, resource_type):
            assert authorize(acls, case.rules, principal, host, operation, resource_type, name)


def test_denial_overrides_permissions() -> None:
    """KIP-11; the result names the ACL."""
    acls = {topic("orders"): {allow(Operation.ALL)}, topic("ord", PatternType.PREFIXED): {deny(Operation.READ)}}

    assert ask(acls, Operation.READ) == Denied("an ACL denies READ to User:alice from *")
    assert ask(acls, Operation.WRITE) == Allowed("an ACL allows ALL to User:alice from *")


def test_allowed_operations_imply_others_and_denied_ones_do_not() -> None:
    """READ, WRITE, DELETE, ALTER imply DESCRIBE; ALTER_CONFIGS implies DESCRIBE_CONFIGS."""
    for operation in (Operation.READ, Operation.WRITE, Operation.DELETE, Operation.ALTER):
        assert ask({topic("orders"): {allow(operation)}}, Operation.DESCRIBE)
    assert ask({topic("orders"): {allow(Operation.ALTER_CONFIGS)}}, Operation.DESCRIBE_CONFIGS)
    assert not ask({topic("orders"): {allow(Operation.READ)}}, Operation.DESCRIBE_CONFIGS)
    assert ask({topic("orders"): {allow(Operation.DESCRIBE), deny(Operation.READ)}}, Operation.DESCRIBE)


def test_resource_without_acl_is_closed_by_default() -> None:
    """allow.everyone.if.no.acl.found considers the ACLs of the resource, not of the principal."""
    everyone = Rules(allow_everyone_if_no_acl=True)
    others = {topic("orders"): {allow(Operation.READ, "User:bob")}}

    assert not ask({}, Operation.READ)
    assert ask({}, Operation.READ, rules=everyone)
    assert not ask(others, Operation.READ, rules=everyone)
    assert ask(others, Operation.READ, "payments", everyone)


def test_super_user_may_do_everything() -> None:
    """super.users: also operations that an ACL denies."""
    assert ask({topic("*"): {deny(Operation.ALL)}}, Operation.READ, rules=Rules(frozenset({ALICE})))

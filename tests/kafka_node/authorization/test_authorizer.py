"""Kafka's ACL model (KIP-11, KIP-290, KIP-679); Kafka's own answers are in judged/test_acl_judged.py."""

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
NOTHING_SET = Rules()


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
    acls: dict[Pattern, set[Entry]], operation: Operation, name: str = "orders", rules: Rules = NOTHING_SET
) -> Verdict:
    """Ask for alice."""
    return authorize(Acls(acls), rules, ALICE, HERE, operation, ResourceType.TOPIC, name)


@given(st.integers(0, 2**32))
def test_the_fast_way_and_the_plain_one_agree(seed: int) -> None:
    """The index answers what a look at every ACL answers."""
    case = random_case(random.Random(seed), questions=20)
    acls = Acls(case.known())

    for question in case.questions:
        assert may(case.known(), case.rules, *question) == bool(authorize(acls, case.rules, *question))


@given(st.integers(0, 2**32))
def test_acls_that_came_and_went_leave_nothing(seed: int) -> None:
    """Whatever was put before, the last entries of each pattern count."""
    before, after = random_case(random.Random(seed)), random_case(random.Random(seed + 1))
    acls = Acls(before.known())
    for pattern in before.known():
        acls.put(pattern, ())
    assert list(acls.patterns()) == []
    for pattern, entries in after.known().items():
        acls.put(pattern, entries)

    assert after.known() == dict(acls.patterns())
    for question in after.questions:
        assert may(after.known(), after.rules, *question) == bool(authorize(acls, after.rules, *question))


@given(st.integers(0, 2**32))
def test_what_is_allowed_on_all_is_allowed_on_each(seed: int) -> None:
    """`authorize_all` is never more generous than a question about any name."""
    case = random_case(random.Random(seed), questions=20)
    acls = Acls(case.known())

    for principal, host, operation, resource_type, name in case.questions:
        if authorize_all(acls, case.rules, principal, host, operation, resource_type):
            assert authorize(acls, case.rules, principal, host, operation, resource_type, name)


def test_a_denial_counts_more_than_any_permission() -> None:
    """KIP-11: and the verdict says by which ACL."""
    acls = {topic("orders"): {allow(Operation.ALL)}, topic("ord", PatternType.PREFIXED): {deny(Operation.READ)}}

    assert ask(acls, Operation.READ) == Denied("an ACL denies READ to User:alice from *")
    assert ask(acls, Operation.WRITE) == Allowed("an ACL allows ALL to User:alice from *")


def test_reading_implies_describing_and_a_denial_implies_nothing() -> None:
    """READ, WRITE, DELETE, ALTER imply DESCRIBE; ALTER_CONFIGS implies DESCRIBE_CONFIGS."""
    for operation in (Operation.READ, Operation.WRITE, Operation.DELETE, Operation.ALTER):
        assert ask({topic("orders"): {allow(operation)}}, Operation.DESCRIBE)
    assert ask({topic("orders"): {allow(Operation.ALTER_CONFIGS)}}, Operation.DESCRIBE_CONFIGS)
    assert not ask({topic("orders"): {allow(Operation.READ)}}, Operation.DESCRIBE_CONFIGS)
    assert ask({topic("orders"): {allow(Operation.DESCRIBE), deny(Operation.READ)}}, Operation.DESCRIBE)


def test_a_resource_without_an_acl_is_closed_unless_set_otherwise() -> None:
    """allow.everyone.if.no.acl.found: of the resource itself, not of the principal."""
    everyone = Rules(allow_everyone_if_no_acl=True)
    others = {topic("orders"): {allow(Operation.READ, "User:bob")}}

    assert not ask({}, Operation.READ)
    assert ask({}, Operation.READ, rules=everyone)
    assert not ask(others, Operation.READ, rules=everyone)
    assert ask(others, Operation.READ, "payments", everyone)


def test_a_super_user_may_do_everything() -> None:
    """super.users: also what an ACL denies."""
    assert ask({topic("*"): {deny(Operation.ALL)}}, Operation.READ, rules=Rules(frozenset({ALICE})))

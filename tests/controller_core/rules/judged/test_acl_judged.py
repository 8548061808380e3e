"""ACLs compared with both authorizers of Kafka 3.9.2: that of ZooKeeper mode and that of KRaft."""

import json
import random
import subprocess
from pathlib import Path
from typing import Any

import pytest

from kafka_node.authorization.acl import Binding, BindingFilter
from kafka_node.authorization.acls import Acls
from kafka_node.authorization.authorizer import authorize, authorize_any
from lab.peers.java_process import java_command
from tests.kafka_node.authorization.acl_cases import Case, random_case

pytestmark = pytest.mark.java

SOURCE = Path(__file__).parent / "java" / "AclJudge.java"
CASES = 4_000
QUESTIONS = 10
JUDGING_TIMEOUT_S = 150


def _written(case: Case) -> str:
    return json.dumps(
        {
            "acls": [[*_pattern(pattern), *_entry(entry)] for pattern, entry in case.acls],
            "super": sorted(case.rules.super_users),
            "everyone": case.rules.allow_everyone_if_no_acl,
            "questions": case.questions,
            "filters": [[*_pattern(pattern), *_entry(entry)] for pattern, entry in case.filters],
        }
    )


def _pattern(pattern: Any) -> list[Any]:
    return [pattern.resource_type, pattern.name, pattern.pattern_type]


def _entry(entry: Any) -> list[Any]:
    return [entry.principal, entry.host, entry.operation, entry.permission]


@pytest.fixture(scope="module")
def judged() -> list[tuple[Case, dict[str, list[Any]]]]:
    """Return cases and Kafka's results for them; the JVM is called once."""
    chance = random.Random(11)
    cases = [random_case(chance, QUESTIONS) for _ in range(CASES)]
    lines = "".join(_written(case) + "\n" for case in cases)
    command = java_command(str(SOURCE), heap="256m", log4j="log4j-tools.properties")
    done = subprocess.run(command, input=lines.encode(), check=True, capture_output=True, timeout=JUDGING_TIMEOUT_S)
    return list(zip(cases, map(json.loads, done.stdout.splitlines()), strict=True))


@pytest.mark.parametrize("judge", ["zookeeper", "standard"])
def test_authorization_results_are_kafkas(judge: str, judged: list[tuple[Case, dict[str, list[Any]]]]) -> None:
    """AclAuthorizer.authorize, StandardAuthorizer.authorize."""
    seen = set()
    for case, answer in judged:
        acls = Acls(case.known())
        for question, expected in zip(case.questions, answer[judge], strict=True):
            assert bool(authorize(acls, case.rules, *question)) == expected, (case, question)
            seen.add(expected)

    assert seen == {True, False}


def test_authorization_by_resource_type_is_kafkas(
    judged: list[tuple[Case, dict[str, list[Any]]]],
) -> None:
    """AclAuthorizer.authorizeByResourceType (KIP-679)."""
    for case, answer in judged:
        acls = Acls(case.known())
        for question, expected in zip(case.questions, answer["any"], strict=True):
            assert bool(authorize_any(acls, case.rules, *question[:4])) == expected, (case, question)


def test_filters_find_the_same_acls_as_kafka(judged: list[tuple[Case, dict[str, list[Any]]]]) -> None:
    """AclAuthorizer.acls."""
    for case, answer in judged:
        acls = Acls(case.known())
        for asked, indexes in zip(case.filters, answer["found"], strict=True):
            expected = sorted(Binding(*case.acls[index]) for index in indexes)
            assert acls.find(BindingFilter(*asked)) == expected, (case, asked)

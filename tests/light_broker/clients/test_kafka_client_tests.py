"""Kafka's own client tests against a light broker: a choice in each run, all in a soak. Exceptions: `exceptions.py`, docs/client-tests.md."""

from pathlib import Path

import pytest

from lab.peers.client_tests import Case, Judged, Outcome, Status, read_report, run_client_tests
from tests.light_broker.clients.exceptions import all_but_excepted, reason_of
from tests.light_broker.clients.page import cases_of_jar, render

CHOICE = (
    "ProducerCompressionTest",
    "PlaintextConsumerAssignTest#testClassicAssignAndFetchCommittedOffsets",
    "PlaintextConsumerAssignTest#testClassicPollAfterTopicDeleted",
)
"""A producer with each codec, committed offsets, and a topic that is deleted under a consumer."""

LIMIT_S = 3_600.0
"""Several times what all cases take on a busy machine."""


@pytest.mark.java
@pytest.mark.shows("F63")
def test_a_choice_of_kafkas_client_tests_passes(tmp_path: Path) -> None:
    """`kafka-clients-integration-tests` of Kafka 4.3.1."""
    outcomes = run_client_tests(Judged.LIGHT, CHOICE, tmp_path, timeout_s=240)

    assert {case: outcome.text for case, outcome in outcomes.items() if outcome.status is not Status.PASSED} == {}
    assert len(outcomes) == len(CHOICE)


@pytest.mark.java
@pytest.mark.timeout(4_000)
@pytest.mark.soak("light_broker/clients/test_kafka_client_tests.py::test_a_choice_of_kafkas_client_tests_passes")
def test_kafkas_client_tests_pass_but_for_the_exceptions(tmp_path: Path) -> None:
    """Each case of `kafka-clients-integration-tests` of Kafka 4.3.1 that is not excepted."""
    cases = {
        name: [Case(name, case) for case in of_class if reason_of(name, case) is None]
        for name, of_class in cases_of_jar().items()
    }
    selected = [all_but_excepted(name) for name, of_class in cases.items() if of_class]

    outcomes = run_client_tests(Judged.LIGHT, selected, tmp_path, timeout_s=LIMIT_S)

    assert {case: outcome.text for case, outcome in outcomes.items() if outcome.status is not Status.PASSED} == {}
    assert sorted(case for of_class in cases.values() for case in of_class if case not in outcomes) == []


def test_a_case_passes_when_each_of_its_invocations_does() -> None:
    """JUnit numbers the invocations of a template."""
    report = """<testsuite>
        <testcase classname="a.ATest" name="mixed(ClusterInstance)[1]"/>
        <testcase classname="a.ATest" name="mixed(ClusterInstance)[2]"><failure>java.lang.Error: no</failure></testcase>
        <testcase classname="a.ATest" name="mixed(ClusterInstance)[3]"/>
        <testcase classname="a.ATest" name="both(ClusterInstance)[1]"/>
        <testcase classname="a.ATest" name="both(ClusterInstance)[2]"/>
        <testcase classname="a.ATest" name="aborted(ClusterInstance)[1]"><skipped>needs more</skipped></testcase>
    </testsuite>"""

    assert read_report(report) == {
        Case("ATest", "mixed"): Outcome(Status.FAILED, "java.lang.Error: no"),
        Case("ATest", "both"): Outcome(Status.PASSED),
        Case("ATest", "aborted"): Outcome(Status.SKIPPED, "needs more"),
    }


def test_the_page_counts_what_passes_and_names_the_reason_of_the_rest() -> None:
    """A case that neither passes nor has a reason is open."""
    passed, failed = Outcome(Status.PASSED), Outcome(Status.FAILED, "no")
    name, cases = "PlaintextConsumerTest", ["testAsyncConsumerSeek", "testClassicConsumerSeek", "testHeaders"]
    kafka = {Case(name, case): passed for case in cases[1:]}
    light = {Case(name, cases[1]): passed, Case(name, cases[2]): failed}

    page = render({name: cases}, kafka, light)

    row = "| `PlaintextConsumerTest` | 3 | 2 | 1 | 1: consumer protocol of KIP-848, not there yet; 1: open |"
    assert row in page.splitlines()
    assert "1 classes with 3 cases; 2 pass against Kafka, 1 against the light broker; 1 are open." in page

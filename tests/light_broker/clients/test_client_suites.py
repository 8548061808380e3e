"""The test suites of librdkafka and franz-go against a light broker, in a soak: what passes against Kafka 4.3 and needs nothing that is left out passes."""

from pathlib import Path

import pytest

from lab.peers.client_suites import Suite, judged_broker, read_go_tests, read_librdkafka_report, run_suite
from lab.peers.client_tests import Judged, Outcome, Status

TRANSACTIONS = "transactions, not there yet"
NEW_GROUPS = "consumer protocol of KIP-848 and share groups, not there yet"
OLD_KAFKA = "fails against Kafka 4.3 as well: it sets segment.bytes below the minimum of a mebibyte"
SOURCES = "reads franz-go's sources, no broker"

EXCEPTED = {
    Suite.LIBRDKAFKA: {
        "0077": OLD_KAFKA,
        "0098": TRANSACTIONS,
        "0103": TRANSACTIONS,
        "0129": TRANSACTIONS,
    },
    Suite.FRANZ_GO: {"TestTxnEtl": TRANSACTIONS, "TestShare": NEW_GROUPS, "TestOptValuesCoversEveryOption": SOURCES},
}
"""Tests that are not run, by a part of their names, with the reasons. franz-go leaves out those for KIP-848 by itself."""

AT_LEAST = {Suite.LIBRDKAFKA: 70, Suite.FRANZ_GO: 30}
"""Tests that pass, at least: a suite that runs hardly any is not a success."""


@pytest.mark.timeout(4_000)
@pytest.mark.shows("F63")
@pytest.mark.soak("light_broker/test_real_clients.py::test_librdkafka_produces_and_consumes_with_each_codec")
@pytest.mark.parametrize("suite", list(Suite))
def test_a_clients_own_tests_pass_but_for_the_exceptions(suite: Suite, tmp_path: Path) -> None:
    """The suites of librdkafka 2.12.1 and franz-go 1.22.3, built from their packages."""
    with judged_broker(Judged.LIGHT) as address:
        outcomes = run_suite(suite, address, tmp_path, skipped=list(EXCEPTED[suite]))

    assert {name: outcome.text for name, outcome in outcomes.items() if outcome.status is Status.FAILED} == {}
    assert sum(outcome.status is Status.PASSED for outcome in outcomes.values()) >= AT_LEAST[suite]


def test_a_report_of_librdkafka_lists_the_result_of_each_test() -> None:
    """Its runner is an entry of its own."""
    report = """{"tests": {
        "<MAIN>": {"state": "FAILED", "extra": ""},
        "0001_multiobj": {"state": "PASSED", "extra": ""},
        "0005_order": {"state": "FAILED", "extra": "", "report": []},
        "0098_consumer_txn": {"state": "SKIPPED", "extra": "included in TESTS_SKIP list"}
    }}"""

    assert read_librdkafka_report(report) == {
        "0001_multiobj": Outcome(Status.PASSED),
        "0005_order": Outcome(Status.FAILED),
        "0098_consumer_txn": Outcome(Status.SKIPPED, "included in TESTS_SKIP list"),
    }


def test_results_of_go_tests_are_read_with_their_subtests() -> None:
    """`go test -v` indents them."""
    text = """=== RUN   TestGroupSimple
    consumer_test.go:953: deleting group
--- PASS: TestGroupSimple (0.00s)
    --- PASS: TestGroupSimple/classic (0.12s)
    --- SKIP: TestGroupSimple/848 (0.00s)
--- FAIL: TestIssue1 (1.00s)
FAIL
"""

    assert {name: outcome.status for name, outcome in read_go_tests(text).items()} == {
        "TestGroupSimple": Status.PASSED,
        "TestGroupSimple/classic": Status.PASSED,
        "TestGroupSimple/848": Status.SKIPPED,
        "TestIssue1": Status.FAILED,
    }

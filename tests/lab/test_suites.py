"""How the two runs of all tests become one verdict."""

import pytest

from lab.suites import names_tests, verdict

OK, FAILED, NONE = pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED, pytest.ExitCode.NO_TESTS_COLLECTED


@pytest.mark.parametrize(
    ("expected", "statuses"),
    [
        (OK, [OK, OK]),
        (FAILED, [OK, FAILED]),
        (FAILED, [FAILED, NONE]),
        (OK, [NONE, OK]),
        (NONE, [NONE, NONE]),
        (-9, [OK, -9]),
    ],
    ids=["both pass", "one fails", "one fails alone", "one passes alone", "nothing chosen", "killed"],
)
def test_a_failure_of_either_run_is_a_failure(expected: int, statuses: list[int]) -> None:
    """And a choice that leaves one run without a test is none."""
    assert expected == verdict(statuses)


@pytest.mark.parametrize(
    ("expected", "arguments"),
    [
        (False, []),
        (False, ["-k", "lab"]),
        (True, ["tests/lab"]),
        (True, ["-x", "tests/lab/test_suites.py::test_a_failure_of_either_run_is_a_failure"]),
    ],
    ids=["all", "by a word", "a folder", "a test"],
)
def test_named_tests_are_one_plain_run(*, expected: bool, arguments: list[str]) -> None:
    """Whoever names a file wants to see its output as pytest prints it."""
    assert expected == names_tests(arguments)

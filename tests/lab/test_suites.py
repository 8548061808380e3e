"""How the runs of all tests become one verdict."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from lab.suites import ROOT, names_tests, parts, verdict

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


def test_each_file_of_tests_is_in_one_run() -> None:
    """None is left out, and none runs twice."""
    runs = [
        {str(path.relative_to(ROOT)) for path in (ROOT / "tests").rglob("test_*.py") if _takes(part.arguments, path)}
        for part in parts()
    ]

    files = {str(path.relative_to(ROOT)) for path in (ROOT / "tests").rglob("test_*.py")}
    assert files == set().union(*runs)
    assert len(files) == sum(map(len, runs))
    assert all(runs)


def _takes(arguments: Sequence[str], path: Path) -> bool:
    ignored = [ROOT / one.removeprefix("--ignore=") for one in arguments if one.startswith("--ignore=")]
    chosen = [ROOT / one for one in arguments if not one.startswith("--")]
    return _below(path, chosen) and not _below(path, ignored)


def _below(path: Path, folders: Sequence[Path]) -> bool:
    return any(path == folder or folder in path.parents for folder in folders)

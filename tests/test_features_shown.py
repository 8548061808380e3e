"""The page on features is true as far as names go: each row says whether it is there, and names tests that are."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
NUMBERS = [*map(str, range(1, 39)), *(f"e{number}" for number in range(1, 16))]
THERE, NOT_THERE = {"yes", "in part"}, {"later", "no"}
_ROW = re.compile(r"^\| (?P<number>e?\d+) \| .+ \| (?P<there>[a-z ]+) \| .+ \|(?P<shown>.*)\|$", re.MULTILINE)
_TEST = re.compile(r"`([^`]+\.py)::([^`]+)`")

ROWS = {
    found["number"]: (found["there"], _TEST.findall(found["shown"]))
    for found in _ROW.finditer((ROOT / "docs" / "features.md").read_text(encoding="utf-8"))
}


@cache
def names_in(path: str) -> set[str]:
    """Read the names of a module's tests; those that it takes over from another module run there, too."""
    if not (ROOT / path).is_file():
        return set()
    tree = ast.parse((ROOT / path).read_text(encoding="utf-8"))
    own = {found.name for found in tree.body if isinstance(found, ast.FunctionDef | ast.AsyncFunctionDef)}
    taken = {alias.name for found in tree.body if isinstance(found, ast.ImportFrom) for alias in found.names}
    return {name for name in own | taken if name.startswith("test_")}


def test_every_feature_is_on_the_page_once() -> None:
    """38 that such operators are compared by, 15 that none had."""
    assert NUMBERS == list(ROWS)


@pytest.mark.parametrize("number", NUMBERS)
def test_a_feature_that_is_there_is_shown_by_tests_that_exist(number: str) -> None:
    """And one that is not there is shown by none."""
    there, named = ROWS[number]

    assert there in THERE | NOT_THERE
    assert bool(named) == (there in THERE)
    assert [] == [f"{path}::{name}" for path, name in named if name not in names_in(path)]

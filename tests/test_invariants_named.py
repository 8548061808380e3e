"""The page on invariants is true: each has tests that name it, and the code that it points at is there."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
INVARIANTS = [*(f"C{number}" for number in range(1, 15)), *(f"O{number}" for number in range(1, 15))]
_SECTION = re.compile(r"^## (?P<title>.+)$", re.MULTILINE)
_CODE = re.compile(r"`([^`]+)`")


def rows(title: str) -> list[list[str]]:
    """Read the cells of a section's table, without its head."""
    _, *parts = _SECTION.split((ROOT / "docs" / "invariants.md").read_text())
    (text,) = (text for found, text in zip(parts[::2], parts[1::2], strict=True) if found == title)
    lines = [line for line in text.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[2:]]


@cache
def docstrings(path: str) -> dict[str, str]:
    """Read the docstrings of a module's tests, by their names."""
    tree = ast.parse((ROOT / path).read_text())
    return {
        found.name: ast.get_docstring(found) or ""
        for found in tree.body
        if isinstance(found, ast.FunctionDef | ast.AsyncFunctionDef)
    }


def named(cell: str) -> tuple[str, str]:
    """Read a test's module and name."""
    ((path, _, name),) = (code.partition("::") for code in _CODE.findall(cell))
    return path, name


LISTED = [(invariant, *named(cell)) for invariant, cell in rows("Tests that hold it")]


def test_every_invariant_is_on_the_page_once() -> None:
    """docs/invariants.md: C1 to C14, O1 to O14."""
    assert INVARIANTS == [row[0] for row in rows("What must hold, and what decides it")]


def test_every_invariant_has_tests() -> None:
    """docs/invariants.md: each test names the invariant's number."""
    assert set(INVARIANTS) == {invariant for invariant, _, _ in LISTED}


@pytest.mark.parametrize(("invariant", "path", "name"), LISTED, ids=[f"{i}-{name}" for i, _, name in LISTED])
def test_a_listed_test_is_there_and_names_its_invariant(invariant: str, path: str, name: str) -> None:
    """A renamed test, or one that became about something else, would leave the invariant without its guard."""
    assert name in docstrings(path), f"{path} has no test {name}"
    assert re.search(rf"\b{invariant}\b", docstrings(path)[name]), f"{name} does not name {invariant}"


def test_what_decides_is_there() -> None:
    """Modules that moved are to be followed."""
    pointed = {path for *_, cell in rows("What must hold, and what decides it") for path in _CODE.findall(cell)}

    assert [] == sorted(path for path in pointed if not (ROOT / path).is_file())


def test_every_defect_that_was_found_is_kept_out_by_a_test() -> None:
    """docs/invariants.md, Found by: a row for each, with its reproduction."""
    found = [(row[0], *named(row[-1])) for row in rows("Found by")]

    assert [] == [name for _, path, name in found if name not in docstrings(path)]
    assert {invariant for invariant, _, _ in found} <= set(INVARIANTS)

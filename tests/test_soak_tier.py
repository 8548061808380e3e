"""Tests that only a soak runs: each names a test of `make test` that shows its rule, and no number of the docs is left to the soak alone."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

from lab.test_runs.shown import marked

ROOT = Path(__file__).resolve().parents[1]

TESTS = ROOT / "tests"

MARK = "pytest.mark.soak"


def shown_by(node: ast.AST) -> Iterator[str]:
    """Yield what the marks below a node name."""
    calls = (call for call in ast.walk(node) if isinstance(call, ast.Call) and ast.unparse(call.func) == MARK)
    yield from (str(ast.literal_eval(call.args[0])) for call in calls)


def left_to_the_soak() -> dict[str, str]:
    """Return the tests that only a soak runs, as `tests/path::name`, and what shows the rule of each; a module's mark holds for all of its tests."""
    found: dict[str, str] = {}
    for path in TESTS.rglob("test_*.py"):
        text = path.read_text(encoding="utf-8")
        if f"{MARK}(" not in text:
            continue
        for node in ast.parse(text).body:
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                found |= {
                    f"{path.relative_to(ROOT)}::{node.name}": number
                    for decorator in node.decorator_list
                    for number in shown_by(decorator)
                }
            elif isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "pytestmark":
                found |= {
                    f"{path.relative_to(ROOT)}::{name}": number for name in names_of(text) for number in shown_by(node)
                }
    return found


def names_of(text: str) -> set[str]:
    """Return the names of the tests in a module, imported ones too."""
    body = ast.parse(text).body
    own = {node.name for node in body if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)}
    imported = {alias.asname or alias.name for node in body if isinstance(node, ast.ImportFrom) for alias in node.names}
    return {name for name in own | imported if name.startswith("test_")}


def exists(place: str) -> bool:
    """Whether a file, or a test in a file, is there; paths begin below `tests`."""
    path, _, name = place.partition("::")
    return (TESTS / path).is_file() and (not name or name in names_of((TESTS / path).read_text(encoding="utf-8")))


def test_what_is_left_to_the_soak_names_a_test_of_the_normal_run() -> None:
    """A rule that only a soak shows would be broken unnoticed for weeks."""
    left = left_to_the_soak()

    assert left != {}
    assert {test: by for test, by in left.items() if not exists(by) or f"tests/{by}" in left} == {}


def test_each_number_of_the_docs_has_a_test_in_the_normal_run() -> None:
    """Features and invariants: docs/features.md, docs/invariants.md."""
    left = left_to_the_soak()

    assert {number: tests for number, tests in marked().items() if left.keys() >= set(tests)} == {}

"""Lists of tests by feature and invariant in the docs: `python -m lab.shown` updates them from marks of the tests.

A test has a mark with the numbers of what it shows: `@pytest.mark.shows("F12", "C9")`. F1 and E1 are rows of docs/features.md, C1, Q1,
O1 and D1 rows of docs/invariants.md (D: a defect that was found). Both pages end with a list that is generated from the marks;
tests/test_shown.py fails if a list is outdated, or if a mark has an unknown number.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]

FOLDERS = ("tests", "e2e")

MARK = "pytest.mark.shows"

PAGES: Mapping[str, str] = {"docs/features.md": "FE", "docs/invariants.md": "CQOD"}
"""Page -> the first letters of the numbers in it."""

COMMAND = "python -m lab.shown"
BEGIN = f"<!-- Made from the marks of tests by `{COMMAND}`: not edited by hand. -->"

_ROW = re.compile(r"^\| (?P<number>[A-Z]\d+) \|", re.MULTILINE)


def marked(root: Path = ROOT) -> dict[str, list[str]]:
    """Return the tests that name each number, as `path::name`, in order of the paths."""
    found: dict[str, list[str]] = {}
    for path in sorted(path for folder in FOLDERS for path in (root / folder).rglob("test_*.py")):
        for name, numbers in _tests(path):
            for number in numbers:
                found.setdefault(number, []).append(f"{path.relative_to(root)}::{name}")
    return found


def _tests(path: Path) -> Iterator[tuple[str, list[str]]]:
    """Yield the tests of a module and the numbers that each names; tests of another module that it imports run there, too."""
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node.name, [number for one in node.decorator_list for number in _numbers(one)]
        elif isinstance(node, ast.ImportFrom) and any(alias.name.startswith("test_") for alias in node.names):
            source = path.with_name(f"{(node.module or '').rpartition('.')[2]}.py")
            names = {alias.name for alias in node.names}
            if source.is_file():
                yield from ((name, numbers) for name, numbers in _tests(source) if name in names)


def _numbers(decorator: ast.expr) -> list[str]:
    if isinstance(decorator, ast.Call) and ast.unparse(decorator.func) == MARK:
        return [str(ast.literal_eval(argument)) for argument in decorator.args]
    return []


def numbers_in(page: str) -> list[str]:
    """Return the numbers that have a row in a page's tables."""
    return _ROW.findall(page.partition(BEGIN)[0])


def with_list(page: str, tests: Mapping[str, list[str]]) -> str:
    """Return a page with the list at its end made again, by the rows that the page has."""
    lines = [BEGIN, ""]
    for number in numbers_in(page):
        if number in tests:
            lines += [f"- **{number}**", *(f"  - `{test}`" for test in tests[number])]
    return page.partition(BEGIN)[0] + "\n".join(lines) + "\n"


def main() -> None:
    """Write the lists of all pages."""
    tests = marked()
    for name in PAGES:
        path = ROOT / name
        path.write_text(with_list(path.read_text(encoding="utf-8"), tests), encoding="utf-8")


if __name__ == "__main__":
    main()

"""Lists of tests by feature and invariant in the docs: `python -m lab.test_runs.shown` updates them from marks of the tests.

A test has a mark with the numbers of what it shows: `@pytest.mark.shows("F12", "C9")`. F1 and E1 are rows of docs/features.md, B1, C1, Q1,
O1 and D1 rows of docs/invariants.md (D: a defect that was found). Both pages end with a list that is generated from the marks, with the
real parts that each test runs on (`lab/test_runs/tested_on.py`); the last column of the features has those of all tests of a row.
tests/test_shown.py fails if a page is outdated, or if a mark has an unknown number.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from lab.test_runs.tested_on import FAKE, FOLDERS, PARTS, ROOT, marks_of, parts_of

MARK = "pytest.mark.shows"

PAGES: Mapping[str, str] = {"docs/features.md": "FE", "docs/invariants.md": "BCQOD"}
"""Page -> the first letters of the numbers in it."""

COMMAND = "python -m lab.test_runs.shown"
BEGIN = f"<!-- Made from the marks of tests by `{COMMAND}`: not edited by hand. -->"

SHOWN_ON = "shown on"
"""Header of the last column of tables whose rows have tests: the real parts that these run on."""

NOTHING = "-"

SOAK = "soak"
"""The mark of tests that `make test` leaves out (tests/effort.py)."""

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
            yield node.name, [number for decorator in node.decorator_list for number in _numbers(decorator)]
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


def generated(page: str, tests: Mapping[str, list[str]]) -> str:
    """Return a page with its generated parts made again, by the rows that the page has: the column of parts, and the list at its end."""
    return _with_list(_with_column(page, tests), tests)


def _with_column(page: str, tests: Mapping[str, list[str]]) -> str:
    """Fill the column SHOWN_ON of tables that have it; rows without that cell get one."""
    lines = page.partition(BEGIN)[0].splitlines(keepends=True)
    columns = 0
    for index, line in enumerate(lines):
        cells = line.split(" | ")
        if cells[-1].strip() == f"{SHOWN_ON} |":
            columns = len(cells)
        elif not line.startswith("|"):
            columns = 0
        row = _ROW.match(line)
        if row is not None and columns:
            kept = cells[: columns - 1]
            kept[-1] = kept[-1].removesuffix(" |\n")
            lines[index] = " | ".join([*kept, f"{_shown_on(tests.get(row['number'], []))} |\n"])
    return "".join(lines) + page[len(page.partition(BEGIN)[0]) :]


def _shown_on(tests: Iterable[str]) -> str:
    found = {part for test in tests for part in parts_of(test)}
    return ", ".join(part for part in PARTS if part in found) or NOTHING


def _with_list(page: str, tests: Mapping[str, list[str]]) -> str:
    lines = [BEGIN, ""]
    for number in numbers_in(page):
        if number in tests:
            lines += [f"- **{number}**", *(f"  - `{test}`{_real_parts(test)}" for test in tests[number])]
    return page.partition(BEGIN)[0] + "\n".join(lines) + "\n"


def _real_parts(test: str) -> str:
    parts = [part for part in parts_of(test) if part != FAKE]
    if SOAK in marks_of(test):
        parts.append("only in the soak")
    return f" ({', '.join(parts)})" if parts else ""


def main() -> None:
    """Write the generated parts of all pages."""
    tests = marked()
    for name in PAGES:
        path = ROOT / name
        path.write_text(generated(path.read_text(encoding="utf-8"), tests), encoding="utf-8")


if __name__ == "__main__":
    main()

"""Drawing the tables of Kafka's raft and metadata tests again: filled cells stay, new rows are open."""

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parents[1]


@pytest.fixture(scope="module")
def tool() -> ModuleType:
    """The script; `tools` is no package."""
    spec = importlib.util.spec_from_file_location("draw_quorum_tests", ROOT / "tools" / "draw_quorum_tests.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_filled_cells_are_kept_and_new_rows_are_open(tool: ModuleType) -> None:
    """People write the last column."""
    cases = {"RaftEventSimulationTest": ["canElect"], "VoterSetTest": ["testA", "testB"]}
    page = tool.render(cases, {"canElect": "`tests/sim`"}, "4.3.1")

    again = tool.render(cases | {"NewTest": ["testC"]}, tool.kept_cells(page), "4.4.0")

    assert [line for line in again.splitlines() if line.startswith("| `")] == [
        "| `canElect` | `tests/sim` |",
        "| `VoterSetTest` | 2 | open |",
        "| `NewTest` | 1 | open |",
    ]
    assert "3 classes with 4 cases; 2 rows are open." in again


def test_cases_without_a_test_are_counted(tool: ModuleType) -> None:
    """A cell may name some of its class, or call all of it open; a new class is open."""
    cases = {"ATest": ["testA", "testB"], "BTest": ["testC", "testD"], "CTest": ["testE"]}
    cells = {"ATest": "`testA`: `tests/a.py`; open: `testB`: no such metric", "BTest": "open: no such metric"}

    page = tool.render(cases, cells, "4.3.1", "metadata")

    assert "3 classes with 5 cases; 4 cases are open." in page
    assert tool.unknown_cases(cases, cells | {"CTest": "`testF`: `tests/c.py`"}) == ["CTest: testF"]


@pytest.mark.parametrize("module", ["raft", "metadata"])
def test_the_files_that_the_page_names_exist(tool: ModuleType, module: str) -> None:
    """A row is shown by a test that is there, or has a reason; none is blank."""
    cells = tool.kept_cells(tool.PAGES[module].read_text(encoding="utf-8"))
    named = {part for cell in cells.values() for part in cell.split("`") if part.startswith("tests/")}

    assert sorted(name for name in named if not (ROOT / name).exists()) == []
    assert named != set()
    assert [name for name, cell in cells.items() if not cell.strip() or cell == tool.OPEN] == []

"""Drawing the table of Kafka's raft tests again: filled cells stay, new rows are open."""

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


def test_the_files_that_the_page_names_exist(tool: ModuleType) -> None:
    """A row is shown by a test that is there."""
    cells = tool.kept_cells(tool.PAGE.read_text(encoding="utf-8"))
    named = {part for cell in cells.values() for part in cell.split("`") if part.startswith("tests/")}

    assert sorted(name for name in named if not (ROOT / name).exists()) == []
    assert named != set()

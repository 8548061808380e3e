"""Golden files: text that is read as a specification, and whose differences are reviewed as changes of it."""

import os
from pathlib import Path

REWRITE = "REWRITE_GOLDEN"
"""Environment variable that accepts the differences."""


def golden_scripts(test: str) -> list[Path]:
    """Return the scripts in the folder `golden` next to a test's file."""
    scripts = sorted((Path(test).parent / "golden").glob("*.txt"))
    assert scripts, "with a wrong path every script would pass"
    return scripts


def golden_text(path: Path) -> str:
    """Return the text of a golden file."""
    return path.read_text(encoding="utf-8")


def assert_golden(path: Path, actual: str) -> None:
    """Compare a text with a golden file, or write it there."""
    if os.environ.get(REWRITE):
        path.write_text(actual, encoding="utf-8")
        return

    expected = golden_text(path)
    assert actual == expected, f"read the difference to {path.name}; {REWRITE}=1 accepts it"

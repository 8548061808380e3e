"""Golden scripts of the main conversations: read `golden/*.txt` as the specification of what is written and told, in order."""

import os
from pathlib import Path

import pytest

from tests.controller_core.decisions.script import play

SCRIPTS = sorted((Path(__file__).parent / "golden").glob("*.txt"))
REWRITE = "REWRITE_GOLDEN"


def test_there_are_scripts() -> None:
    """A wrong path would let every script pass."""
    assert len(SCRIPTS) >= 8


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.stem)
def test_the_conversation_is_the_one_that_was_read_and_agreed(script: Path) -> None:
    """Golden script: text in, text out; a reviewer reads the diff as the spec."""
    expected = script.read_text()
    actual = play(expected)
    if os.environ.get(REWRITE):
        script.write_text(actual)
        return

    assert actual == expected, f"read the difference; {REWRITE}=1 takes it over"

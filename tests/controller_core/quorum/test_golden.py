"""Golden scripts of the quorum's conversations: `golden/*.txt` specifies who asks whom for what, and what follows."""

import os
from pathlib import Path

import pytest

from tests.controller_core.quorum.script import play

SCRIPTS = sorted((Path(__file__).parent / "golden").glob("*.txt"))
REWRITE = "REWRITE_GOLDEN"


def test_there_are_scripts() -> None:
    """With a wrong path every script would pass."""
    assert len(SCRIPTS) >= 8


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.stem)
def test_the_conversation_is_as_specified(script: Path) -> None:
    """Golden script: text in, text out; a reviewer reads the diff as the specification."""
    expected = script.read_text()
    actual = play(expected)
    if os.environ.get(REWRITE):
        script.write_text(actual)
        return

    assert actual == expected, f"read the difference; {REWRITE}=1 accepts it"

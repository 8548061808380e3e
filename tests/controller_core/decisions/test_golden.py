"""Golden scripts of the main conversations: `golden/*.txt` specifies what is written and sent, in order."""

from pathlib import Path

import pytest

from tests.controller_core.decisions.script import play
from tests.golden_scripts import assert_golden, golden_scripts, golden_text


@pytest.mark.parametrize("script", golden_scripts(__file__), ids=lambda script: script.stem)
def test_the_conversation_is_as_specified(script: Path) -> None:
    """Golden script: text in, text out; a reviewer reads the diff as the specification."""
    assert_golden(script, play(golden_text(script)))

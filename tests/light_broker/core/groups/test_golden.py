"""Golden conversations of clients with a coordinator: `golden/*.txt` specifies answers, records and timers, in order."""

from pathlib import Path

import pytest

from tests.golden_scripts import assert_golden, golden_scripts, golden_text
from tests.light_broker.core.groups.script import Conversation


@pytest.mark.parametrize("script", golden_scripts(__file__), ids=lambda script: script.stem)
def test_conversation_is_as_specified(script: Path) -> None:
    """The error codes, generations and records are those of Kafka's GroupMetadataManager."""
    assert_golden(script, Conversation().play(golden_text(script)))

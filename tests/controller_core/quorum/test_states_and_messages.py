"""Every state and every message, by a golden table; and the table of transitions against its docstring."""

import re
from pathlib import Path

import pytest

from controller_core.quorum import transitions
from tests.controller_core.quorum import table
from tests.golden_scripts import assert_golden

GOLDEN = Path(__file__).parent / "states_and_messages.txt"


def test_each_state_answers_each_message_as_in_the_table() -> None:
    """A reviewer reads the diff of the table as the specification; REWRITE_GOLDEN=1 accepts it."""
    assert_golden(GOLDEN, table.render())


def test_no_message_is_answered_with_invalid_request_unless_it_is_malformed() -> None:
    """A Java peer exits when it gets INVALID_REQUEST."""
    sections = re.split(r"\n(?=\S)", GOLDEN.read_text())
    refused = [section.splitlines()[0] for section in sections if "INVALID_REQUEST" in section]

    assert refused == ["vote, epoch of the log not lower", "fetch, malformed", "add voter without endpoints"]


@pytest.mark.shows("Q14")
def test_the_docstring_lists_exactly_the_transitions() -> None:
    """Q14: the table is documentation and data."""
    rows = re.findall(r"^\| (\w+) \| (\w+) \|", transitions.__doc__ or "", re.MULTILINE)
    listed = {(before, after) for before, after in rows if before != "from"}

    assert listed == {
        (before.__name__, after.__name__) for before, some in transitions.TRANSITIONS.items() for after in some
    }


def test_transitions_that_keep_the_epoch_are_transitions() -> None:
    """Q2: all others raise it."""
    assert all(some <= transitions.TRANSITIONS[before] for before, some in transitions.KEEPS_EPOCH.items())

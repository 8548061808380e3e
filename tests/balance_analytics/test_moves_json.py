"""Proposed moves are read back as they were, and what is no proposal is refused in words."""

from __future__ import annotations

import json

import pytest

from balance_analytics.model.moves_json import MAX_MOVES_BYTES, moves_from_json, moves_to_json
from balance_analytics.model.report_input import ProposedMoves, ResourceMove
from balance_analytics.model.results_json import ResultError

DISK = ResourceMove("disk", "bytes", "log sizes", (1, 2), (30.0, 10.0), (21.0, 19.0), 20.0, 0.05)
MOVES = ProposedMoves(None, 3, 1, 2048, 1024, (DISK,), ())


def test_moves_are_read_back_as_they_were() -> None:
    """With the schema first, a line for each field."""
    text = moves_to_json(MOVES)

    assert moves_from_json(text) == MOVES
    assert text.splitlines()[:3] == ["{", '  "schema": 1,', '  "name": null,']


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("{", "the proposal is not JSON"),
        ("[" * 100_000, "the proposal is nested too deeply"),
        ("[]", "the proposal has schema None, this version reads 1"),
        (json.dumps({"schema": 2}), "the proposal has schema 2, this version reads 1"),
        (json.dumps({"schema": 1}), "proposal lacks name, partitions"),
        (moves_to_json(MOVES).replace("30.0", "true"), r"proposal.resources\[0\].before\[0\] is bool, not float"),
        (" " * (MAX_MOVES_BYTES + 1), f"the proposal has {MAX_MOVES_BYTES + 1} bytes, more than {MAX_MOVES_BYTES}"),
    ],
    ids=lambda text: text[:20],
)
def test_what_is_no_proposal_is_refused_in_words(text: str, told: str) -> None:
    """The place and what is wrong there."""
    with pytest.raises(ResultError, match=told):
        moves_from_json(text)

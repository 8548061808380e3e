"""Proposed moves as JSON: parsing returns the written moves, and rejects invalid text with the reason."""

from __future__ import annotations

import json

import pytest

from balance_analytics.model.moves_json import MAX_MOVES_BYTES, moves_from_json, moves_to_json
from balance_analytics.model.report_input import ProposedMoves, ResourceMove
from balance_analytics.model.results_json import ResultError

DISK = ResourceMove("disk", "bytes", "log sizes", (1, 2), (30.0, 10.0), (21.0, 19.0), 20.0, 0.05)
MOVES = ProposedMoves(None, 3, 1, 2048, 1024, (DISK,), ())


def test_parsing_returns_the_written_moves() -> None:
    """The schema is the first field, and each field has one line."""
    text = moves_to_json(MOVES)

    assert moves_from_json(text) == MOVES
    assert text.splitlines()[:3] == ["{", '  "schema": 1,', '  "name": null,']


@pytest.mark.parametrize(
    ("text", "message"),
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
def test_invalid_proposals_are_rejected_with_the_reason(text: str, message: str) -> None:
    """The error names the field and the problem."""
    with pytest.raises(ResultError, match=message):
        moves_from_json(text)

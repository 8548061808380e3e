"""Proposed moves as JSON, from the stage `moves` to the stage `report`: the contents of `<out>/moves.json`."""

from __future__ import annotations

from dataclasses import asdict

from balance_analytics.model.report_input import ProposedMoves
from balance_analytics.model.results_json import lines_of, read_value

MOVES_SCHEMA = 1
MOVES_NAME = "moves.json"
MAX_MOVES_BYTES = 4_000_000
"""Five resources of several thousand brokers, before and after."""


def moves_to_json(moves: ProposedMoves) -> str:
    """Write moves as JSON."""
    return lines_of({"schema": MOVES_SCHEMA, **asdict(moves)})


def moves_from_json(text: str) -> ProposedMoves:
    """Read moves; raises `ResultError`."""
    return read_value(ProposedMoves, text, "proposal", MOVES_SCHEMA, MAX_MOVES_BYTES)

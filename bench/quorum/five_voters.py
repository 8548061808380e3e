"""A KRaft quorum of five: its elections (P6) and appends (P7), by `election` and `appends`."""

from collections.abc import Iterator

from bench.harness import Effort, Row
from bench.quorum import appends, election
from bench.quorum.appends import LINGERS_MS, Setup

NAME = "quorum-of-five"
ABOUT = "elections of five Steward voters and appends to them, compared with Kafka's (half an hour)"

FIVE = (1, 2, 3, 4, 5)


def measure(effort: Effort) -> Iterator[Row]:
    """Yield the rows of elections, then those of each linger."""
    yield from election.rows(NAME, FIVE, effort)
    for linger_ms in LINGERS_MS:
        yield from appends.rows(NAME, Setup(linger_ms, FIVE), effort)

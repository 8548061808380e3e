"""A few seconds of the front's fuzzer; `make soak` runs it for minutes, with a limit for stalls."""

import pytest

from bench.listener.fuzz import fuzz
from bench.listener.server import ADMITTED, OPEN, REFUSED

pytestmark = pytest.mark.slow

SECONDS = 3.0
ANY_STALL_MS = float("inf")


@pytest.mark.parametrize("mode", [OPEN, ADMITTED, REFUSED])
def test_front_survives_mutated_requests(mode: str) -> None:
    """The process keeps answering, no handler fails unexpectedly, and memory stays within 8 times the largest frame."""
    assert fuzz(20, SECONDS, (mode,), stall_ms=ANY_STALL_MS) is None

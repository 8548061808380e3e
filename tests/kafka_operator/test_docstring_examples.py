"""The examples in docstrings hold."""

from __future__ import annotations

import doctest

from kafka_operator.decide import spread


def test_examples_hold() -> None:
    """What a reader tries first."""
    result = doctest.testmod(spread)

    assert result.attempted > 0
    assert 0 == result.failed

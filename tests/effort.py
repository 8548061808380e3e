"""Amount of testing: few examples in a normal run, a tenth of these in a quick run, any number in a soak.

KAFKA_WIRE_EFFORT=50 python -m pytest tests/kafka_wire

A soak (`make soak ARGS=--properties`) also runs what only adds confidence in a rule that a normal run shows by another test or row: tests
with the mark `soak`, which names the other test, rows of `in_soak`, and loops that ask for `EXHAUSTIVE`.
"""

import os

import pytest
from hypothesis import HealthCheck, Phase, settings

EFFORT = float(os.environ.get("KAFKA_WIRE_EFFORT", "1"))

EXHAUSTIVE = os.environ.get("HYPOTHESIS_PROFILE") == "soak"
"""True in a soak, which tries every crash point, fault and row."""


def in_soak(*rows: object) -> list[object]:
    """Return rows of a parametrized test that only a soak runs; a row is a value, or a tuple of values.

    >>> [row.values for row in in_soak(2, (3, 4))]
    [(2,), (3, 4)]
    """
    return [pytest.param(*(row if isinstance(row, tuple) else (row,)), marks=pytest.mark.soak) for row in rows]


def examples(count: int) -> settings:
    """Return settings for `count` examples in a normal run.

    No deadline, because the first example of a message compiles its codec; no health checks, because a strategy over a whole schema is
    slow; no database, because a failure is printed with everything that is needed to reproduce it.
    """
    return settings(
        max_examples=max(1, int(count * EFFORT)),
        deadline=None,
        database=None,
        suppress_health_check=list(HealthCheck),
        phases=[Phase.explicit, Phase.generate, Phase.shrink],
    )

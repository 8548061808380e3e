"""Examples in docstrings are part of the specification; here they are run."""

import doctest
from types import ModuleType

import pytest

from kafka_wire.net import backoff, principal_rules


@pytest.mark.parametrize("module", [backoff, principal_rules])
def test_every_example_in_a_docstring_holds(module: ModuleType) -> None:
    """Algorithms carry their worked example as a doctest."""
    result = doctest.testmod(module)

    assert 0 == result.failed
    assert result.attempted > 0

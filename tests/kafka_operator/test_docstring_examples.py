"""The examples in docstrings hold."""

from __future__ import annotations

import doctest
from types import ModuleType

import pytest

from kafka_operator.decide import copies, spread, vitals
from kafka_operator.importing import client_config, names
from kafka_operator.resources import object_names

EXAMPLES = (copies, spread, vitals, client_config, names, object_names)


@pytest.mark.parametrize("module", EXAMPLES, ids=lambda module: module.__name__)
def test_examples_hold(module: ModuleType) -> None:
    """What a reader tries first."""
    result = doctest.testmod(module)

    assert result.attempted > 0
    assert 0 == result.failed

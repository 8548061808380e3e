"""The examples in docstrings of kafka_node are true."""

import doctest
import importlib
import pkgutil

import pytest

import kafka_node

MODULES = sorted(found.name for found in pkgutil.walk_packages(kafka_node.__path__, "kafka_node."))


@pytest.mark.parametrize("name", MODULES)
def test_examples_are_true(name: str) -> None:
    """CONTRIBUTING: examples are run."""
    assert doctest.testmod(importlib.import_module(name)).failed == 0

"""Docstring examples of kafka_node."""

import doctest
import importlib
import pkgutil

import pytest

import kafka_node

MODULES = sorted(found.name for found in pkgutil.walk_packages(kafka_node.__path__, "kafka_node."))


@pytest.mark.parametrize("name", MODULES)
def test_examples_are_correct(name: str) -> None:
    """CONTRIBUTING: examples are run."""
    assert doctest.testmod(importlib.import_module(name)).failed == 0

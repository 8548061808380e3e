"""Examples in docstrings are part of the specification; here they are run."""

import doctest
import importlib
import pkgutil

import pytest

import controller_core.cluster
import controller_core.model

MODULES = [
    found.name
    for package in (controller_core.cluster, controller_core.model)
    for found in pkgutil.iter_modules(package.__path__, f"{package.__name__}.")
]


@pytest.mark.parametrize("name", MODULES)
def test_every_example_in_a_docstring_holds(name: str) -> None:
    """Algorithms carry their worked example as a doctest."""
    failed, _ = doctest.testmod(importlib.import_module(name))

    assert 0 == failed

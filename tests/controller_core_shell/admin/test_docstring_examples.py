"""Examples in docstrings are part of the specification; here they are run."""

import doctest
import importlib
import pkgutil

import pytest

import controller_core.shell.admin as package

MODULES = [found.name for found in pkgutil.iter_modules(package.__path__, f"{package.__name__}.")]


@pytest.mark.parametrize("name", MODULES)
def test_every_example_in_a_docstring_holds(name: str) -> None:
    """Worked examples are doctests."""
    failed, _ = doctest.testmod(importlib.import_module(name))

    assert 0 == failed

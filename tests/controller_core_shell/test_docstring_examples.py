"""The examples in docstrings of the shell's modules are true."""

import doctest
import importlib
import pkgutil

import pytest

import controller_core.shell
from controller_core.shell import brokers, zookeeper
from controller_core.shell.zookeeper import acls, configs

MODULES = sorted(
    found.name
    for package in (controller_core.shell, brokers, zookeeper, acls, configs)
    for found in pkgutil.iter_modules(package.__path__, f"{package.__name__}.")
    if not found.ispkg
)


@pytest.mark.parametrize("name", MODULES)
def test_examples_are_true(name: str) -> None:
    """CONTRIBUTING: examples are run."""
    assert 0 == doctest.testmod(importlib.import_module(name)).failed

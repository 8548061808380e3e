"""The examples in the analytics' docstrings are true."""

from __future__ import annotations

import doctest
import importlib
import pkgutil
from types import ModuleType

import pytest

from balance_analytics import model, study


def modules() -> list[ModuleType]:
    """Import every module of the pure parts."""
    return [
        importlib.import_module(found.name)
        for package in (model, study)
        for found in pkgutil.iter_modules(package.__path__, f"{package.__name__}.")
    ]


@pytest.mark.parametrize("module", modules(), ids=lambda module: module.__name__)
def test_examples_are_true(module: ModuleType) -> None:
    """Each is run as it stands."""
    assert 0 == doctest.testmod(module).failed

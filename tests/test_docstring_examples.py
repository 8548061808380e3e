"""Examples in docstrings are part of the specification; here they are run, wherever they are."""

from __future__ import annotations

import doctest
import importlib
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]

SHIPPED = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["hatch"]["build"]
PACKAGES = [*SHIPPED["targets"]["wheel"]["packages"], "lab", "bench"]

PROMPT = ">>> "


def modules_with_examples(package: str) -> Iterator[str]:
    """Yield the names of a package's modules whose text has an example in it."""
    for path in sorted((ROOT / package).rglob("*.py")):
        if PROMPT in path.read_text(encoding="utf-8"):
            parts = path.relative_to((ROOT / package).parent).with_suffix("").parts
            yield ".".join(parts if parts[-1] != "__init__" else parts[:-1])


@pytest.mark.parametrize("package", PACKAGES)
def test_examples_in_docstrings_are_true(package: str) -> None:
    """An algorithm carries its worked example."""
    results = {name: doctest.testmod(importlib.import_module(name)) for name in modules_with_examples(package)}

    assert [name for name, result in results.items() if result.failed] == []
    assert [name for name, result in results.items() if not result.attempted] == []

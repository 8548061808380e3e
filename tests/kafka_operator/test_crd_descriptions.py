"""Descriptions in the custom resource definitions, as shown by `kubectl explain`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.kafka_operator.live import ROOT

DEFINITIONS = sorted((ROOT / "crds").glob("*.yaml"), key=lambda path: path.stem)


def properties(schema: dict[str, Any], path: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """The schema itself and all properties below it, items of lists included, each with its path.

    `metadata` is left out: the API server rejects a definition that describes it.
    """
    yield path, schema
    for name, child in schema.get("properties", {}).items():
        if name == "metadata":
            continue
        yield from properties(child, f"{path}.{name}")
    if "items" in schema:
        for below, child in properties(schema["items"], f"{path}[]"):
            if below != f"{path}[]":
                yield below, child


@pytest.mark.parametrize("definition", DEFINITIONS, ids=lambda path: path.stem)
def test_every_field_has_a_description(definition: Path) -> None:
    """A field without one is empty in `kubectl explain`; the kind itself has one too."""
    raw = yaml.safe_load(definition.read_text(encoding="utf-8"))
    schema = raw["spec"]["versions"][0]["schema"]["openAPIV3Schema"]

    found = dict(properties(schema, raw["spec"]["names"]["kind"]))

    assert len(found) > len(schema["properties"])
    assert [path for path, field in found.items() if not field.get("description", "").endswith(".")] == []

"""Conventions that the custom resource definitions follow: descriptions as shown by `kubectl explain`, lists, enums, columns."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from kafka_operator.resources.auto_rebalance import TERMS
from kafka_operator.resources.security import FORMER_TYPES
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


def version_of(definition: Path) -> dict[str, Any]:
    """The only version of a definition."""
    (version,) = yaml.safe_load(definition.read_text(encoding="utf-8"))["spec"]["versions"]
    found: dict[str, Any] = version
    return found


def fields_of(definition: Path) -> dict[str, dict[str, Any]]:
    """All fields of a definition, by path."""
    return dict(properties(version_of(definition)["schema"]["openAPIV3Schema"], definition.stem))


@pytest.mark.parametrize("definition", DEFINITIONS, ids=lambda path: path.stem)
def test_every_printer_column_has_a_description(definition: Path) -> None:
    """Clients show it as the help of the column (metav1.TableColumnDefinition)."""
    columns = version_of(definition)["additionalPrinterColumns"]

    assert [column["name"] for column in columns if not column.get("description", "").endswith(".")] == []


@pytest.mark.parametrize("definition", DEFINITIONS, ids=lambda path: path.stem)
def test_every_list_has_a_list_type(definition: Path) -> None:
    """Server-side apply merges sets and maps by element; a list without a type has the owner who wrote it last (KEP-555)."""
    lists = {path: field for path, field in fields_of(definition).items() if field.get("type") == "array"}

    assert lists != {}
    assert [path for path, field in lists.items() if "x-kubernetes-list-type" not in field] == []


KUBEFLOW = {"mode": ["cluster"], "pythonVersion": ["3"]}
"""Values of sparkoperator.k8s.io/v1beta2, which the fields of a SparkApplication keep."""


@pytest.mark.parametrize("definition", DEFINITIONS, ids=lambda path: path.stem)
def test_every_enum_value_is_in_camel_case(definition: Path) -> None:
    """Kubernetes' API conventions, "Constants"."""
    found = [
        (path, value)
        for path, field in fields_of(definition).items()
        for value in field.get("enum", ())
        if isinstance(value, str) and value not in KUBEFLOW.get(path.rpartition(".")[2], [])
    ]

    assert found != []
    assert [item for item in found if not re.fullmatch("[A-Z][A-Za-z0-9]*", item[1]) and item not in ACCEPTED] == []


ACCEPTED = [
    *(("clusters.spec.mode", value) for value in ("zookeeper", "quorum", "external")),
    *(("clusters.spec.authentication.type", value) for value in FORMER_TYPES),
]
"""Former spellings that are still accepted."""


@pytest.mark.parametrize("definition", DEFINITIONS, ids=lambda path: path.stem)
def test_a_resource_that_the_operator_has_not_seen_is_not_current(definition: Path) -> None:
    """To kstatus a resource without observedGeneration is current; the default means that no generation has been observed."""
    assert fields_of(definition)[f"{definition.stem}.status"]["default"] == {"observedGeneration": -1}


@pytest.mark.parametrize("field", TERMS)
def test_the_template_of_a_rebalance_has_the_fields_of_a_reassignment(field: str) -> None:
    """The operator copies them; the digest that ends the wait of a canary is that of one Reassignment."""
    by_kind = {path.stem: fields_of(path) for path in DEFINITIONS}
    spec, template = "reassignments.spec", "clusters.spec.autoRebalance.template"

    own = {path.removeprefix(f"{spec}."): schema for path, schema in by_kind["reassignments"].items()}
    copied = {path.removeprefix(f"{template}."): schema for path, schema in by_kind["clusters"].items()}

    wanted = {
        path: rules_of(schema)
        for path, schema in own.items()
        if path == field or path.startswith((f"{field}.", f"{field}["))
    }
    wanted.pop("canary.approvedDigest", None)
    assert wanted == {path: rules_of(copied[path]) for path in wanted}


def rules_of(schema: dict[str, Any]) -> dict[str, Any]:
    """Everything of a field but its description and the fields below it."""
    return {name: value for name, value in schema.items() if name not in {"description", "properties", "items"}}

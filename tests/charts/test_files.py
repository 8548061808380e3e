"""Consistency of the chart and the images with the rest of the project."""

from __future__ import annotations

import json
import re
import tomllib
from typing import Any

import pytest
import yaml
from prometheus_client import CollectorRegistry

from controller_core.shell.metrics import Metrics as ControllerMetrics
from kafka_operator.metrics import KafkaMetrics
from lab.downloads.jars import KAFKA_VERSION
from lab.release.chart import CHART
from lab.release.commands import ROOT
from lab.setup.python_packages import PIP_VERSION
from spark_operator.metrics import SparkMetrics
from tests.integration.test_broker_metrics import documented_metrics

SUFFIXES = ("_bucket", "_count", "_sum")

METRIC = re.compile(r"\b(?:kafka|steward|jvm)_\w+")


def test_the_charts_crds_are_a_link_to_those_of_the_project() -> None:
    """There is one copy (docs/adr/0032): helm follows the link, `helm package` too."""
    assert (CHART / "crds").is_symlink()
    assert (CHART / "crds").resolve() == ROOT / "crds"


def test_the_charts_app_version_is_the_projects_version() -> None:
    """It is the default of the image tag."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]

    assert project["version"] == yaml.safe_load((CHART / "Chart.yaml").read_text(encoding="utf-8"))["appVersion"]


def test_the_image_contains_the_tested_kafka() -> None:
    """No other version is shipped."""
    dockerfile = (ROOT / "images" / "kafka" / "Dockerfile").read_text(encoding="utf-8")

    assert re.findall(r"^ARG KAFKA_VERSION=(.+)$", dockerfile, re.MULTILINE) == [KAFKA_VERSION]


def test_the_image_is_built_with_the_tested_pip() -> None:
    """Older versions do not support build constraints."""
    dockerfile = (ROOT / "images" / "steward" / "Dockerfile").read_text(encoding="utf-8")

    assert re.findall(r"^ARG PIP_VERSION=(.+)$", dockerfile, re.MULTILINE) == [PIP_VERSION]


@pytest.mark.parametrize("image", ["steward", "kafka", "spark"])
def test_an_image_runs_as_a_numeric_user_on_any_base(image: str) -> None:
    """A pod with runAsNonRoot needs a numeric user. The build argument BASE selects another base image."""
    dockerfile = (ROOT / "images" / image / "Dockerfile").read_text(encoding="utf-8")

    assert re.findall(r"^USER (.+)$", dockerfile, re.MULTILINE) == ["10001:10001"]
    assert re.search(r"^ARG BASE=", dockerfile, re.MULTILINE)
    assert not re.search(r"--mount=|<<|\bcurl\b|\bwget\b|^ADD ", dockerfile, re.MULTILINE)


def test_kafka_and_spark_begin_with_the_same_layers() -> None:
    """The instructions are identical, so that the build cache contains one Java runtime for both."""

    def first_layers(image: str) -> list[str]:
        dockerfile = (ROOT / "images" / image / "Dockerfile").read_text(encoding="utf-8")
        stage = re.split(r"^(?:FROM|COPY) .*$", dockerfile, flags=re.MULTILINE)[1]
        return [line for line in stage.splitlines() if not line.startswith("#")]

    assert first_layers("kafka") == first_layers("spark")
    assert any("jlink" in line for line in first_layers("kafka"))


def test_every_value_and_its_default_is_in_the_documentation() -> None:
    """Users find all values in docs/install.md."""
    rows = re.findall(
        r"^\| `([\w.]+)` \| `(.+?)` \| .", (ROOT / "docs" / "install.md").read_text("utf-8"), re.MULTILINE
    )
    documented = {name: yaml.safe_load(default) for name, default in rows}
    values = yaml.safe_load((CHART / "values.yaml").read_text(encoding="utf-8"))

    def default(name: str) -> Any:
        found = values
        for part in name.split("."):
            found = found[part]
        return found

    assert {name: default(name) for name in documented} == documented
    assert {leaf for leaf in _leaves(values) if not _is_documented(leaf, documented)} == set()


def _leaves(values: dict[str, Any], prefix: str = "") -> set[str]:
    """Return the dotted names of all values that are not tables."""
    names = set()
    for key, value in values.items():
        names |= _leaves(value, f"{prefix}{key}.") if isinstance(value, dict) and value else {prefix + key}
    return names


def _is_documented(leaf: str, documented: dict[str, Any]) -> bool:
    return any(leaf == name or leaf.startswith(f"{name}.") for name in documented)


def _names_of_operator() -> set[str]:
    """Return the names of all metrics of the operator, with Spark."""
    metrics = KafkaMetrics()
    SparkMetrics(metrics.registry)
    return _names(metrics.registry)


def test_the_dashboard_queries_existing_metrics() -> None:
    """A renamed metric would leave an empty panel."""
    dashboard = json.loads((CHART / "dashboards" / "steward.json").read_text(encoding="utf-8"))
    queries = " ".join(target["expr"] for panel in dashboard["panels"] for target in panel.get("targets", ()))
    queries += dashboard["templating"]["list"][1]["query"]

    names = set(METRIC.findall(queries))
    of_operator = _names_of_operator()
    assert names - _names(ControllerMetrics().registry) - of_operator - _broker_metrics() == set()
    assert {metric for metric in of_operator if metric.startswith("steward_balance_")} <= names
    assert len(dashboard["panels"]) == len({panel["id"] for panel in dashboard["panels"]})


def _alerts() -> list[dict[str, Any]]:
    """Return all alerts of the chart."""
    files = sorted((CHART / "alerts").iterdir())
    return [alert for path in files for alert in yaml.safe_load(path.read_text(encoding="utf-8"))]


def test_the_alerts_query_existing_metrics_of_the_releases_namespace() -> None:
    """A renamed metric would silence its alert. Another release has alerts of its own."""
    existing = _names_of_operator() | _names(ControllerMetrics().registry) | _broker_metrics()

    for alert in _alerts():
        selectors = re.findall(rf"({METRIC.pattern})(\{{namespace=\"NAMESPACE\")?", alert["expr"])
        assert {name for name, _ in selectors} - existing == set(), alert["alert"]
        assert all(selected for _, selected in selectors), alert["alert"]


def test_every_alert_is_documented_with_its_severity() -> None:
    """docs/metrics.md lists them."""
    page = (ROOT / "docs" / "metrics.md").read_text(encoding="utf-8")

    documented = re.findall(r"^\| `(Steward\w+)` \| (\w+) \| .", page, re.MULTILINE)
    assert sorted(documented) == sorted((alert["alert"], alert["labels"]["severity"]) for alert in _alerts())


def _broker_metrics() -> set[str]:
    """Return the metrics of brokers that docs/metrics.md lists; tests/integration/test_broker_metrics.py scrapes them from a broker."""
    return documented_metrics((ROOT / "docs" / "metrics.md").read_text(encoding="utf-8"))


def _names(registry: CollectorRegistry) -> set[str]:
    """Return the names of all possible samples."""
    names = set()
    for family in registry.collect():
        if family.type == "histogram":
            names |= {family.name + suffix for suffix in SUFFIXES}
        names.add(f"{family.name}_total" if family.type == "counter" else family.name)
    return names

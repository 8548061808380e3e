"""The chart rendered, and an API server that knows the kinds it uses. What runs in a real cluster is e2e's."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from lab.downloads.helm import helm
from lab.peers.kubernetes import KubernetesApi
from lab.processes.waiting import wait_until
from lab.release.commands import ROOT
from tests.charts.rendering import JOBS, NAMESPACE, TIMEOUT_S, Chart, Resource

PROMETHEUS = Path(__file__).parent / "prometheus.yaml"
"""The kinds of the Prometheus Operator."""

OTHER_NAMESPACE = "orders"
"""One more that the operator serves."""


@pytest.fixture(scope="session")
def chart() -> Chart:
    """The chart; mark the test `helm`."""
    return Chart(helm())


@pytest.fixture(scope="session")
def _rendered(chart: Chart) -> list[Resource]:
    return chart.render()


@pytest.fixture
def rendered(_rendered: list[Resource]) -> list[Resource]:
    """All resources with the default values, to be changed at will."""
    return copy.deepcopy(_rendered)


@pytest.fixture(scope="session")
def api(kubernetes_api: KubernetesApi) -> Iterator[KubernetesApi]:
    """An API server with the chart's kinds, those of the Prometheus Operator, and namespaces that accept only restricted pods."""
    kubernetes_api.kubectl("apply", f"--filename={ROOT / 'crds'}", f"--filename={PROMETHEUS}", check=True)
    for name in (NAMESPACE, OTHER_NAMESPACE, JOBS):
        content = {
            "apiVersion": "v1",
            "kind": "Namespace",
            "metadata": {"name": name, "labels": {"pod-security.kubernetes.io/enforce": "restricted"}},
        }
        kubernetes_api.kubectl("apply", "--filename=-", stdin=json.dumps(content), check=True)
    monitoring = "/apis/monitoring.coreos.com/v1"
    paths = ("/apis/steward.dev/v1alpha1/topics", f"{monitoring}/servicemonitors", f"{monitoring}/prometheusrules")
    wait_until(
        lambda: all(kubernetes_api.get(path) is not None for path in paths), timeout_s=TIMEOUT_S, what="kinds served"
    )
    yield kubernetes_api
    kubernetes_api.kubectl("delete", f"--filename={PROMETHEUS}", "--wait=false")

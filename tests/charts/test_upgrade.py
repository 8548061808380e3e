"""`helm upgrade` from the last release on an API server: fields that cannot change stay as they were. Whole clusters are upgraded by e2e."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator

import pytest

from lab.downloads.helm import helm
from lab.peers.kubernetes import SHORT_LIVED, KubernetesApi
from lab.release.chart import CHART
from lab.release.commands import ROOT
from tests.charts.rendering import RELEASE, TIMEOUT_S

pytestmark = [pytest.mark.helm, pytest.mark.kubernetes]

PREVIOUS_CHART = ROOT / "e2e" / "previous" / "steward-0.1.0.tgz"

NAMESPACE = "upgraded"

STORAGE_CLASS = {
    "apiVersion": "storage.k8s.io/v1",
    "kind": "StorageClass",
    "metadata": {"name": "default", "annotations": {"storageclass.kubernetes.io/is-default-class": "true"}},
    "provisioner": "example.org/none",
}


@pytest.fixture
def release(api: KubernetesApi) -> Iterator[KubernetesApi]:
    """The last release's chart, installed."""
    api.kubectl("apply", "--filename=-", stdin=json.dumps(STORAGE_CLASS), check=True)
    run(api, "install", RELEASE, str(PREVIOUS_CHART), "--create-namespace", "--skip-crds")
    yield api
    run(api, "uninstall", RELEASE, "--no-hooks")
    api.kubectl("delete", "storageclass", "default", check=True)


def run(api: KubernetesApi, *arguments: str) -> str:
    """Run helm against the API server and return its output."""
    options = (f"--kubeconfig={api.kubeconfig}", f"--namespace={NAMESPACE}")
    done = subprocess.run(
        [helm(), *arguments, *options],
        capture_output=True,
        text=True,
        check=False,
        timeout=TIMEOUT_S,
        env={**os.environ, **SHORT_LIVED},
    )
    assert not done.returncode, done.stderr
    return done.stdout


def test_the_api_server_accepts_an_upgrade_from_the_last_release(release: KubernetesApi) -> None:
    """With the documented options; selectors of workloads and the fields of StatefulSets cannot change."""
    before = names(release)

    output = run(release, "upgrade", RELEASE, str(CHART), "--reset-then-reuse-values")

    assert f"clusters.steward.dev/{RELEASE}" in output
    assert before - names(release) == set()


def names(api: KubernetesApi) -> set[str]:
    """Return kind and name of the objects that hold data or addresses."""
    kinds = "statefulsets,deployments,services,leases,clusters.steward.dev"
    return set(api.kubectl(f"--namespace={NAMESPACE}", "get", kinds, "--output=name", check=True).stdout.split())

"""The API server of the tests on a live Kubernetes API."""

from __future__ import annotations

import pytest

from lab.peers.kubernetes import KubernetesApi


@pytest.fixture(scope="session")
def api(operators_api: KubernetesApi) -> KubernetesApi:
    """The API server, with Steward's kinds."""
    return operators_api

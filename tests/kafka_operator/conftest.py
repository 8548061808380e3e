"""The resources' definitions on the shared API server."""

from __future__ import annotations

import pytest

from lab.kubernetes import KubernetesApi
from tests.kafka_operator.live import install_crds


@pytest.fixture(scope="session")
def api(kubernetes_api: KubernetesApi) -> KubernetesApi:
    """The API server, serving our kinds."""
    install_crds(kubernetes_api)
    return kubernetes_api

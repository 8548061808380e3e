"""An API server of these tests' own: what they count and what they leave unreconciled, no other test's operator may touch."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from lab.kubernetes import KubernetesApi, kubernetes_api
from tests.kafka_operator.live import install_crds


@pytest.fixture(scope="package")
def api() -> Iterator[KubernetesApi]:
    """The API server, serving our kinds."""
    with kubernetes_api() as running:
        install_crds(running)
        yield running

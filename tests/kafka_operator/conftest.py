"""The operator, the brokers of its Clusters, and a namespace for each test."""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterator

import pytest

from lab.peers.cluster import KafkaCluster
from lab.peers.kubernetes import OPERATOR, KubernetesApi
from lab.peers.steward import StewardOperator
from tests.kafka_operator.live import Namespace
from tests.kafka_operator.makers import raw_cluster
from tests.kafka_operator.stock import Brokers, Stock

ROLE = f"""
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {{name: steward-operator-tests}}
rules:
  - {{apiGroups: [steward.dev], resources: ["*"], verbs: [get, list, watch, patch]}}
  - {{apiGroups: [steward.dev], resources: [reassignments], verbs: [create, approve, delete]}}
  - {{apiGroups: [steward.dev], resources: [elections], verbs: [delete]}}
  - {{apiGroups: [""], resources: [events], verbs: [create]}}
  - {{apiGroups: [""], resources: [configmaps], verbs: [get, create]}}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {{name: steward-operator-tests}}
roleRef: {{apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: steward-operator-tests}}
subjects: [{{apiGroup: rbac.authorization.k8s.io, kind: User, name: {OPERATOR}}}]
"""
"""All that the operator may do; no right on CRDs, namespaces or Secrets."""


@pytest.fixture(scope="session")
def api(operators_api: KubernetesApi) -> KubernetesApi:
    """The API server, with Steward's kinds."""
    return operators_api


@pytest.fixture(scope="module")
def operator(api: KubernetesApi, tmp_path_factory: pytest.TempPathFactory) -> Iterator[StewardOperator]:
    """The operator, with only the rights that it needs, and a resync every three seconds."""
    api.kubectl("apply", "-f", "-", stdin=ROLE, check=True)
    folder = tmp_path_factory.mktemp("operator")
    process = StewardOperator(api.kubeconfig_for(OPERATOR), folder, arguments=["--resync-interval-s=3"])
    process.start()
    yield process
    process.close()


@pytest.fixture(scope="module")
def kafka(kafka_cluster: KafkaCluster) -> Stock:
    """The stock cluster of three brokers."""
    return Stock(kafka_cluster.bootstrap())


@pytest.fixture(scope="module")
def brokers(kafka_cluster: KafkaCluster) -> Brokers:
    """The same cluster, for tests that restart and kill its brokers and leave them well again."""
    return kafka_cluster


@pytest.fixture
def shop(
    api: KubernetesApi, operator: StewardOperator, kafka: Stock, request: pytest.FixtureRequest
) -> Iterator[Namespace]:
    """A namespace of this test's own, with a Cluster that is Ready."""
    assert operator.ready
    message = re.sub("[^a-z0-9]+", "-", request.node.name.lower())
    # By the whole id: the same test may run on clusters of several kinds.
    made = Namespace(api, f"{zlib.crc32(request.node.nodeid.encode()):08x}-{message}"[:63].strip("-"))
    made.apply(raw_cluster("main", *kafka.bootstrap.split(",")))
    made.until("Cluster", "main", "True")
    yield made
    made.empty()

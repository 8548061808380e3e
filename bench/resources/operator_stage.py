"""A real API server with Steward's kinds and real Kafka, the set-up of every benchmark of the operator.

Kafka is 3.9 under a Steward controller (`operator_stage`), or 4.3 with its own quorum (`kafka_4_stage`).

Each side of a round has its own namespace, and the operator serves only one namespace, so that rounds do not affect each other.
"""

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from lab.peers.cluster import KafkaCluster, kafka_cluster
from lab.peers.kafka import SESSION_TIMEOUT_MS
from lab.peers.kraft import KraftCluster, kraft_cluster
from lab.peers.kubernetes import KubernetesApi, kubernetes_api
from lab.peers.steward import ROOT, StewardController, StewardOperator
from lab.peers.zookeeper import zookeeper_server
from lab.processes.folder import lab_folder

BROKERS = (1, 2, 3)
BROKER_HEAP = "512m"

ZOOKEEPER_HEAP = "512m"
"""A hundred thousand partitions have two hundred thousand znodes; the lab's 64 MB do not even hold a third of them."""

STARTED_AT_ONCE = 3
"""Brokers: more JVMs that start side by side on two cores lose their sessions."""


@dataclass
class Stage:
    """The running API server and brokers."""

    api: KubernetesApi
    kafka: KafkaCluster | KraftCluster
    folder: Path
    rounds: int = field(default=0, kw_only=True)

    def namespace(self, side: str) -> str:
        """Create the namespace of one round."""
        self.rounds += 1
        name = f"{side}-{self.rounds}"
        self.api.kubectl("create", "namespace", name, check=True)
        return name

    @contextlib.contextmanager
    def operator(self, namespace: str) -> Iterator[StewardOperator]:
        """Yield a running operator that serves a namespace."""
        process = StewardOperator(self.api.kubeconfig, self.folder / namespace, arguments=[f"--namespace={namespace}"])
        try:
            process.start()
            yield process
        finally:
            process.close()

    def connect(self, namespace: str) -> None:
        """Create a Cluster in a namespace and wait until it is Ready."""
        servers = ", ".join(self.kafka.bootstrap().split(","))
        cluster = (
            "{apiVersion: steward.dev/v1alpha1, kind: Cluster, metadata: {name: main}, spec: {bootstrapServers: [%s]}}"
        )
        self.api.kubectl(f"--namespace={namespace}", "apply", "-f", "-", stdin=cluster % servers, check=True)
        wait = ("wait", "clusters.steward.dev/main", "--for=condition=Ready", "--timeout=60s")
        self.api.kubectl(f"--namespace={namespace}", *wait, check=True)


@dataclass
class StewardStage(Stage):
    """The same with Kafka 3.9 and its controller."""

    kafka: KafkaCluster
    controller: StewardController


@contextlib.contextmanager
def kafka_4_stage() -> Iterator[Stage]:
    """Yield the stage with three brokers of Kafka 4.3, one of which is also the quorum; everything ends with the block."""
    with lab_folder(None) as folder, kubernetes_api(folder / "kubernetes") as api, kraft_cluster(BROKERS) as kafka:
        api.install_definitions(ROOT / "crds")
        yield Stage(api, kafka, folder)


@contextlib.contextmanager
def operator_stage(
    broker_ids: Sequence[int] = BROKERS,
    *,
    heap: str = BROKER_HEAP,
    settings: Mapping[str, str] | None = None,
    session_timeout_ms: int = SESSION_TIMEOUT_MS,
) -> Iterator[StewardStage]:
    """Yield the stage; everything ends with the block. `settings` are the brokers'."""
    with (
        lab_folder(None) as folder,
        kubernetes_api(folder / "kubernetes") as api,
        zookeeper_server(folder / "zookeeper", heap=ZOOKEEPER_HEAP) as zookeeper,
        kafka_cluster(
            broker_ids,
            start=False,
            zookeeper=zookeeper,
            folder=folder / "kafka",
            heap=heap,
            settings=settings,
            session_timeout_ms=session_timeout_ms,
        ) as kafka,
    ):
        controller = StewardController(kafka.zookeeper_connect, folder)
        try:
            controller.start()
            for first in range(0, len(broker_ids), STARTED_AT_ONCE):
                kafka.start_brokers(broker_ids[first : first + STARTED_AT_ONCE])
            api.install_definitions(ROOT / "crds")
            yield StewardStage(api, kafka, folder, controller)
        finally:
            controller.close()

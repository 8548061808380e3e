"""The processes of the demo: a Kubernetes API, ZooKeeper, Kafka brokers, Steward's controller and its operator."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from lab.demo.timeline import Timeline
from lab.peers.cluster import KafkaCluster, kafka_cluster
from lab.peers.kubernetes import KubernetesApi, kubernetes_api
from lab.peers.steward import StewardController, StewardOperator
from lab.processes.folder import lab_folder
from lab.processes.waiting import wait_until

ROOT = Path(__file__).resolve().parents[2]
CHROOT = "/kafka/demo"
SESSION_TIMEOUT_MS = 3000
FIRST_BROKERS = (1, 2, 3)
LAST_BROKER = 4
BROKERS = (*FIRST_BROKERS, LAST_BROKER)
TIMEOUT_S = 60.0
"""A generous limit for steps that take seconds, so that the demo fails instead of hanging."""
RESOURCES = "/apis/steward.dev/v1alpha1/namespaces/default"


@dataclass
class Stage:
    """The running processes."""

    api: KubernetesApi
    cluster: KafkaCluster
    controller: StewardController
    operator: StewardOperator

    def apply(self, document: Mapping[str, Any]) -> str:
        """Apply one resource with kubectl and return its output, whether the resource was accepted or not."""
        done = self.api.kubectl("apply", "-f", "-", stdin=json.dumps(document))
        return (done.stdout + done.stderr).strip()

    def resource(self, plural: str, name: str) -> dict[str, Any] | None:
        """Read one resource; None when it does not exist."""
        body = self.api.get(f"{RESOURCES}/{plural}/{name}")
        return None if body is None else json.loads(body)

    def condition(self, plural: str, name: str) -> dict[str, Any]:
        """Read a resource's Ready condition, empty while there is none for its current generation."""
        found = self.resource(plural, name) or {}
        status = found.get("status", {})
        if status.get("observedGeneration") != found.get("metadata", {}).get("generation"):
            return {}
        return next((condition for condition in status.get("conditions", []) if condition["type"] == "Ready"), {})

    def wait_for(self, plural: str, name: str, status: str = "True", reason: str | None = None) -> float:
        """Wait for a resource's Ready condition; returns the seconds it took."""
        return wait_until(
            lambda: (
                (found := self.condition(plural, name)).get("status") == status
                and reason in {None, found.get("reason")}
            ),
            timeout_s=TIMEOUT_S,
            what=f"{plural}/{name} with Ready={status}",
            context=lambda: str(self.resource(plural, name)),
        )

    def leaders(self, topic: str) -> dict[int, int]:
        """Read each partition's leader from ZooKeeper."""
        states = {
            partition: self.cluster.partition_state(topic, partition) for partition in self.cluster.assignment(topic)
        }
        return {partition: -1 if state is None else state["leader"] for partition, state in states.items()}

    def controller_seconds(self) -> float:
        """Seconds that the controller has spent on joined and lost brokers, from reading them to sending the requests."""
        return self.controller.metric('steward_controller_event_seconds_sum{event="BrokersRead"}') or 0.0


def example(name: str) -> dict[str, Any]:
    """Read one of the examples."""
    document: dict[str, Any] = yaml.safe_load((ROOT / "examples" / name).read_text("utf-8"))
    return document


@contextmanager
def stage(timeline: Timeline) -> Iterator[Stage]:
    """Start all processes, and end them with the block."""
    with (
        lab_folder() as folder,
        kubernetes_api(folder / "kubernetes") as api,
        kafka_cluster(
            BROKERS, start=False, folder=folder, chroot=CHROOT, session_timeout_ms=SESSION_TIMEOUT_MS
        ) as cluster,
    ):
        timeline.note("a Kubernetes API server (etcd, RBAC) and ZooKeeper are ready")
        controller = StewardController(cluster.zookeeper_connect, folder)
        operator = StewardOperator(api.kubeconfig, folder)
        try:
            with timeline.timed("steward controller started and took /controller, before any broker"):
                controller.start()
            with timeline.timed(f"three Kafka 3.9.2 brokers registered, with controller {controller.controller_id}"):
                cluster.start_brokers(FIRST_BROKERS)
            api.kubectl("apply", "-f", str(ROOT / "crds"), check=True)
            with timeline.timed("CRDs applied, steward operator started"):
                operator.start()
            yield Stage(api, cluster, controller, operator)
        finally:
            operator.close()
            controller.close()

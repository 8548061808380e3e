"""A StatefulSet of brokers on an API server that runs no pods: this module simulates its controller and the kubelet.

A pod of ordinal n represents broker n + 1 of a lab's cluster. When it is deleted, its broker gets SIGTERM, and the pod is removed
afterwards. Its successor, of the StatefulSet's current revision, is Ready when its broker is registered and serves. That is enough of
Kubernetes to see which pods the operator deletes, and when.
"""

from __future__ import annotations

import json
import threading
from datetime import UTC, datetime
from typing import Any, Self

from lab.peers.cluster import KafkaCluster
from lab.peers.kraft import KraftCluster
from lab.peers.kubernetes import KubernetesApi
from lab.processes.waiting import wait_until

NAME = "main-broker"
LABELS = {"app.kubernetes.io/component": "broker"}
POLL_S = 0.1
STOP_TIMEOUT_S = 60.0

MAX_PODS = 20
"""Nodes, one for each pod: more than the tests replace, created by one call."""

Raw = dict[str, Any]


class PodStandIn:
    """The StatefulSet, its pods and nodes; as a context manager it simulates their controllers until the block ends."""

    def __init__(self, api: KubernetesApi, namespace: str, cluster: KafkaCluster | KraftCluster) -> None:
        self.namespace = namespace
        self.deleted: list[str] = []
        """The pods that were deleted, in order."""
        self.replaces = True
        """Whether brokers are stopped and started with their pods."""
        self._api = api
        self._cluster = cluster
        self._revision = 1
        self._nodes = [f"{namespace}-node-{number}" for number in range(MAX_PODS)]
        self._unused = iter(self._nodes)
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._play, name="pod-stand-in", daemon=True)
        ordinals = range(len(cluster.brokers))
        self._create_set(len(ordinals))
        self._create(*({"apiVersion": "v1", "kind": "Node", "metadata": {"name": node}} for node in self._nodes))
        self._create(*map(self._pod, ordinals))
        for ordinal in ordinals:
            self._say_ready(ordinal)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopping.set()
        self._thread.join(STOP_TIMEOUT_S)

    def roll(self) -> None:
        """Set another revision, as after a change of the template."""
        self._revision += 1
        self._write_status()

    def node_of(self, ordinal: int) -> str:
        """Return the node of a pod."""
        return str(self.pods()[ordinal]["spec"]["nodeName"])

    def revisions(self) -> list[str]:
        """Return the Ready pods' revisions, by ordinal; empty for a pod that is not Ready."""
        return [
            pod["metadata"]["labels"]["controller-revision-hash"] if pod.get("status", {}).get("conditions") else ""
            for _, pod in sorted(self.pods().items())
        ]

    def replicas(self) -> int:
        """Return the number of pods in the StatefulSet's spec."""
        return int(self._set()["spec"]["replicas"])

    def pods(self) -> dict[int, Raw]:
        """Return the pods by ordinal."""
        items = self._read(f"/api/v1/namespaces/{self.namespace}/pods")["items"]
        return {int(pod["metadata"]["name"].rpartition("-")[2]): pod for pod in items}

    def _play(self) -> None:
        while not self._stopping.wait(POLL_S):
            pods = self.pods()
            wanted = self.replicas()
            for ordinal, pod in pods.items():
                if "deletionTimestamp" in pod["metadata"]:
                    self.deleted.append(pod["metadata"]["name"])
                    self._end(ordinal)
                    if ordinal < wanted:
                        self._begin(ordinal)
                elif ordinal >= wanted:
                    self._kubectl("delete", "pod", pod["metadata"]["name"], "--wait=false")
            for ordinal in range(wanted):
                if ordinal not in pods:
                    self._begin(ordinal)

    def _end(self, ordinal: int) -> None:
        if self.replaces:
            self._cluster.broker(ordinal + 1).stop()
        self._kubectl("delete", "pod", f"{NAME}-{ordinal}", "--grace-period=0", "--force")

    def _begin(self, ordinal: int) -> None:
        self._create(self._pod(ordinal))
        if self.replaces:
            self._cluster.broker(ordinal + 1).start()
        self._say_ready(ordinal)

    def _pod(self, ordinal: int) -> Raw:
        """Return a new pod, on an unused node."""
        owner = {"apiVersion": "apps/v1", "kind": "StatefulSet", "name": NAME, "controller": True}
        return {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {
                "name": f"{NAME}-{ordinal}",
                "namespace": self.namespace,
                "labels": {**LABELS, "controller-revision-hash": self._revision_name},
                "ownerReferences": [{**owner, "uid": self._set()["metadata"]["uid"]}],
            },
            "spec": {
                "nodeName": next(self._unused),
                "containers": [{"name": "broker", "image": "kafka"}],
                "tolerations": [{"operator": "Exists"}],
            },
        }

    def _say_ready(self, ordinal: int) -> None:
        condition = {"type": "Ready", "status": "True", "lastTransitionTime": _now()}
        patch = json.dumps({"status": {"phase": "Running", "conditions": [condition]}})
        self._kubectl("patch", "pod", f"{NAME}-{ordinal}", "--subresource=status", "--type=merge", f"--patch={patch}")

    def _create_set(self, replicas: int) -> None:
        template = {"metadata": {"labels": LABELS}, "spec": {"containers": [{"name": "broker", "image": "kafka"}]}}
        self._create(
            {
                "apiVersion": "apps/v1",
                "kind": "StatefulSet",
                "metadata": {
                    "name": NAME,
                    "namespace": self.namespace,
                    "labels": {"steward.dev/cluster": "main"},
                },
                "spec": {
                    "replicas": replicas,
                    "serviceName": "main-brokers",
                    "selector": {"matchLabels": LABELS},
                    "template": template,
                    "updateStrategy": {"type": "OnDelete"},
                },
            }
        )
        self._write_status()

    def _write_status(self) -> None:
        """Write the current revision and the observed generation."""
        status = {
            "replicas": self.replicas(),
            "updateRevision": self._revision_name,
            "observedGeneration": self._set()["metadata"]["generation"],
        }
        patch = json.dumps({"status": status})
        self._kubectl("patch", "statefulset", NAME, "--subresource=status", "--type=merge", f"--patch={patch}")

    @property
    def _revision_name(self) -> str:
        return f"{NAME}-rev{self._revision}"

    def _set(self) -> Raw:
        return self._read(f"/apis/apps/v1/namespaces/{self.namespace}/statefulsets/{NAME}")

    def _read(self, path: str) -> Raw:
        found: list[bytes | None] = [None]

        def holds() -> bool:
            found[0] = self._api.get(path)
            return found[0] is not None

        wait_until(holds, timeout_s=STOP_TIMEOUT_S, what=path)
        return dict(json.loads(found[0] or b"{}"))

    def _create(self, *raws: Raw) -> None:
        listed = {"apiVersion": "v1", "kind": "List", "items": raws}
        self._kubectl("create", "--filename=-", stdin=json.dumps(listed))

    def _kubectl(self, *arguments: str, stdin: str | None = None) -> None:
        self._api.kubectl(f"--namespace={self.namespace}", *arguments, stdin=stdin, check=True)


def _now() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")

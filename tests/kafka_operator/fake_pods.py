"""The PodKube port in memory: a StatefulSet, its pods and their nodes, with a simulated controller and kubelet on virtual time.

A deleted pod ends after `STOP_S`, is recreated with the current revision, and becomes Ready after `START_S`, when its broker is alive.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

from kafka_operator.resources.pods import Pod, PodSet
from reconciler.kube.port import ConflictError, KubeError, NotFoundError
from reconciler.resources.metadata import RawObject, write_time
from tests.kafka_operator.fake_kafka import FakeKafka
from tests.reconciler.documents import copied
from tests.reconciler.fake_kube import _now as now

STOP_S, START_S = 2.0, 4.0

Raw = dict[str, Any]


class FakePods:
    """StatefulSet `main-broker` whose pod of ordinal n is broker n + 1 of a fake cluster, on node-n."""

    def __init__(self, kafka: FakeKafka, replicas: int) -> None:
        self.kafka = kafka
        self.replicas = replicas
        self.revision = "rev-1"
        self.labels = {"steward.dev/cluster": "main"}
        """Labels of the StatefulSet."""
        self.start_s = START_S
        self.starts = True
        """Whether new pods become Ready."""
        self.pods: dict[int, Raw] = {}
        self.nodes: dict[str, Raw] = {}
        self.deleted: list[str] = []
        self.failures: list[KubeError] = []
        self.max_not_ready = 0
        """Maximum number of pods that were not Ready at the same time."""
        self._created = 0
        self._tasks: set[asyncio.Task[None]] = set()
        for ordinal in range(replicas):
            self._create(ordinal, ready=True)
        self._update_brokers()

    def roll(self) -> None:
        """Change the StatefulSet's template."""
        self.revision = f"rev-{int(self.revision[4:]) + 1}"

    def cordon(self, ordinal: int) -> None:
        """`kubectl cordon` the node of a pod."""
        self.nodes[self.pods[ordinal]["spec"]["nodeName"]]["spec"]["unschedulable"] = True

    @property
    def revisions(self) -> list[str]:
        """The pods' revisions by ordinal; empty for one that is not Ready."""
        return [
            self.pods[ordinal]["metadata"]["labels"]["controller-revision-hash"] if self._ready(ordinal) else ""
            for ordinal in sorted(self.pods)
        ]

    async def get_stateful_set(self, namespace: str, name: str) -> RawObject:
        await self._called()
        if (namespace, name) != ("shop", "main-broker"):
            raise NotFoundError(name)
        return {
            "metadata": {
                "name": name,
                "uid": "uid-set",
                "resourceVersion": str(self.replicas),
                "generation": 1,
                "labels": dict(self.labels),
            },
            "spec": {
                "replicas": self.replicas,
                "selector": {"matchLabels": {"app": "broker"}},
                "updateStrategy": {"type": "OnDelete"},
            },
            "status": {"updateRevision": self.revision, "observedGeneration": 1},
        }

    async def list_pods(self, namespace: str, labels: Mapping[str, str]) -> Sequence[RawObject]:
        await self._called()
        assert (namespace, labels) == ("shop", {"app": "broker"})
        return copied(list(self.pods.values()))

    async def get_node(self, name: str) -> RawObject:
        await self._called()
        return copied(self.nodes[name])

    async def delete_pod(self, namespace: str, pod: Pod) -> None:
        await self._called()
        assert namespace == "shop"
        ordinal = pod.node_id - 1
        current = self.pods.get(ordinal)
        if current is None or current["metadata"]["uid"] != pod.uid:
            raise ConflictError(pod.name)
        self.deleted.append(pod.name)
        self._spawn(self._replace(ordinal))

    async def scale(self, namespace: str, pod_set: PodSet, replicas: int) -> None:
        await self._called()
        assert ("shop", str(self.replicas)) == (namespace, pod_set.resource_version)
        self.set_replicas(replicas)

    def set_replicas(self, replicas: int) -> None:
        """Change the number of replicas, as the operator or a user does."""
        self.replicas = replicas
        for ordinal in [ordinal for ordinal in self.pods if ordinal >= replicas]:
            self._spawn(self._replace(ordinal))
        for ordinal in range(replicas):
            if ordinal not in self.pods:
                self._create(ordinal, ready=False)
                self._spawn(self._start(ordinal))

    async def _replace(self, ordinal: int) -> None:
        self.pods[ordinal]["metadata"]["deletionTimestamp"] = write_time(now())
        self._update_brokers()
        await asyncio.sleep(STOP_S)
        del self.pods[ordinal]
        if ordinal < self.replicas:
            await asyncio.sleep(0.1)
            self._create(ordinal, ready=False)
            await self._start(ordinal)

    async def _start(self, ordinal: int) -> None:
        await asyncio.sleep(self.start_s)
        if self.starts and ordinal in self.pods:
            condition = {"type": "Ready", "status": "True", "lastTransitionTime": write_time(now())}
            self.pods[ordinal]["status"]["conditions"] = [condition]
            self._update_brokers()

    def _create(self, ordinal: int, *, ready: bool) -> None:
        self._created += 1
        node = f"node-{ordinal}"
        if self.nodes.setdefault(node, {"spec": {}})["spec"].get("unschedulable"):
            node = f"node-{ordinal}-{self._created}"
            self.nodes[node] = {"spec": {}}
        created = write_time(now())
        conditions = [{"type": "Ready", "status": "True", "lastTransitionTime": created}] if ready else []
        self.pods[ordinal] = {
            "metadata": {
                "name": f"main-broker-{ordinal}",
                "uid": f"uid-{self._created}",
                "resourceVersion": "1",
                "creationTimestamp": created,
                "labels": {"controller-revision-hash": self.revision},
                "ownerReferences": [{"uid": "uid-set", "controller": True}],
            },
            "spec": {"nodeName": node},
            "status": {"conditions": conditions},
        }

    def _update_brokers(self) -> None:
        self.kafka.broker_ids = tuple(ordinal + 1 for ordinal in sorted(self.pods) if self._ready(ordinal))
        self.max_not_ready = max(self.max_not_ready, sum(not self._ready(ordinal) for ordinal in self.pods))

    def _ready(self, ordinal: int) -> bool:
        pod = self.pods[ordinal]
        return bool(pod["status"]["conditions"]) and "deletionTimestamp" not in pod["metadata"]

    async def _called(self) -> None:
        await asyncio.sleep(0.001)
        if self.failures:
            raise self.failures.pop(0)

    def _spawn(self, work: Any) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

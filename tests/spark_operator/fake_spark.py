"""The SparkKube port in memory: pods with a simulated kubelet on virtual time, runs of schedules, and Kubeflow's resources.

Each attempt of a driver follows a script. All created drivers are recorded, for O11.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from reconciler.kube.port import ConflictError, KubeError, NotFoundError, RefusedError
from reconciler.names import Key
from reconciler.resources.metadata import RawObject
from spark_operator import kinds
from spark_operator.names import SPARK_APPLICATION_LABEL, SPARK_ATTEMPT_LABEL, SPARK_ROLE_LABEL
from spark_operator.resources.pods import DRIVER_CONTAINER, EXECUTOR_CONTAINER
from tests.reconciler.documents import copied
from tests.reconciler.fake_kube import FakeKube
from tests.reconciler.gate import Gate

START_S, RUN_S, STOP_S = 1.0, 4.0, 1.5
"""Seconds until a created pod runs, a running driver ends, and a deleted pod is gone."""

T = TypeVar("T")
Raw = dict[str, Any]


@dataclass(frozen=True)
class DriverScript:
    """Course of one attempt: whether the driver starts, how it ends, and the states of its executors."""

    exit_code: int | None = 0
    """None: it runs until it is deleted."""
    reason: str = "Completed"
    waiting: str = ""
    """Reason for which it never starts."""
    pod_reason: str = ""
    """Reason of the pod as a whole, such as Evicted."""
    executors: int = 0
    executor_reason: str = ""
    message: str = ""
    """Termination message of the driver."""


SUCCEEDS = DriverScript(executors=2)
FAILS = DriverScript(exit_code=1, reason="Error")
OUT_OF_MEMORY = DriverScript(exit_code=137, reason="OOMKilled", executors=2)
RUNS_FOREVER = DriverScript(exit_code=None, executors=2)


class FakeSpark:
    """Pods of one API server."""

    def __init__(self, kube: FakeKube, gate: Gate) -> None:
        self.kube = kube
        self.gate = gate
        self.pods: dict[tuple[str, str], Raw] = {}
        self.scripts: list[DriverScript] = []
        """By attempt; the last one applies to all further attempts, and `SUCCEEDS` if there is none."""
        self.refusals: list[KubeError] = []
        """Raised by the next creations of a pod."""
        self.created: list[tuple[str, int]] = []
        """Uid of the application and number of the attempt, for each created driver."""
        self.max_alive_drivers = 0
        """Maximum number of drivers of one application that were alive at the same time."""
        self.kubeflow: dict[tuple[str, str], Raw] = {}
        self.log = "Traceback: the last line\n"
        self._serial = 0
        self._tasks: set[asyncio.Task[None]] = set()

    # Actions of Kubernetes and of users.

    def drivers(self) -> list[Raw]:
        """Return the existing driver pods."""
        self._collect()
        return [pod for pod in self.pods.values() if pod["metadata"]["labels"][SPARK_ROLE_LABEL] == "driver"]

    def executors(self) -> list[Raw]:
        """Return the existing executor pods."""
        self._collect()
        return [pod for pod in self.pods.values() if pod["metadata"]["labels"][SPARK_ROLE_LABEL] == "executor"]

    def remove(self, name: str, namespace: str = "shop") -> None:
        """Delete a pod at once, as a forced deletion or the loss of its node does."""
        self.pods.pop((namespace, name), None)

    # Calls of the operator.

    async def list_pods(self, namespace: str) -> Sequence[RawObject]:
        def effect() -> list[Raw]:
            return [copied(pod) for (place, _), pod in self.pods.items() if place == namespace]

        return await self._call("list pods", effect)

    async def get_pod(self, namespace: str, name: str) -> RawObject:
        return await self._call(f"get pod {name}", lambda: copied(self._pod(namespace, name)))

    async def create_pod(self, manifest: RawObject) -> RawObject:
        metadata = manifest["metadata"]

        def effect() -> RawObject:
            if self.refusals:
                raise self.refusals.pop(0)
            where = (metadata["namespace"], metadata["name"])
            if where in self.pods:
                raise ConflictError(f"pod {where} exists")
            uid, attempt = metadata["labels"][SPARK_APPLICATION_LABEL], int(metadata["labels"][SPARK_ATTEMPT_LABEL])
            self.created.append((uid, attempt))
            pod = self._keep(dict(copied(manifest)))
            self.max_alive_drivers = max(self.max_alive_drivers, len(self._alive(uid)))
            self._spawn(self._run_pod(where, pod, self._script(attempt)))
            return copied(pod)

        return await self._call(f"create pod {metadata['name']}", effect)

    async def delete_pod(self, namespace: str, name: str, uid: str) -> None:
        def effect() -> None:
            pod = self._pod(namespace, name)
            if pod["metadata"]["uid"] != uid:
                raise ConflictError(f"pod {name} is another one")
            if "deletionTimestamp" not in pod["metadata"]:
                pod["metadata"]["deletionTimestamp"] = "2026-01-01T12:00:00Z"
                self._spawn(self._terminate((namespace, name), pod))

        await self._call(f"delete pod {name}", effect)

    async def read_log(self, namespace: str, name: str, container: str, lines: int) -> str:
        assert container == DRIVER_CONTAINER

        def effect() -> str:
            self._pod(namespace, name)
            return "".join(self.log.splitlines(keepends=True)[-lines:])

        return await self._call(f"get log {name}", effect)

    async def create_run(self, key: Key, content: RawObject) -> RawObject:
        def effect() -> RawObject:
            if key in self.kube.objects:
                raise ConflictError(f"{key} exists")
            named = {"namespace": key.namespace, "name": key.name}
            self.kube.apply(
                {"kind": key.kind.name, "metadata": {**content["metadata"], **named}, "spec": content["spec"]}
            )
            return copied(self.kube.objects[key])

        return await self._call(f"create run {key.name}", effect)

    async def delete_run(self, key: Key, uid: str) -> None:
        def effect() -> None:
            if key not in self.kube.objects:
                raise NotFoundError(str(key))
            if self.kube.objects[key]["metadata"]["uid"] != uid:
                raise ConflictError(f"{key} is another one")
            self.kube.delete(key)

        await self._call(f"delete run {key.name}", effect)

    async def get_kubeflow(self, namespace: str, name: str) -> RawObject:
        def effect() -> RawObject:
            if (namespace, name) not in self.kubeflow:
                raise NotFoundError(name)
            return copied(self.kubeflow[namespace, name])

        return await self._call(f"get kubeflow {name}", effect)

    async def create_kubeflow(self, manifest: RawObject) -> None:
        where = (manifest["metadata"]["namespace"], manifest["metadata"]["name"])

        def effect() -> None:
            if self.refusals:
                raise self.refusals.pop(0)
            if where in self.kubeflow:
                raise ConflictError(str(where))
            held = copied(dict(manifest))
            held["metadata"]["resourceVersion"] = "1"
            self.kubeflow[where] = held

        await self._call(f"create kubeflow {where[1]}", effect)

    async def suspend_kubeflow(self, namespace: str, name: str, version: str, *, suspend: bool) -> None:
        def effect() -> None:
            held = self.kubeflow[namespace, name]
            if held["metadata"]["resourceVersion"] != version:
                raise ConflictError(name)
            held["spec"]["suspend"] = suspend

        await self._call(f"patch kubeflow {name}", effect)

    async def _call(self, name: str, effect: Callable[[], T]) -> T:
        await asyncio.sleep(0.001)
        self._collect()
        return self.gate.call(f"kube {name}", effect)

    def _script(self, attempt: int) -> DriverScript:
        return self.scripts[min(attempt, len(self.scripts)) - 1] if self.scripts else SUCCEEDS

    def _pod(self, namespace: str, name: str) -> Raw:
        if (namespace, name) not in self.pods:
            raise NotFoundError(f"pod {name}")
        return self.pods[namespace, name]

    def _alive(self, uid: str) -> list[Raw]:
        own = [pod for pod in self.drivers() if pod["metadata"]["labels"][SPARK_APPLICATION_LABEL] == uid]
        return [pod for pod in own if pod["status"]["phase"] in {"Pending", "Running"}]

    def _keep(self, pod: Raw) -> Raw:
        self._serial += 1
        pod["metadata"]["uid"] = f"pod-{self._serial}"
        pod["status"] = {"phase": "Pending"}
        self.pods[pod["metadata"]["namespace"], pod["metadata"]["name"]] = pod
        return pod

    async def _run_pod(self, where: tuple[str, str], pod: Raw, script: DriverScript) -> None:
        await asyncio.sleep(START_S)
        if script.waiting == "Unschedulable":
            condition = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "0/3 nodes"}
            pod["status"]["conditions"] = [condition]
            return
        if script.waiting:
            _contain(pod, DRIVER_CONTAINER, waiting={"reason": script.waiting, "message": "not found"})
            return
        pod["status"]["phase"] = "Running"
        _contain(pod, DRIVER_CONTAINER, running={})
        made = [self._executor(where, pod, index, script) for index in range(script.executors)]
        if script.exit_code is None:
            return
        await asyncio.sleep(RUN_S)
        if "deletionTimestamp" in pod["metadata"] or self.pods.get(where) is not pod:
            return
        pod["status"]["phase"] = "Failed" if script.exit_code else "Succeeded"
        if script.pod_reason:
            pod["status"] |= {"reason": script.pod_reason, "message": "The node was low on memory"}
        _contain(pod, DRIVER_CONTAINER, terminated=_terminated(script))
        if not script.exit_code:
            for executor in made:
                executor["status"]["phase"] = "Succeeded"

    def _executor(self, where: tuple[str, str], driver: Raw, index: int, script: DriverScript) -> Raw:
        labels = {**driver["metadata"]["labels"], SPARK_ROLE_LABEL: "executor"}
        owners = [{"uid": driver["metadata"]["uid"], "controller": True}]
        name = f"{where[1]}-exec-{index}"
        metadata = {"namespace": where[0], "name": name, "labels": labels, "ownerReferences": owners}
        pod = self._keep({"metadata": metadata})
        pod["status"]["phase"] = "Running"
        if script.executor_reason == "Evicted" and index == 0:
            pod["status"] = {"phase": "Failed", "reason": "Evicted", "message": "The node was low on memory"}
        elif script.executor_reason and index == 0:
            pod["status"]["phase"] = "Failed"
            _contain(pod, EXECUTOR_CONTAINER, terminated={"reason": script.executor_reason, "exitCode": 137})
        return pod

    async def _terminate(self, where: tuple[str, str], pod: Raw) -> None:
        await asyncio.sleep(STOP_S)
        if self.pods.get(where) is pod:
            del self.pods[where]

    def _collect(self) -> None:
        """Delete pods whose owners no longer exist, as Kubernetes' garbage collector does."""
        while True:
            uids = {held["metadata"]["uid"] for held in (*self.kube.objects.values(), *self.pods.values())}
            orphans = [
                where
                for where, pod in self.pods.items()
                if all(owner["uid"] not in uids for owner in pod["metadata"].get("ownerReferences", [{"uid": ""}]))
            ]
            for where in orphans:
                del self.pods[where]
            if not orphans:
                return

    def _spawn(self, work: Any) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


def _terminated(script: DriverScript) -> Raw:
    message = {"message": script.message} if script.message else {}
    return {"reason": script.reason, "exitCode": script.exit_code, **message}


def _contain(pod: Raw, name: str, **state: Raw) -> None:
    pod["status"]["containerStatuses"] = [{"name": name, "state": state}]


def missing_account() -> RefusedError:
    """Response of the API server to a pod whose service account does not exist (admission plugin ServiceAccount)."""
    message = 'pods "x" is forbidden: error looking up service account shop/spark: serviceaccount "spark" not found'
    return RefusedError(f"POST /api/v1/namespaces/shop/pods: 403 {message}")


APPLICATION = Key(kinds.SPARK_APPLICATION, "shop", "pi")
SCHEDULE = Key(kinds.SCHEDULED_SPARK_APPLICATION, "shop", "nightly")

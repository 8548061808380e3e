"""A stand-in for the kubelet on an API server without nodes: it brings drivers' pods to where a test wants them."""

from __future__ import annotations

import json
import threading
from typing import Any

from kafka_operator.names import SPARK_ROLE_LABEL
from kafka_operator.resources.spark_pods import DRIVER_CONTAINER
from lab.kubernetes import KubernetesApi

LOOK_S = 0.2

WELL = ({"running": {}}, {"terminated": {"exitCode": 0, "reason": "Completed"}})
FAILS = ({"running": {}}, {"terminated": {"exitCode": 1, "reason": "Error"}})
FOR_EVER = ({"running": {}},)
NO_IMAGE = ({"waiting": {"reason": "ImagePullBackOff", "message": "Back-off pulling image"}},)
"""States that a driver's container goes through, a look each; the last one stays."""


class Kubelet:
    """Plays one step of each driver's pod with each look; `fates` has the states by the beginning of the pod's name."""

    def __init__(self, api: KubernetesApi, namespace: str) -> None:
        self.api = api
        self.namespace = namespace
        self.fates: dict[str, tuple[dict[str, Any], ...]] = {}
        self.seen: dict[str, int] = {}
        """How many states each pod has gone through, by uid."""
        self.names: list[str] = []
        """Every driver that there ever was, in the order in which they were seen."""
        self._ends = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def start(self) -> None:
        """Begin to look."""
        self._thread.start()

    def close(self) -> None:
        """End, and wait for it."""
        self._ends.set()
        self._thread.join()

    def drivers(self) -> list[dict[str, Any]]:
        """Return the drivers' pods that are there."""
        found = self.api.get(f"/api/v1/namespaces/{self.namespace}/pods?labelSelector={SPARK_ROLE_LABEL}%3Ddriver")
        return [] if found is None else json.loads(found)["items"]

    def _run(self) -> None:
        while not self._ends.wait(LOOK_S):
            for pod in self.drivers():
                self._step(pod["metadata"]["name"], pod["metadata"]["uid"])

    def _step(self, name: str, uid: str) -> None:
        if uid not in self.seen:
            self.names.append(name)
        states = next((states for start, states in self.fates.items() if name.startswith(start)), WELL)
        step = self.seen.get(uid, 0)
        self.seen[uid] = step + 1
        if step >= len(states):
            return
        state = states[step]
        phase = "Pending" if "waiting" in state else "Running"
        if "terminated" in state:
            phase = "Failed" if state["terminated"]["exitCode"] else "Succeeded"
        container = {
            "name": DRIVER_CONTAINER,
            "state": state,
            "ready": False,
            "restartCount": 0,
            "image": "spark:1",
            "imageID": "",
        }
        patch = {"status": {"phase": phase, "containerStatuses": [container]}}
        self.api.kubectl(
            f"--namespace={self.namespace}",
            "patch",
            "pod",
            name,
            "--subresource=status",
            "--type=merge",
            f"--patch={json.dumps(patch)}",
        )

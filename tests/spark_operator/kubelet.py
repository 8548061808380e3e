"""A simulated kubelet for an API server without nodes: it sets the states of drivers' pods as tests define them."""

from __future__ import annotations

import json
import threading
from typing import Any

from lab.peers.kubernetes import KubernetesApi
from spark_operator.names import SPARK_ROLE_LABEL
from spark_operator.resources.pods import DRIVER_CONTAINER

POLL_INTERVAL_S = 0.2

SUCCEEDS = ({"running": {}}, {"terminated": {"exitCode": 0, "reason": "Completed"}})
FAILS = ({"running": {}}, {"terminated": {"exitCode": 1, "reason": "Error"}})
RUNS_FOREVER = ({"running": {}},)
NO_IMAGE = ({"waiting": {"reason": "ImagePullBackOff", "message": "Back-off pulling image"}},)
"""States of a driver's container, one per poll; the last one stays."""


class Kubelet:
    """Sets the next state of each driver's pod at each poll; `scripts` has the states by prefix of the pod's name."""

    def __init__(self, api: KubernetesApi, namespace: str) -> None:
        self.api = api
        self.namespace = namespace
        self.scripts: dict[str, tuple[dict[str, Any], ...]] = {}
        self.seen: dict[str, int] = {}
        """Number of states that each pod has had, by uid."""
        self.names: list[str] = []
        """All drivers that ever existed, in the order in which they were read."""
        self._ends = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def start(self) -> None:
        """Start polling."""
        self._thread.start()

    def close(self) -> None:
        """Stop polling."""
        self._ends.set()
        self._thread.join()

    def drivers(self) -> list[dict[str, Any]]:
        """Return the existing driver pods."""
        found = self.api.get(f"/api/v1/namespaces/{self.namespace}/pods?labelSelector={SPARK_ROLE_LABEL}%3Ddriver")
        return [] if found is None else json.loads(found)["items"]

    def _run(self) -> None:
        while not self._ends.wait(POLL_INTERVAL_S):
            for pod in self.drivers():
                self._step(pod["metadata"]["name"], pod["metadata"]["uid"])

    def _step(self, name: str, uid: str) -> None:
        if uid not in self.seen:
            self.names.append(name)
        states = next((states for start, states in self.scripts.items() if name.startswith(start)), SUCCEEDS)
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

"""Faults: signals to a pod's processes, from a privileged pod on each node that sees all of its processes.

They work in any cluster, because they need no access to the machine below the nodes.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from e2e.images import STEWARD
from e2e.kube import Kube, Resource
from lab.errors import LabError

NAMESPACE = "e2e-faults"

NAME = "faults"

READY_TIMEOUT_S = 90

LARGEST_DISK_MIB = 1024
"""A larger one is not filled: it would take the machine's memory."""

FILLER = "filler"

FILL = (
    f'for volume in "$1"/*; do '
    f'[ "$(stat --file-system --format=%T "$volume")" = tmpfs ] || {{ echo "$volume is no tmpfs" >&2; exit 1; }}; '
    f'free=$(df --block-size=1M --output=avail "$volume" | tail -1); '
    f'[ "$free" -le {LARGEST_DISK_MIB} ] || {{ echo "$volume has $free MiB free" >&2; exit 1; }}; '
    f'dd if=/dev/zero of="$volume/{FILLER}" bs=64K 2>/dev/null || true; done'
)

FREE = f'rm --force "$1"/*/{FILLER}'

SCRIPT = Path(__file__).parent / "pods" / "signals.py"


class Faults:
    """Faults for the pods of one cluster."""

    def __init__(self, kube: Kube) -> None:
        self._kube = kube.within(NAMESPACE)

    def install(self) -> None:
        """Start a pod on each node."""
        labels = {f"pod-security.kubernetes.io/{mode}": "privileged" for mode in ("enforce", "warn", "audit")}
        self._kube.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE, "labels": labels}})
        self._kube.apply(_scripts(), _daemons())
        self._kube.wait_rolled_out(f"daemonset/{NAME}", timeout_s=READY_TIMEOUT_S)

    def uninstall(self) -> None:
        """Delete all of it; a cluster that existed before is left unchanged."""
        self._kube.delete("namespace", NAMESPACE, "--wait=false")

    def kill(self, pod: Resource) -> None:
        """Kill -9 a pod's processes; the kubelet starts them again in the same pod."""
        self.signal(pod, "SIGKILL")

    def pause(self, pod: Resource) -> None:
        """Freeze a pod's main processes."""
        self.signal(pod, "SIGSTOP")

    def resume(self, pod: Resource) -> None:
        """Continue a pod's main processes."""
        self.signal(pod, "SIGCONT")

    def signal(self, pod: Resource, name: str) -> None:
        """Send a signal to the main processes of a pod; a `LabError` when it has none at the moment."""
        if self._reach(pod, name) == 0:
            raise LabError(f"{pod['metadata']['name']} has no process that {name} could reach")

    def is_running(self, pod: Resource) -> bool:
        """Whether a pod has main processes: none while the kubelet waits before it starts a container again."""
        return self._reach(pod, "SIGCONT") > 0

    def _reach(self, pod: Resource, name: str) -> int:
        # A pod that the kubelet runs by itself is known on its node by the hash of its file.
        uid = pod["metadata"].get("annotations", {}).get("kubernetes.io/config.hash", pod["metadata"]["uid"])
        return int(self._on_node(pod["spec"]["nodeName"], "python3", "/scripts/signals.py", uid, name))

    def cut_off(self, pod: Resource) -> None:
        """Drop all traffic between a pod and other pods."""
        self._firewall(pod, "--insert")

    def reconnect(self, pod: Resource) -> None:
        """Allow the traffic again."""
        self._firewall(pod, "--delete")

    def fill_disk(self, pod: Resource) -> None:
        """Fill a pod's volume; only a small volume in memory, otherwise a `LabError`."""
        self._disk(pod, FILL)

    def free_disk(self, pod: Resource) -> None:
        """Delete the file that fills the volume."""
        self._disk(pod, FREE)

    def _disk(self, pod: Resource, script: str) -> None:
        volumes = f"/var/lib/kubelet/pods/{pod['metadata']['uid']}/volumes/kubernetes.io~local-volume"
        self.on_host(pod["spec"]["nodeName"], "sh", "-ec", script, "disk", volumes)

    def _firewall(self, pod: Resource, action: str) -> None:
        for direction in ("--source", "--destination"):
            rule = ["FORWARD", direction, pod["status"]["podIP"], "--jump", "DROP"]
            self.on_host(pod["spec"]["nodeName"], "iptables", "--wait", action, *rule)

    def on_host(self, node: str, *command: str) -> str:
        """Run one of a node's own programs as its root."""
        return self._on_node(node, "nsenter", "--target=1", "--mount", "--net", "--pid", "--", *command)

    def _on_node(self, node: str, *command: str) -> str:
        pods = self._kube.items("pods", f"app={NAME}")
        name = next(pod["metadata"]["name"] for pod in pods if pod["spec"]["nodeName"] == node)
        return self._kube.execute(name, *command)


def _scripts() -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": NAME},
        "data": {SCRIPT.name: SCRIPT.read_text("utf-8")},
    }


def _daemons() -> dict[str, Any]:
    container = {
        "name": NAME,
        "image": STEWARD,
        "imagePullPolicy": "IfNotPresent",
        "command": ["sleep", "infinity"],
        "securityContext": {"privileged": True, "runAsUser": 0, "runAsGroup": 0},
        "volumeMounts": [{"name": "scripts", "mountPath": "/scripts"}],
    }
    pod = {
        "hostPID": True,
        "tolerations": [{"operator": "Exists"}],
        "terminationGracePeriodSeconds": 0,
        "containers": [container],
        "volumes": [{"name": "scripts", "configMap": {"name": NAME}}],
    }
    return {
        "apiVersion": "apps/v1",
        "kind": "DaemonSet",
        "metadata": {"name": NAME},
        "spec": {
            "selector": {"matchLabels": {"app": NAME}},
            "template": {"metadata": {"labels": {"app": NAME}}, "spec": pod},
        },
    }

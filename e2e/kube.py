"""A cluster through kubectl: read, apply, wait."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from e2e.command import TIMEOUT_S, attempt, run
from lab.processes.waiting import wait_until

Resource = dict[str, Any]

KIND_CONTEXT = "kind-"
"""Prefix of the names of kind's contexts."""

POLL_S = 0.5
"""One poll costs a tenth of a second of a core; the awaited changes take seconds."""


class Kube:
    """A cluster and a namespace in it; `kubeconfig` None is kubectl's own choice."""

    def __init__(self, kubectl: Path, kubeconfig: Path | None, namespace: str = "default") -> None:
        self.kubectl = kubectl
        self.kubeconfig = kubeconfig
        self.namespace = namespace

    def within(self, namespace: str) -> Kube:
        """Return the same cluster with another namespace."""
        return Kube(self.kubectl, self.kubeconfig, namespace)

    def run(self, *arguments: str, stdin: str | None = None, timeout_s: float = TIMEOUT_S) -> str:
        """Run kubectl; a failure is a `LabError` with its output."""
        return run(*self._command(arguments), stdin=stdin, timeout_s=timeout_s)

    def attempt(
        self, *arguments: str, stdin: str | None = None, timeout_s: float = TIMEOUT_S
    ) -> subprocess.CompletedProcess[str]:
        """Run kubectl; a failure is a returncode."""
        return attempt(*self._command(arguments), stdin=stdin, timeout_s=timeout_s)

    def apply(self, *resources: Mapping[str, Any]) -> None:
        """Apply resources, all in one call."""
        self.run("apply", "--filename=-", stdin=_list(resources))

    def refusal(self, *resources: Mapping[str, Any]) -> str:
        """Apply resources and return the error of a rejection, empty when they are accepted."""
        done = self.attempt("apply", "--filename=-", stdin=_list(resources))
        return done.stderr.strip() if done.returncode else ""

    def get(self, kind: str, name: str) -> Resource | None:
        """Read one resource; None when it does not exist."""
        text = self.run("get", kind, name, "--ignore-not-found", "--output=json")
        return json.loads(text) if text.strip() else None

    def items(self, kind: str, selector: str = "") -> list[Resource]:
        """Read all resources of a kind, or those with the labels of `selector`."""
        found: list[Resource] = json.loads(self.run("get", kind, f"--selector={selector}", "--output=json"))["items"]
        return found

    def delete(self, kind: str, name: str, *options: str) -> None:
        """Delete a resource; nothing happens where there is none."""
        self.run("delete", kind, name, "--ignore-not-found", *options)

    def execute(self, pod: str, *command: str, timeout_s: float = TIMEOUT_S) -> str:
        """Run a command in a pod's first container and return what it wrote."""
        return self.run("exec", pod, "--", *command, timeout_s=timeout_s)

    def condition(self, kind: str, name: str, condition: str = "Ready") -> Resource:
        """Read a condition, empty while there is none for the current generation."""
        found = self.get(kind, name) or {}
        status = found.get("status", {})
        if status.get("observedGeneration", -1) < found.get("metadata", {}).get("generation", 0):
            return {}
        return next((candidate for candidate in status.get("conditions", []) if candidate["type"] == condition), {})

    def wait_condition(
        self,
        kind: str,
        name: str,
        condition: str = "Ready",
        *,
        timeout_s: float,
        status: str = "True",
        reason: str = "",
    ) -> float:
        """Return the seconds until a resource's condition is `status`, for `reason` if one is given."""

        def holds() -> bool:
            found = self.condition(kind, name, condition)
            return found.get("status") == status and reason in {"", found.get("reason")}

        return wait_until(
            holds,
            timeout_s=timeout_s,
            what=f"{kind}/{name} with {condition}={status} {reason}",
            context=lambda: json.dumps((self.get(kind, name) or {}).get("status"), indent=1),
            interval_s=POLL_S,
        )

    def wait_workload(self, workload: str, *, timeout_s: float) -> float:
        """Return the seconds until as many pods of a workload, written `statefulset/NAME`, are ready as are asked for.

        What its update strategy is does not matter: `kubectl rollout status` knows none for a set that is updated on delete.
        """
        kind, name = workload.split("/")

        def ready() -> bool:
            found = self.get(kind, name) or {"spec": {}, "status": {}}
            asked = found["spec"].get("replicas", -1)
            current = found["status"].get("observedGeneration", -1) >= found.get("metadata", {}).get("generation", 0)
            return bool(current and found["status"].get("readyReplicas", 0) == asked == found["status"].get("replicas"))

        return wait_until(
            ready,
            timeout_s=timeout_s,
            what=f"{workload} with all of its pods ready",
            context=lambda: self.attempt("get", "pods", "--output=wide").stdout,
            interval_s=POLL_S,
        )

    def wait_rolled_out(self, workload: str, *, timeout_s: float) -> None:
        """Wait until a workload, written `deployment/NAME`, has all of its pods ready."""
        self.run("rollout", "status", workload, f"--timeout={timeout_s:g}s", timeout_s=timeout_s + TIMEOUT_S)

    def _command(self, arguments: tuple[str, ...]) -> list[str | Path]:
        where = [] if self.kubeconfig is None else [f"--kubeconfig={self.kubeconfig}"]
        return [self.kubectl, *where, f"--namespace={self.namespace}", *arguments]


def kind_name(kube: Kube) -> str | None:
    """Return the name of a cluster that kind made; None for any other."""
    context = kube.run("config", "current-context").strip()
    return context.removeprefix(KIND_CONTEXT) if context.startswith(KIND_CONTEXT) else None


def _list(resources: tuple[Mapping[str, Any], ...]) -> str:
    return json.dumps({"apiVersion": "v1", "kind": "List", "items": list(resources)})

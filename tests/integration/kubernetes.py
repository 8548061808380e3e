"""A user with kubectl: applies manifests and reads the resources.

Writes and tables go through kubectl, as a user's do. Polls, and what comes before and after a test, are single HTTP requests, since a
kubectl every few milliseconds would take most of this machine's time.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any

import yaml

from lab.errors import LabError
from lab.peers.kubernetes import OPERATOR, KubernetesApi
from lab.peers.steward import ROOT
from lab.processes.waiting import wait_until

API_VERSION = "steward.dev/v1alpha1"
KINDS = ("topics", "reassignments", "elections", "clusters")
CLUSTER = "main"
PATIENCE_S = 60.0
"""A generous limit: operations take a second or two, and after a fault a session timeout more."""

OPERATOR_ROLE = f"""
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {{name: steward-operator}}
rules:
  - {{apiGroups: [steward.dev], resources: [clusters, topics, reassignments, elections], verbs: [get, list, watch, patch]}}
  - {{apiGroups: [steward.dev], resources: [reassignments], verbs: [create, approve, delete]}}
  - {{apiGroups: [steward.dev], resources: [elections], verbs: [delete]}}
  - apiGroups: [steward.dev]
    resources: [clusters/status, topics/status, reassignments/status, elections/status]
    verbs: [patch]
  - {{apiGroups: [""], resources: [events], verbs: [create]}}
  - {{apiGroups: [""], resources: [configmaps], verbs: [get, create]}}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {{name: steward-operator}}
roleRef: {{apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: steward-operator}}
subjects:
  - {{apiGroup: rbac.authorization.k8s.io, kind: User, name: {OPERATOR}}}
"""
"""All permissions of the operator; anything else fails here as on a cluster with least privileges."""

POD_ROLE = f"""
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {{name: steward-operator-pods}}
rules:
  - {{apiGroups: [apps], resources: [statefulsets], verbs: [get]}}
  - {{apiGroups: [apps], resources: [statefulsets/scale], verbs: [patch]}}
  - {{apiGroups: [""], resources: [pods], verbs: [list, delete]}}
  - {{apiGroups: [""], resources: [nodes, namespaces], verbs: [get]}}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {{name: steward-operator-pods}}
roleRef: {{apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: steward-operator-pods}}
subjects: [{{apiGroup: rbac.authorization.k8s.io, kind: User, name: {OPERATOR}}}]
"""
"""Permissions that `--pods --drain --own-namespace` needs in addition."""


def install(api: KubernetesApi) -> None:
    """Apply the custom resource definitions and the operator's permissions, and wait until the API serves the resources."""
    api.install_definitions(ROOT / "crds")
    api.kubectl("apply", "--filename=-", stdin=OPERATOR_ROLE, check=True)


@dataclass(frozen=True, slots=True)
class Ready:
    """The Ready condition of a resource."""

    status: str
    reason: str
    message: str


def manifest(kind: str, name: str, **spec: Any) -> str:
    """Return a resource's text."""
    content = {"apiVersion": API_VERSION, "kind": kind, "metadata": {"name": name}, "spec": spec}
    return yaml.safe_dump(content, sort_keys=False)


def cluster_text(bootstrap_servers: Sequence[str], name: str = CLUSTER) -> str:
    """Return a Cluster's text."""
    return manifest("Cluster", name, bootstrapServers=list(bootstrap_servers))


def topic_text(name: str, partitions: int = 1, replication_factor: int = 3, **spec: Any) -> str:
    """Return a Topic's text; `spec` holds further fields, such as `config` and `topicName`."""
    reference = {"name": spec.pop("cluster", CLUSTER)}
    return manifest(
        "Topic", name, clusterRef=reference, partitions=partitions, replicationFactor=replication_factor, **spec
    )


def plan_text(name: str, plan: Mapping[tuple[str, int], Sequence[int]], **spec: Any) -> str:
    """Return a Reassignment's text from (topic, partition) -> replicas."""
    items = [
        {"topic": topic, "partition": partition, "replicas": list(replicas)}
        for (topic, partition), replicas in plan.items()
    ]
    return manifest("Reassignment", name, clusterRef={"name": CLUSTER}, plan=items, **spec)


class User:
    """A user with kubectl and a namespace."""

    def __init__(self, api: KubernetesApi, namespace: str) -> None:
        self.api = api
        self.namespace = namespace
        made = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}}
        assert api.send("POST", "/api/v1/namespaces", made).status == HTTPStatus.CREATED

    def kubectl(self, *arguments: str, stdin: str | None = None) -> str:
        """Return the output of kubectl; LabError with its message if it fails."""
        return self.api.kubectl(f"--namespace={self.namespace}", *arguments, stdin=stdin, check=True).stdout

    def apply(self, *texts: str) -> None:
        """Apply these texts at once."""
        self.kubectl("apply", "--filename=-", stdin="---\n".join(texts))

    def delete(self, kind: str, name: str) -> None:
        """Delete a resource and wait until it is removed."""
        self.kubectl("delete", kind, name, f"--timeout={PATIENCE_S:.0f}s")

    def read(self, kind: str, name: str) -> dict[str, Any]:
        """Return a resource."""
        found = self.api.get(f"{self._path(kind)}/{name}")
        assert found is not None, f"{kind} {self.namespace}/{name} is not there"
        return dict(json.loads(found))

    def listed(self, kind: str) -> list[dict[str, Any]]:
        """Return all resources of a kind."""
        found = self.api.get(self._path(kind))
        assert found is not None, f"{kind} cannot be listed"
        return list(json.loads(found)["items"])

    def events(self, name: str | None = None) -> list[tuple[str, str]]:
        """Return (type, reason) of each event about a resource of this name, or about any, one entry for each occurrence."""
        found = self.api.get(f"/api/v1/namespaces/{self.namespace}/events")
        assert found is not None, "events cannot be listed"
        return [
            (event["type"], event["reason"])
            for event in json.loads(found)["items"]
            if name in (None, event["involvedObject"]["name"])
            for _ in range(event["count"])
        ]

    def wait_for_events(self, name: str, *expected: tuple[str, str]) -> None:
        """Wait until exactly these events, in any order, were posted about a resource; they come a moment after its status."""
        wait_until(
            lambda: sorted(self.events(name)) == sorted(expected),
            timeout_s=PATIENCE_S,
            what=f"the events of {name} are {expected}",
            context=lambda: f"they are {self.events(name)}",
        )

    def row(self, kind: str, name: str) -> dict[str, str]:
        """Return the row of a resource in `kubectl get --output=wide`, by the columns' titles."""
        head, line = self.kubectl("get", kind, name, "--output=wide").splitlines()
        titles = [title.strip() for title in head.split("   ") if title.strip()]
        starts = [head.index(title) for title in titles]
        ends = [*starts[1:], None]
        return {title: line[start:end].strip() for title, start, end in zip(titles, starts, ends, strict=True)}

    def ready(self, kind: str, name: str) -> Ready | None:
        """Return the Ready condition of the current generation; None while there is none."""
        resource = self.read(kind, name)
        for condition in resource.get("status", {}).get("conditions", []):
            if condition["type"] == "Ready" and condition["observedGeneration"] == resource["metadata"]["generation"]:
                return Ready(condition["status"], condition["reason"], condition["message"])
        return None

    def wait_for(self, kind: str, name: str, status: str, reason: str) -> str:
        """Wait until Ready has this status and reason, and return its message."""
        found: list[Ready | None] = [None]

        def holds() -> bool:
            found[0] = self.ready(kind, name)
            return found[0] is not None and (status, reason) == (found[0].status, found[0].reason)

        what = f"{kind} {self.namespace}/{name} {status} ({reason})"
        wait_until(holds, timeout_s=PATIENCE_S, what=what, context=lambda: f"last seen: {found[0]}")
        assert found[0] is not None
        return found[0].message

    def wait_until_ready(self, *names: str, kind: str = "topics") -> float:
        """Return the seconds until all of these were Ready."""
        missing = set(names)

        def holds() -> bool:
            missing.difference_update([name for name in missing if self._is_ready(kind, name)])
            return not missing

        return wait_until(
            holds, timeout_s=PATIENCE_S, what=f"{kind} Ready", context=lambda: self._context(kind, missing)
        )

    def wait_until_removed(self) -> None:
        """Wait until none of Steward's resources is left in the namespace."""
        wait_until(
            lambda: not any(self.listed(kind) for kind in KINDS),
            timeout_s=PATIENCE_S,
            what=f"namespace {self.namespace} empty",
        )

    def clean_up(self) -> None:
        """Delete everything for the next test; a running move is cancelled."""
        for kind in KINDS:
            assert self.api.send("DELETE", self._path(kind)).status in {HTTPStatus.OK, HTTPStatus.ACCEPTED}
        self.wait_until_removed()

    def _is_ready(self, kind: str, name: str) -> bool:
        ready = self.ready(kind, name)
        return ready is not None and ready.status == "True"

    def _context(self, kind: str, names: set[str]) -> str:
        return "\n".join(f"{name}: {self.ready(kind, name)}" for name in sorted(names))

    def _path(self, kind: str) -> str:
        if kind not in KINDS:
            raise LabError(f"{kind} is none of {', '.join(KINDS)}")
        return f"/apis/{API_VERSION}/namespaces/{self.namespace}/{kind}"

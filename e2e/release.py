"""The chart, installed, upgraded and uninstalled by helm, with waits until its objects are ready.

Only this module of the tests has the names of its objects.
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from e2e.command import attempt, run
from e2e.images import KAFKA, PREVIOUS, ROOT, STEWARD
from e2e.kube import Kube, Resource
from lab.errors import LabError
from lab.processes.waiting import wait_until

NAME = "steward"

NAMESPACE = "kafka"

CHART = ROOT / "charts" / "steward"

PREVIOUS_CHART = ROOT / "e2e" / "previous" / "steward-0.1.0.tgz"
"""The last chart that was released, as `helm package` makes it: upgrades begin with it. A release puts its own here."""

OPERATOR = f"deployment/{NAME}-operator"

CONTROLLER = f"statefulset/{NAME}-controller"

ZOOKEEPER = f"statefulset/{NAME}-zookeeper"

BROKERS = f"statefulset/{NAME}-broker"

WORKLOADS = (ZOOKEEPER, CONTROLLER, BROKERS, OPERATOR)

BOOTSTRAP = f"{NAME}-kafka.{NAMESPACE}:9092"

JOBS_NAMESPACE = f"{NAMESPACE}-spark"
"""The namespace of Spark jobs, which the chart creates with the analytics and leaves behind."""

OPERATOR_NAMESPACE = "operator-only"
"""The namespace of a release of only the operator."""

SECURED_NAMESPACE = "secured"
"""The namespace of a release with TLS, SASL and the authorizer."""

CLIENTS_NAMESPACE = "clients"
"""The namespace of the tests' own clients, which the chart's NetworkPolicy has to admit."""

CLUSTERS = "clusters.steward.dev"

CLUSTER = NAME
"""Name of the Cluster resource that the chart makes."""

FIRST_CONTROLLER_ID = 990
"""The id of the controller in the pod with the number 0."""

HELM_TIMEOUT_S = 300

GONE_WITHIN_S = 120.0
"""A namespace whose pods have ended is deleted in seconds."""


class Release:
    """The chart in one namespace of a cluster."""

    def __init__(self, kube: Kube, helm: Path) -> None:
        self.kube = kube
        self._helm = helm

    def install(self, *, chart: Path = CHART, **values: Any) -> float:
        """Install or upgrade it, wait until every pod is ready, and return the seconds that it took."""
        started = time.monotonic()
        self.upgrade(chart=chart, **values)
        self.wait_ready()
        return time.monotonic() - started

    def install_operator(self, **values: Any) -> float:
        """Install the chart with values that leave only the operator, and return the seconds until its first Cluster is Ready."""
        started = time.monotonic()
        self.upgrade(operator={}, **values)
        self.kube.wait_condition(CLUSTERS, CLUSTER, timeout_s=HELM_TIMEOUT_S)
        return time.monotonic() - started

    def install_previous(self, **values: Any) -> float:
        """Install the last release, its CRDs and its image too, where nothing is; wait until every pod is ready."""
        self.kube.run("delete", "--ignore-not-found", f"--filename={ROOT / 'crds'}")
        return self.install(chart=PREVIOUS_CHART, image=image_values(PREVIOUS), **values)

    def upgrade(self, *, chart: Path = CHART, **values: Any) -> None:
        """Install or upgrade it with these values and wait for nothing.

        helm creates missing CRDs and never changes existing ones: they are applied before an upgrade, as documented.
        """
        if chart == CHART and self.kube.get("customresourcedefinition", CLUSTERS) is not None:
            self.kube.run("apply", "--server-side", "--force-conflicts", f"--filename={ROOT / 'crds'}")
        options = ["--install", "--create-namespace", "--reset-values", "--values=-"]
        self.run("upgrade", NAME, str(chart), *options, stdin=json.dumps(_values(values)))

    def refusal(self, **values: Any) -> str:
        """Run an install with invalid values and return helm's error; empty when it would succeed."""
        return self._refused("install", f"{NAME}-refused", str(CHART), "--dry-run=client", **values)

    def upgrade_refusal(self, **values: Any) -> str:
        """Upgrade it with invalid values and return helm's error; empty when it succeeds."""
        return self._refused("upgrade", NAME, str(CHART), "--reset-values", **values)

    def _refused(self, *command: str, **values: Any) -> str:
        done = attempt(*self._command(*command, "--values=-"), stdin=json.dumps(_values(values)))
        return done.stderr.strip() if done.returncode else ""

    def test(self) -> str:
        """Run the chart's own tests and return helm's output."""
        return self.run("test", NAME, "--logs", f"--timeout={HELM_TIMEOUT_S}s")

    def uninstall(self) -> None:
        """Uninstall it and wait until its objects are gone, and its pods, for which helm does not wait.

        When a namespace is deleted while a pod ends, its controller checks it again only after half of that pod's grace period.
        """
        self.run("uninstall", NAME, "--wait", f"--timeout={HELM_TIMEOUT_S}s")
        wait_until(
            lambda: not self.kube.items("pods", f"app.kubernetes.io/instance={NAME}"),
            timeout_s=HELM_TIMEOUT_S,
            what="all pods of the release deleted",
            interval_s=1.0,
        )

    def uninstall_if_present(self) -> None:
        """Uninstall it where an earlier test has left it: its operator serves all namespaces."""
        if self.kube.get("deployment", f"{NAME}-operator") is not None:
            self.uninstall()

    def delete_namespace(self) -> None:
        """Delete its namespace with all data, and wait until it is gone."""
        timeout = f"--timeout={GONE_WITHIN_S:.0f}s"
        self.kube.run(
            "delete", "namespace", self.kube.namespace, "--ignore-not-found", timeout, timeout_s=GONE_WITHIN_S + 30
        )

    def run(self, *arguments: str, stdin: str | None = None) -> str:
        """Run helm in the release's namespace."""
        return run(*self._command(*arguments), stdin=stdin, timeout_s=HELM_TIMEOUT_S + 30)

    def wait_ready(self) -> None:
        """Wait until every pod of every workload is ready."""
        for workload in WORKLOADS:
            # Of an OnDelete set kubectl gives no rollout status; what counts is pods that are ready.
            self.kube.wait_workload(workload, timeout_s=HELM_TIMEOUT_S)

    def pods(self, workload: str) -> list[Resource]:
        """Return a workload's pods, by name."""
        found = self.kube.get(*workload.split("/")) or {}
        if not found:
            raise LabError(f"the chart has not created {workload}")
        labels = found["spec"]["selector"]["matchLabels"]
        pods = self.kube.items("pods", ",".join(f"{key}={value}" for key, value in labels.items()))
        return sorted(pods, key=lambda pod: str(pod["metadata"]["name"]))

    def broker(self, broker_id: int) -> Resource:
        """Return a broker's pod."""
        name = f"{NAME}-broker-{broker_id}"
        pod = self.kube.get("pod", name)
        if pod is None:
            raise LabError(f"there is no pod {name}")
        return pod

    def controller(self, controller_id: int) -> Resource:
        """Return the pod of one of Steward's controllers."""
        name = f"{NAME}-controller-{controller_id - FIRST_CONTROLLER_ID}"
        pod = self.kube.get("pod", name)
        if pod is None:
            raise LabError(f"controller {controller_id} has no pod {name}")
        return pod

    def resident_mb(self, pod: str) -> float:
        """Return the resident memory of a pod's main process in megabytes, as the kernel counts it."""
        status = self.kube.execute(pod, "cat", "/proc/1/status")
        (line,) = (line for line in status.splitlines() if line.startswith("VmRSS:"))
        return int(line.split()[1]) * 1024 / 1e6

    def _command(self, *arguments: str) -> list[str | Path]:
        where = [] if self.kube.kubeconfig is None else [f"--kubeconfig={self.kube.kubeconfig}"]
        return [self._helm, *arguments, *where, f"--namespace={self.kube.namespace}"]


def kafka_values(**values: Any) -> dict[str, Any]:
    """Return values for brokers and ZooKeeper, with the image of this checkout."""
    return {"image": image_values(KAFKA), **values}


def _values(values: Mapping[str, Any]) -> dict[str, Any]:
    every_namespace = {"allNamespaces": True}
    clients = {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": CLIENTS_NAMESPACE}}}
    admitted = {"networkPolicy": {"clients": [clients]}}
    return {"image": image_values(STEWARD), "kafka": kafka_values(), "operator": every_namespace, **admitted, **values}


def image_values(name: str) -> dict[str, str]:
    """Return an image as in the values of the chart."""
    repository, tag = name.split(":")
    return {"repository": repository, "tag": tag}

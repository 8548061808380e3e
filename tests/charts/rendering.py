"""The chart rendered by helm, and ways to inspect the result."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

import yaml

from lab.peers.kubernetes import SHORT_LIVED
from lab.release.chart import CHART, KUBE_VERSION

RELEASE, NAMESPACE = "steward", "kafka"
JOBS = "kafka-spark"
"""The namespace of Spark jobs, by default."""

TIMEOUT_S = 60.0

NAMESPACED: dict[str, Any] = {
    "brokers": {"rackLabel": ""},
    "operator": {"drain": False},
    "admission": {"protectTopics": False, "approveRight": "Disabled"},
    "rbac": {"aggregatedRoles": False},
}
"""Values with which nothing is created outside of namespaces, except for the CRDs."""

TLS: dict[str, Any] = {"tls": {"enabled": True}}

SASL: dict[str, Any] = {**TLS, "sasl": {"enabled": True, "usersSecret": "kafka-users"}}

ALL_SECURITY: dict[str, Any] = {**SASL, "authorizer": {"enabled": True, "superUsers": ["User:admin"]}}
"""Values of `security`: the chart's own certificate, then with users, then with the authorizer."""

SPARK = {"SparkApplication", "ScheduledSparkApplication"}
"""Kinds whose templates are not those of pods: the operator creates the pods."""

Resource = dict[str, Any]


class Chart:
    """`helm template` of the chart, in the usual namespace."""

    def __init__(self, helm_program: Path) -> None:
        self._helm = helm_program
        self._texts: dict[str, str] = {}

    def run(self, *arguments: str, values: Mapping[str, Any] | None = None) -> subprocess.CompletedProcess[str]:
        """Run helm; values are handed over as a file would be."""
        return subprocess.run(
            [self._helm, *arguments, "--values=-"],
            input=json.dumps(values or {}),
            capture_output=True,
            text=True,
            check=False,
            timeout=TIMEOUT_S,
            env={**os.environ, **SHORT_LIVED},
        )

    def text(self, values: Mapping[str, Any] | None = None, release: str = RELEASE) -> str:
        """Return all manifests as text; helm renders the same values once."""
        key = json.dumps([release, values or {}], sort_keys=True)
        if key not in self._texts:
            done = self.run(*self._template(release), values=values)
            assert not done.returncode, done.stderr
            self._texts[key] = done.stdout
        return self._texts[key]

    def render(self, values: Mapping[str, Any] | None = None, release: str = RELEASE) -> list[Resource]:
        """Return all resources."""
        loaded = yaml.load_all(
            self.text(values, release), yaml.CSafeLoader
        )  # ten times as fast as the loader in Python
        return [resource for resource in loaded if resource]

    def refusal(self, values: Mapping[str, Any], release: str = RELEASE) -> str:
        """Return helm's error; the test fails if the values are rendered."""
        done = self.run(*self._template(release), values=values)
        assert done.returncode, f"rendered with {values}"
        return done.stderr

    @staticmethod
    def _template(release: str) -> list[str]:
        return [
            "template", release, str(CHART), f"--namespace={NAMESPACE}", f"--kube-version={KUBE_VERSION}",
        ]  # fmt: skip


def one(resources: list[Resource], kind: str, name: str) -> Resource:
    """Return the one resource of this kind and name."""
    found = [item for item in resources if (kind, name) == (item["kind"], item["metadata"]["name"])]
    assert len(found) == 1, f"{kind} {name}: {[(item['kind'], item['metadata']['name']) for item in resources]}"
    return found[0]


def served_namespaces(chart: Chart, policy: str) -> tuple[list[str] | None, list[str] | None]:
    """Return the namespaces to which an admission policy is bound, usually and with operator.allNamespaces; None: all."""
    rendered = (chart.render(), chart.render({"operator": {"allNamespaces": True}}))
    usual, everywhere = (one(resources, "ValidatingAdmissionPolicyBinding", policy)["spec"] for resources in rendered)
    return _matched(usual), _matched(everywhere)


def _matched(spec: Resource) -> list[str] | None:
    if "matchResources" not in spec:
        return None
    (expression,) = spec["matchResources"]["namespaceSelector"]["matchExpressions"]
    names: list[str] = expression["values"]
    return names


def pods(resources: list[Resource]) -> dict[str, Resource]:
    """Return what every pod of the release is made from, by its maker's kind and name."""
    found = {}
    for item in resources:
        where = f"{item['kind']} {item['metadata']['name']}"
        if item["kind"] == "Pod":
            found[where] = item
        elif "template" in item.get("spec", {}) and item["kind"] not in SPARK:
            found[where] = _with_claims(item["spec"]["template"], item["spec"].get("volumeClaimTemplates", []))
    return found


def _with_claims(pod: Resource, claims: list[Resource]) -> Resource:
    """Return a pod with the volumes that its StatefulSet would give it."""
    names = [claim["metadata"]["name"] for claim in claims]
    volumes = [{"name": name, "persistentVolumeClaim": {"claimName": name}} for name in names]
    return {**pod, "spec": {**pod["spec"], "volumes": [*pod["spec"]["volumes"], *volumes]}}


def containers(pod: Resource) -> list[Resource]:
    """Return a pod's containers, those that run first included."""
    return [*pod["spec"].get("initContainers", []), *pod["spec"]["containers"]]


def program(name: str) -> ModuleType:
    """Return a program of the chart as a module; it imports the others of its folder."""
    if str(CHART / "files") not in sys.path:
        sys.path.append(str(CHART / "files"))
    spec = importlib.util.spec_from_file_location(name, CHART / "files" / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def operator_arguments(resources: list[Resource]) -> list[str]:
    """Return the arguments of the operator."""
    pod = one(resources, "Deployment", f"{RELEASE}-operator")["spec"]["template"]["spec"]
    return list(pod["containers"][0]["args"])

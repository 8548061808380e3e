"""A namespace on a real API server, and what a user does there."""

from __future__ import annotations

import json
from collections.abc import Mapping
from http import HTTPStatus
from pathlib import Path
from typing import Any

from lab.peers.kubernetes import KubernetesApi
from lab.processes.http_get import Answer
from lab.processes.waiting import wait_until

ROOT = Path(__file__).resolve().parents[2]
PATIENCE_S = 60.0
"""A generous bound for what takes a second or two."""

MAX_CONFLICTS = 20
"""Writes of the operator between a read and a write of a test."""

PLURALS = {
    "Cluster": "clusters",
    "Topic": "topics",
    "Reassignment": "reassignments",
    "Election": "elections",
    "SparkApplication": "sparkapplications",
    "ScheduledSparkApplication": "scheduledsparkapplications",
}
ACCEPTED = {HTTPStatus.OK, HTTPStatus.CREATED, HTTPStatus.ACCEPTED}


class Namespace:
    """One namespace, made at the start."""

    def __init__(self, api: KubernetesApi, name: str) -> None:
        self.api = api
        self.name = name
        namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
        _check(api.send("POST", "/api/v1/namespaces", namespace))

    def refusal(self, raw: Mapping[str, Any]) -> str:
        """Return the message by which the API server rejects a resource, empty when it would accept it; nothing is changed.

        A resource that exists is replaced as a whole, as `kubectl apply` changes one that it made; again if the operator has written its
        status in the meantime.
        """
        for _ in range(MAX_CONFLICTS):
            answer = self._dry_run(raw)
            if answer.status != HTTPStatus.CONFLICT:
                break
        return "" if answer.status in ACCEPTED else json.loads(answer.body)["message"]

    def _dry_run(self, raw: Mapping[str, Any]) -> Answer:
        kind, name = raw["kind"], raw["metadata"]["name"]
        path = self._path(kind)
        found = self.get(kind, name)
        version = {} if found is None else {"resourceVersion": found["metadata"]["resourceVersion"]}
        named = {**raw, "metadata": {**raw["metadata"], **version, "namespace": self.name}}
        method, path = ("POST", path) if found is None else ("PUT", f"{path}/{name}")
        return self.api.send(method, f"{path}?dryRun=All&fieldValidation=Strict", named)

    def apply(self, raw: Mapping[str, Any]) -> None:
        """Apply a resource that must be accepted."""
        named = {**raw, "metadata": {**raw["metadata"], "namespace": self.name}}
        _check(self.api.apply(f"{self._path(raw['kind'])}/{raw['metadata']['name']}", named))

    def delete(self, kind: str, name: str) -> None:
        """Request a deletion without waiting for it."""
        _check(self.api.send("DELETE", f"{self._path(kind)}/{name}"))

    def empty(self) -> None:
        """Delete all resources in it, and wait until they are gone, so that the operators of other tests do not process them."""
        for kind in PLURALS:
            _check(self.api.send("DELETE", self._path(kind)))
        wait_until(self._is_empty, timeout_s=PATIENCE_S, what=f"{self.name} is empty")

    def get(self, kind: str, name: str) -> dict[str, Any] | None:
        """Return a resource, None when it is not there."""
        found = self.api.get(f"{self._path(kind)}/{name}")
        return None if found is None else json.loads(found)

    def status(self, kind: str, name: str) -> dict[str, Any]:
        """Return a resource's status."""
        found = self.get(kind, name)
        return {} if found is None else found.get("status", {})

    def ready(self, kind: str, name: str) -> tuple[str, str, str]:
        """Return status, reason and message of Ready; empty ones before it is there."""
        for condition in self.status(kind, name).get("conditions", ()):
            if condition["type"] == "Ready":
                return condition["status"], condition["reason"], condition["message"]
        return "", "", ""

    def until(self, kind: str, name: str, *expected: str) -> float:
        """Wait until Ready begins with these (status, reason, message); return the seconds."""
        return wait_until(
            lambda: self.ready(kind, name)[: len(expected)] == expected,
            timeout_s=PATIENCE_S,
            what=f"{kind} {name} is {expected}",
            context=lambda: f"it is {self.ready(kind, name)}",
        )

    def until_gone(self, kind: str, name: str) -> float:
        """Wait until a resource is gone; return the seconds."""
        return wait_until(lambda: self.get(kind, name) is None, timeout_s=PATIENCE_S, what=f"{kind} {name} is gone")

    def events(self, name: str) -> list[tuple[str, str]]:
        """Return type and reason of the events about a resource, in order."""
        found = self.api.get(f"/api/v1/namespaces/{self.name}/events")
        assert found is not None
        items = [item for item in json.loads(found)["items"] if item["involvedObject"]["name"] == name]
        return [(item["type"], item["reason"]) for item in sorted(items, key=_version)]

    def until_events(self, name: str, *expected: tuple[str, str]) -> None:
        """Wait until exactly these events were posted; they follow the status that they report."""
        wait_until(
            lambda: self.events(name) == list(expected),
            timeout_s=PATIENCE_S,
            what=f"the events of {name} are {expected}",
            context=lambda: f"they are {self.events(name)}",
        )

    def _is_empty(self) -> bool:
        for kind in PLURALS:
            found = self.api.get(self._path(kind))
            if found is None or json.loads(found)["items"]:
                return False
        return True

    def _path(self, kind: str) -> str:
        return f"/apis/steward.dev/v1alpha1/namespaces/{self.name}/{PLURALS[kind]}"

    def kubectl(self, *arguments: str) -> str:
        """Return what kubectl prints in this namespace."""
        return self.api.kubectl(f"--namespace={self.name}", *arguments, check=True).stdout


def _check(answer: Answer) -> None:
    assert answer.status in ACCEPTED, answer.body.decode()


def _version(item: Mapping[str, Any]) -> int:
    return int(item["metadata"]["resourceVersion"])

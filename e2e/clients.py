"""Clients of the Kafka cluster in pods of their own namespace: one for queries of the cluster, and a witness for each load."""

from __future__ import annotations

import json
import secrets
import time
from pathlib import Path
from typing import Any, NamedTuple

from e2e.images import STEWARD
from e2e.kube import Kube, Resource
from e2e.release import BOOTSTRAP, CLIENTS_NAMESPACE
from lab.checks import traffic_report
from lab.processes.waiting import wait_until

NAMESPACE = CLIENTS_NAMESPACE

ASKER = "asker"

APP = "e2e-client"

NOT_CLIENTS = f"app!={APP}"
"""Selects all other pods."""

PODS_FOLDER = Path(__file__).parent / "pods"

LEDGER = Path(traffic_report.__file__)

START_TIMEOUT_S = 180.0

STOP_TIMEOUT_S = 240.0

ANSWER_TIMEOUT_S = 60.0

POLL_S = 0.5


class Partition(NamedTuple):
    """A partition in the cluster's metadata."""

    leader: int
    replicas: list[int]
    isr: list[int]


class Report(NamedTuple):
    """Report of a witness; `summary` is for a person."""

    summary: str
    acked: int
    lost: list[int]
    twice: list[str]
    out_of_order: int
    errors: list[str]
    consumed: int
    displaced: list[str]
    skipped: list[str]
    polls: int
    smallest_isr: int
    under_min_isr: list[str]
    longest_partition_gap_ms: dict[str, float]

    def wrong(self) -> dict[str, Any]:
        """Return the violations: an empty text without one."""
        counts = {
            "lost": self.lost,
            "twice": self.twice,
            "out of order": self.out_of_order,
            "errors": self.errors,
            "displaced": self.displaced,
            "skipped": self.skipped,
            "nothing acknowledged": not self.acked,
            "nothing read along": not self.consumed,
        }
        return {what: seen for what, seen in counts.items() if seen}


class KafkaClients:
    """Pods that use the Kafka cluster as an application would."""

    def __init__(self, kube: Kube) -> None:
        self.kube = kube.within(NAMESPACE)

    def install(self) -> None:
        """Create the namespace, the scripts and the pod for queries."""
        restricted = {"pod-security.kubernetes.io/enforce": "restricted"}
        self.kube.apply(
            {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE, "labels": restricted}}
        )
        files = {path.name: path.read_text("utf-8") for path in (*PODS_FOLDER.glob("*.py"), LEDGER)}
        scripts = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "scripts"}, "data": files}
        self.kube.apply(scripts, _pod(ASKER, "sleep", "infinity"))
        self.kube.run("wait", "--for=condition=Ready", f"pod/{ASKER}", f"--timeout={START_TIMEOUT_S:g}s")

    def uninstall(self) -> None:
        """Delete all of it; a cluster that existed before is left unchanged."""
        self.kube.delete("namespace", NAMESPACE, "--wait=false")

    def describe(self, *topics: str) -> dict[str, Any]:
        """Return the metadata of the cluster and of topics; the request is repeated when its broker is shutting down."""
        answers: list[dict[str, Any]] = []
        message = ""

        def answered() -> bool:
            nonlocal message
            done = self.kube.attempt("exec", ASKER, "--", "python3", "-m", "e2e.pods.describe", *topics)
            message = done.stderr
            if not done.returncode:
                answers.append(json.loads(done.stdout))
            return bool(answers)

        wait_until(
            answered,
            timeout_s=ANSWER_TIMEOUT_S,
            what="an answer of any broker",
            context=lambda: message,
            interval_s=POLL_S,
        )
        return answers[0]

    def partitions(self, topic: str) -> dict[int, Partition]:
        """Return a topic's partitions, empty for an unknown topic."""
        found = self.describe(topic)["topics"].get(topic, {})
        return {int(number): Partition(**partition) for number, partition in found.items()}

    def wait_partitions(self, topic: str, holds: Any, *, timeout_s: float, what: str) -> float:
        """Return the seconds until `holds(partitions)`; one poll takes about a second."""
        seen: dict[int, Partition] = {}

        def is_true() -> bool:
            seen.clear()
            seen.update(self.partitions(topic))
            return bool(seen) and bool(holds(seen))

        return wait_until(
            is_true, timeout_s=timeout_s, what=f"{topic}: {what}", context=lambda: str(seen), interval_s=POLL_S
        )

    def wait_in_sync(self, topic: str, *, timeout_s: float) -> float:
        """Return the seconds until every replica of a topic is in sync and every partition has a leader."""
        return self.wait_partitions(
            topic,
            lambda partitions: all(
                partition.leader in partition.isr and sorted(partition.isr) == sorted(partition.replicas)
                for partition in partitions.values()
            ),
            timeout_s=timeout_s,
            what="every replica in sync",
        )

    def witness(self, topic: str, *, min_isr: int, padding_bytes: int = 0) -> Witness:
        """Start a load on a topic, and return when each partition has acknowledged a record and a reader has seen one.

        A record has `padding_bytes` in addition to its unique value.
        """
        return Witness(self.kube, f"witness-{secrets.token_hex(3)}", topic, min_isr, padding_bytes)


class Witness:
    """A load on a topic, from its creation to `stop`."""

    def __init__(self, kube: Kube, name: str, topic: str, min_isr: int, padding_bytes: int = 0) -> None:
        self._kube = kube
        self.name = name
        kube.apply(_pod(name, "python3", "-m", "e2e.pods.witness", topic, str(min_isr), str(padding_bytes)))
        wait_until(
            lambda: kube.attempt("exec", name, "--", "test", "-e", "/tmp/started").returncode == 0,
            timeout_s=START_TIMEOUT_S,
            what=f"{name}: a record acknowledged in every partition of {topic}",
            context=lambda: kube.attempt("logs", name).stdout,
            interval_s=POLL_S,
        )

    def run_for(self, seconds: float) -> None:
        """Continue the load for a while."""
        time.sleep(seconds)

    def stop(self) -> Report:
        """End the load and return the report."""
        self._kube.execute(self.name, "touch", "/tmp/stop")
        phase = "{.status.phase}"
        wait_until(
            lambda: self._kube.run("get", "pod", self.name, f"--output=jsonpath={phase}") in {"Succeeded", "Failed"},
            timeout_s=STOP_TIMEOUT_S,
            what=f"{self.name}: its report",
            context=lambda: self._kube.attempt("logs", self.name).stdout,
            interval_s=POLL_S,
        )
        message = self._kube.run("logs", self.name)
        report: dict[str, Any] = json.loads(message.strip().splitlines()[-1])
        self._kube.delete("pod", self.name, "--wait=false")
        print(f"{self.name}: {report['summary']}; smallest ISR {report['smallest_isr']} of {report['polls']} polls")
        return Report(**{field: report[field] for field in Report._fields})


def _pod(name: str, *command: str) -> Resource:
    container = {
        "name": "client",
        "image": STEWARD,
        "imagePullPolicy": "IfNotPresent",
        "command": list(command),
        "env": [
            {"name": "BOOTSTRAP", "value": BOOTSTRAP},
            {"name": "PYTHONPATH", "value": "/scripts"},
        ],
        "securityContext": {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}},
        "volumeMounts": [{"name": "scripts", "mountPath": "/scripts"}],
    }
    items = [
        *({"key": path.name, "path": f"e2e/pods/{path.name}"} for path in PODS_FOLDER.glob("*.py")),
        {"key": LEDGER.name, "path": f"{traffic_report.__name__.replace('.', '/')}.py"},
    ]
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "labels": {"app": APP}},
        "spec": {
            "restartPolicy": "Never",
            "terminationGracePeriodSeconds": 0,
            "automountServiceAccountToken": False,
            "securityContext": {"runAsNonRoot": True, "runAsUser": 10002, "seccompProfile": {"type": "RuntimeDefault"}},
            "containers": [container],
            "volumes": [{"name": "scripts", "configMap": {"name": "scripts", "items": items}}],
        },
    }

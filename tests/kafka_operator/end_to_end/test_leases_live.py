"""Two operator processes and one Lease on a real API server: the holder is killed, stopped, or paused and resumed.

No Kafka is needed to detect the active process: it writes ClusterNotFound into the status of a Topic without a Cluster.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from lab.peers.kubernetes import OPERATOR, KubernetesApi
from lab.peers.steward import StewardOperator
from lab.processes.http_get import http_get
from lab.processes.waiting import wait_until
from tests.kafka_operator.live import PATIENCE_S, Namespace
from tests.kafka_operator.makers import raw_topic

pytestmark = pytest.mark.kubernetes

TAKEOVER_S = 15.0
"""Maximum time from the kill of the holder to the first status that the standby writes."""

ROLE = f"""
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {{name: steward-leases-tests}}
rules:
  - {{apiGroups: [steward.dev], resources: ["*"], verbs: [get, list, watch, patch]}}
  - {{apiGroups: [steward.dev], resources: [reassignments], verbs: [create, approve, delete]}}
  - {{apiGroups: [steward.dev], resources: [elections], verbs: [delete]}}
  - {{apiGroups: [""], resources: [events], verbs: [create]}}
  - {{apiGroups: [""], resources: [configmaps], verbs: [get, create]}}
  - {{apiGroups: [""], resources: [namespaces], verbs: [get]}}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {{name: steward-leases-tests}}
roleRef: {{apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: steward-leases-tests}}
subjects: [{{apiGroup: rbac.authorization.k8s.io, kind: User, name: {OPERATOR}}}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {{name: steward-leases-tests, namespace: leases}}
rules:
  - {{apiGroups: [coordination.k8s.io], resources: [leases], verbs: [create]}}
  - {{apiGroups: [coordination.k8s.io], resources: [leases], resourceNames: [operator], verbs: [get, patch]}}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {{name: steward-leases-tests, namespace: leases}}
roleRef: {{apiGroup: rbac.authorization.k8s.io, kind: Role, name: steward-leases-tests}}
subjects: [{{apiGroup: rbac.authorization.k8s.io, kind: User, name: {OPERATOR}}}]
"""
"""The rights that the chart grants: Leases in one namespace, by name."""


@pytest.fixture(scope="module")
def place(api: KubernetesApi) -> Namespace:
    """Namespace of the Lease and of the resources."""
    made = Namespace(api, "leases")
    api.kubectl("apply", "-f", "-", stdin=ROLE, check=True)
    return made


@pytest.fixture
def pair(place: Namespace, tmp_path: Path) -> Iterator[tuple[StewardOperator, StewardOperator]]:
    """An active process and a standby."""
    processes = [operator(place, tmp_path / name, name) for name in ("first", "second")]
    processes[0].start()
    wait_until(lambda: held(processes[0]) == 1, timeout_s=PATIENCE_S, what="the first process holds the Lease")
    processes[1].start()
    yield processes[0], processes[1]
    for process in processes:
        process.resume()
        process.close()
    place.api.kubectl("--namespace=leases", "delete", "lease", "operator", check=True)
    place.empty()


def operator(place: Namespace, folder: Path, identity: str) -> StewardOperator:
    """A process that serves the namespace under the Lease."""
    arguments = ["--own-namespace=leases", "--namespace=leases", "--lease=operator", f"--identity={identity}"]
    return StewardOperator(place.api.kubeconfig_for(OPERATOR), folder, arguments=arguments)


def held(process: StewardOperator) -> float | None:
    """Value of its metric `steward_lease_held`."""
    return process.metric('steward_lease_held{lease="operator"}')


def apply_and_wait(place: Namespace, name: str) -> float:
    """Apply a Topic and return the seconds until a process has written its status."""
    place.apply(raw_topic(name))
    return place.until("Topic", name, "Unknown", "ClusterNotFound")


@pytest.mark.shows("F36")
def test_a_standby_is_ready_and_takes_over_from_a_killed_holder(
    pair: tuple[StewardOperator, StewardOperator], place: Namespace
) -> None:
    """Within 15 s of the kill. Before, its /readyz names the holder, and it writes nothing."""
    first, second = pair
    apply_and_wait(place, "before")
    wait_until(
        lambda: _readiness(second) == (200, {"lease": "standby; operator is held by first"}),
        timeout_s=PATIENCE_S,
        what="the standby reports the holder of the Lease",
        context=lambda: str(_readiness(second)),
    )
    assert 'call="patch_topic' not in second.metrics()

    killed_s = time.monotonic()
    first.kill()
    apply_and_wait(place, "after")

    assert time.monotonic() - killed_s < TAKEOVER_S
    assert held(second) == 1
    assert _readiness(second) == (200, {})


def test_a_standby_takes_over_at_once_from_a_stopped_holder(
    pair: tuple[StewardOperator, StewardOperator], place: Namespace
) -> None:
    """SIGTERM releases the Lease."""
    first, second = pair

    assert first.stop() == 0
    ended_s = time.monotonic()
    apply_and_wait(place, "after")

    assert time.monotonic() - ended_s < 5
    assert held(second) == 1


def test_a_stopped_standby_exits_with_code_0(pair: tuple[StewardOperator, StewardOperator], place: Namespace) -> None:
    """The holder stays active."""
    first, second = pair

    assert second.stop() == 0

    apply_and_wait(place, "after")
    assert held(first) == 1


@pytest.mark.shows("O10")
def test_a_resumed_holder_restarts_and_changes_nothing(
    pair: tuple[StewardOperator, StewardOperator], place: Namespace
) -> None:
    """O10: SIGSTOP for longer than the Lease, takeover, SIGCONT: every status stays as the new holder wrote it."""
    first, second = pair
    apply_and_wait(place, "before")
    first.pause()
    place.apply(raw_topic("before", partitions=9))  # a change that the paused process receives when it resumes
    apply_and_wait(place, "after")
    wait_until(
        lambda: place.status("Topic", "before").get("conditions", [{}])[0].get("observedGeneration") == 2,
        timeout_s=PATIENCE_S,
        what="the standby has processed the change",
    )
    versions = _versions(place)

    first.resume()

    _await_restart(first)
    wait_until(
        lambda: _readiness(first) == (200, {"lease": "standby; operator is held by second"}),
        timeout_s=PATIENCE_S,
        what="the first process is a standby",
    )
    assert held(second) == 1
    assert versions == _versions(place)


def test_a_holder_restarts_without_the_api_server_and_recovers_with_it(
    pair: tuple[StewardOperator, StewardOperator], place: Namespace
) -> None:
    """It cannot renew the Lease, so it restarts before another process may acquire it; in the same container, without the kubelet's backoff."""
    first, second = pair
    before = first.process.pid
    place.api.pause()
    try:
        _await_restart(first)
    finally:
        place.api.resume()

    apply_and_wait(place, "after")
    assert before == first.process.pid
    assert sorted((held(first) or 0.0, held(second) or 0.0)) == [0.0, 1.0]


def _await_restart(process: StewardOperator) -> None:
    wait_until(
        lambda: "Operator starting" in process.process.log_text().partition("Lost Lease; restarting")[2],
        timeout_s=PATIENCE_S,
        what="it restarts after it lost the Lease",
        context=process.process.log_text,
    )


def _readiness(process: StewardOperator) -> tuple[int, object]:
    answer = http_get(process._probe[0], "/readyz")
    assert answer is not None
    return answer.status, json.loads(answer.body)


def _versions(place: Namespace) -> dict[str, str]:
    found = json.loads(place.api.get("/apis/steward.dev/v1alpha1/namespaces/leases/topics") or b"")
    return {item["metadata"]["name"]: item["metadata"]["resourceVersion"] for item in found["items"]}

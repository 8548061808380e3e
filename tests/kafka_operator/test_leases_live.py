"""Processes of the operator on a real API server, of which one holds the Lease: killed, ended well, frozen and thawed.

No Kafka is needed to see who works: a Topic whose Cluster is not there has that written into its status.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from lab.http_get import http_get
from lab.kubernetes import OPERATOR, KubernetesApi
from lab.steward import StewardOperator
from lab.waiting import wait_until
from tests.kafka_operator.live import PATIENCE_S, Namespace
from tests.kafka_operator.makers import raw_topic

pytestmark = [pytest.mark.kubernetes, pytest.mark.timeout(180)]

TAKEOVER_S = 15.0
"""A standby takes over within 15 s of a killed holder; all of it, to the first status that it writes."""

ROLE = f"""
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {{name: steward-leases-tests}}
rules:
  - {{apiGroups: [steward.dev], resources: ["*"], verbs: [get, list, watch, patch]}}
  - {{apiGroups: [steward.dev], resources: [reassignments], verbs: [create]}}
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
"""As the chart grants it: Leases in one namespace, by name."""


@pytest.fixture(scope="module")
def place(api: KubernetesApi) -> Namespace:
    """The namespace of the Lease and of what is served."""
    made = Namespace(api, "leases")
    api.kubectl("apply", "-f", "-", stdin=ROLE, check=True)
    return made


@pytest.fixture
def pair(place: Namespace, tmp_path: Path) -> Iterator[tuple[StewardOperator, StewardOperator]]:
    """One that works, and one that stands by."""
    processes = [operator(place, tmp_path / name, name) for name in ("first", "second")]
    processes[0].start()
    wait_until(lambda: held(processes[0]) == 1, timeout_s=PATIENCE_S, what="the first works")
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
    """What its metric says."""
    return process.metric('steward_lease_held{lease="operator"}')


def worked_on(place: Namespace, name: str) -> float:
    """Apply a Topic and return the seconds until somebody has written its status."""
    place.take(raw_topic(name))
    return place.until("Topic", name, "Unknown", "ClusterNotFound")


@pytest.mark.shows("F36")
def test_a_standby_is_ready_and_follows_a_killed_holder(
    pair: tuple[StewardOperator, StewardOperator], place: Namespace
) -> None:
    """Within 15 s of the kill; until then it says for whom it stands by, and writes nothing."""
    first, second = pair
    worked_on(place, "before")
    wait_until(
        lambda: _readiness(second) == (200, {"lease": "standby; operator is held by first"}),
        timeout_s=PATIENCE_S,
        what="the standby reports the holder of the Lease",
        context=lambda: str(_readiness(second)),
    )
    assert 'call="patch_topic' not in second.metrics()

    killed_s = time.monotonic()
    first.kill()
    worked_on(place, "after")

    assert time.monotonic() - killed_s < TAKEOVER_S
    assert held(second) == 1
    assert _readiness(second) == (200, {})


def test_a_holder_that_is_told_to_end_is_followed_at_once(
    pair: tuple[StewardOperator, StewardOperator], place: Namespace
) -> None:
    """SIGTERM gives the Lease back."""
    first, second = pair

    assert first.stop() == 0
    ended_s = time.monotonic()
    worked_on(place, "after")

    assert time.monotonic() - ended_s < 5
    assert held(second) == 1


def test_a_standby_that_is_told_to_end_ends_well(
    pair: tuple[StewardOperator, StewardOperator], place: Namespace
) -> None:
    """And the holder goes on."""
    first, second = pair

    assert second.stop() == 0

    worked_on(place, "after")
    assert held(first) == 1


@pytest.mark.shows("O10")
def test_a_thawed_holder_begins_anew_and_changes_nothing(
    pair: tuple[StewardOperator, StewardOperator], place: Namespace
) -> None:
    """O10: SIGSTOP past the Lease, another takes over, SIGCONT: every status is as the other left it."""
    first, second = pair
    worked_on(place, "before")
    first.pause()
    place.take(raw_topic("before", partitions=9))  # a change that the frozen one finds when it wakes
    worked_on(place, "after")
    wait_until(
        lambda: place.status("Topic", "before").get("conditions", [{}])[0].get("observedGeneration") == 2,
        timeout_s=PATIENCE_S,
        what="the other has worked on the change",
    )
    versions = _versions(place)

    first.resume()

    _await_a_new_beginning(first)
    wait_until(
        lambda: _readiness(first) == (200, {"lease": "standby; operator is held by second"}),
        timeout_s=PATIENCE_S,
        what="it is standby",
    )
    assert held(second) == 1
    assert versions == _versions(place)


def test_without_the_api_server_a_holder_begins_anew_and_is_there_when_it_is_back(
    pair: tuple[StewardOperator, StewardOperator], place: Namespace
) -> None:
    """It cannot know who holds the Lease; so it stops before another may begin, in the same container: no kubelet's back-off follows."""
    first, second = pair
    before = first.process.pid
    place.api.pause()
    try:
        _await_a_new_beginning(first)
    finally:
        place.api.resume()

    worked_on(place, "after")
    assert before == first.process.pid
    assert sorted((held(first) or 0.0, held(second) or 0.0)) == [0.0, 1.0]


def _await_a_new_beginning(process: StewardOperator) -> None:
    wait_until(
        lambda: "Operator starting" in process.process.log_text().partition("Lost Lease; restarting")[2],
        timeout_s=PATIENCE_S,
        what="it begins anew after it lost the Lease",
        context=process.process.log_text,
    )


def _readiness(process: StewardOperator) -> tuple[int, object]:
    answer = http_get(process._probe[0], "/readyz")
    assert answer is not None
    return answer.status, json.loads(answer.body)


def _versions(place: Namespace) -> dict[str, str]:
    found = json.loads(place.api.get("/apis/steward.dev/v1alpha1/namespaces/leases/topics") or b"")
    return {item["metadata"]["name"]: item["metadata"]["resourceVersion"] for item in found["items"]}

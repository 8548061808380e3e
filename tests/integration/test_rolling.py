"""Pods of real brokers rolled, drained and scaled in by the operator, on a real API server and under load.

No pod runs here: `pod_stand_in` simulates the StatefulSet's controller and the kubelet. The operator has the permissions of its rules.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Self

import pytest

from lab.checks.traffic import Traffic
from lab.peers.cluster import kafka_cluster
from lab.peers.kubernetes import OPERATOR, KubernetesApi
from lab.peers.steward import StewardController, StewardOperator
from lab.processes.folder import lab_folder
from lab.processes.waiting import wait_until
from tests.integration.conftest import CHROOT, Held
from tests.integration.kubernetes import POD_ROLE, User, manifest, plan_text, topic_text
from tests.integration.pod_stand_in import PodStandIn

pytestmark = [pytest.mark.kafka, pytest.mark.kubernetes, pytest.mark.timeout(600)]

BROKERS = (1, 2, 3)
MIN_ISR = 2
PATIENCE_S = 240.0
"""Three brokers, one after the other; half a minute each while other tests run on the same machine."""

POLL_INTERVAL_S = 0.2
"""A broker is away for seconds."""


@dataclass
class Watched:
    """The partitions of a topic over a period, from ZooKeeper."""

    held: Held
    topic: str
    smallest_isr: int = len(BROKERS)
    led_by_the_stopped: set[tuple[int, int]] = field(default_factory=set)
    """Partitions whose leader had ended its registration: (partition, broker)."""
    polls: int = 0
    _stopping: threading.Event = field(default_factory=threading.Event)

    def __enter__(self) -> Self:
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopping.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._stopping.wait(POLL_INTERVAL_S):
            before = self._registered()
            states = {
                number: self.held.state(self.topic, number) for number in self.held.cluster.assignment(self.topic)
            }
            registered = before | self._registered()
            for number, state in states.items():
                isr, leader = state["isr"], state["leader"]
                assert isinstance(isr, list)
                assert isinstance(leader, int)
                self.smallest_isr = min(self.smallest_isr, len(isr))
                if leader not in registered:
                    self.led_by_the_stopped.add((number, leader))
            self.polls += 1

    def _registered(self) -> set[int]:
        return set(map(int, self.held.cluster.zookeeper.client.get_children(f"{CHROOT}/brokers/ids")))


@pytest.fixture(scope="module")
def place() -> Iterator[Held]:
    """Three brokers under a controller, for this module only: a topic that other tests leave with one replica may delay a roll."""
    with lab_folder() as folder, kafka_cluster(BROKERS, start=False, chroot=CHROOT, folder=folder) as cluster:
        controller = StewardController(cluster.zookeeper_connect, folder)
        try:
            controller.start()
            cluster.start_brokers()
            yield Held(cluster, controller)
        finally:
            controller.close()


@dataclass(frozen=True)
class Site:
    """A user, the pods of the user's brokers, and the operator of these pods."""

    user: User
    pods: PodStandIn
    operator: StewardOperator


@pytest.fixture(scope="module")
def site(place: Held, pods_api: KubernetesApi) -> Iterator[Site]:
    """A namespace with Cluster `main`, whose brokers are pods, and an operator for them."""
    user = User(pods_api, "kafka")
    with lab_folder() as folder:
        options = ["--pods", "--drain", "--own-namespace=kafka", "--namespace=kafka"]
        operator = StewardOperator(pods_api.kubeconfig_for(OPERATOR), folder, arguments=options)
        try:
            with PodStandIn(pods_api, "kafka", place.cluster) as pods:
                operator.start()
                user.apply(declared(place.cluster.bootstrap()))
                wait_for(user, "Settled", "True", "AsDeclared")
                yield Site(user, pods, operator)
        finally:
            operator.close()


def declared(bootstrap: str, replicas: int = len(BROKERS), **spec: object) -> str:
    """Cluster `main` with pods of brokers, and further fields of its spec."""
    brokers = {"statefulSet": "main-broker", "firstId": 1, "replicas": replicas}
    return manifest("Cluster", "main", bootstrapServers=bootstrap.split(","), brokers=brokers, **spec)


def wait_for(user: User, condition_type: str, status: str, reason: str) -> str:
    """Wait for a condition of `main`, of its current generation; return its message."""
    found: list[dict[str, Any]] = []

    def holds() -> bool:
        main = user.read("clusters", "main")
        found[:] = [item for item in main.get("status", {}).get("conditions", []) if item["type"] == condition_type]
        return any(
            (item["status"], item["reason"], item["observedGeneration"])
            == (status, reason, main["metadata"]["generation"])
            for item in found
        )

    wait_until(holds, timeout_s=PATIENCE_S, what=f"{condition_type} {reason}", context=lambda: str(found))
    return str(found[0]["message"])


@pytest.mark.shows("F33", "F34", "E9")
def test_pods_are_drained_and_rolled_one_at_a_time_and_nothing_is_lost(place: Held, site: Site) -> None:
    """A drain and a rolling restart of all brokers under load lose no acknowledged record and never drop a partition under min ISR.

    Each broker's leaders move before it ends its registration.
    """
    user, pods = site.user, site.pods
    place.create("rolled", partitions=6, min_insync_replicas=str(MIN_ISR))
    began_s = time.monotonic()

    with Traffic(place.cluster.bootstrap(), "rolled", consume=False) as traffic, Watched(place, "rolled") as watched:
        user.kubectl("cordon", pods.node_of(1))
        pods.roll()
        wait_until(
            lambda: pods.revisions() == ["main-broker-rev2"] * 3,
            timeout_s=PATIENCE_S,
            what="all pods rolled",
            context=lambda: f"{pods.deleted}, {user.read('clusters', 'main').get('status')}",
        )
        wait_for(user, "Settled", "True", "AsDeclared")
        place.wait_until_all_are_back("rolled")
        report = traffic.stop()

    assert pods.deleted == ["main-broker-1", "main-broker-0", "main-broker-2"]
    assert report.ok, report.summary()
    assert report.duplicates == 0, report.summary()
    assert (watched.smallest_isr, watched.polls > 10) == (MIN_ISR, True)
    assert watched.led_by_the_stopped == set()
    reasons = [reason for _, reason in user.events("main")]
    assert sorted(item for item in reasons if item in {"Draining", "Rolling"}) == ["Draining", "Rolling", "Rolling"]
    print(f"three brokers in {time.monotonic() - began_s:.1f} s; {report.summary()}")  # noqa: T201


def test_a_topic_that_cannot_spare_a_replica_delays_the_drain_of_its_broker(place: Held, site: Site) -> None:
    """The condition and an event name the partitions; the pod stays; the drain continues when the topic is deleted."""
    user, pods = site.user, site.pods
    pods.replaces = False  # the broker itself need not stop
    place.create("single", partitions=3, replication_factor=1)
    before = list(pods.deleted)
    user.kubectl("cordon", pods.node_of(0))

    message = wait_for(user, "Settled", "False", "WouldFallUnderMinIsr")

    assert "Replacing main-broker-0 would leave partitions below min.insync.replicas: single-" in message
    assert before == pods.deleted
    place.admin.delete_topics(["single"])["single"].result(PATIENCE_S)
    wait_until(lambda: [*before, "main-broker-0"] == pods.deleted, timeout_s=PATIENCE_S, what="the drain goes on")
    wait_for(user, "Settled", "True", "AsDeclared")
    assert ("Warning", "WouldFallUnderMinIsr") in user.events("main")


@pytest.mark.shows("F21")
def test_scaling_in_is_refused_until_the_broker_holds_nothing(place: Held, site: Site) -> None:
    """Scaling in is refused while the broker holds replicas, with their names; autoRebalance moves them away, and the pod is removed."""
    user, pods = site.user, site.pods
    pods.replaces = False
    for topic in place.topics() - {"held"}:
        place.admin.delete_topics([topic])[topic].result(PATIENCE_S)
    place.create("held", partitions=1, replication_factor=2)
    wait_until(lambda: {"held"} == place.topics(), timeout_s=PATIENCE_S, what="the removal of the other topics")
    user.apply(plan_text("onto-3", {("held", 0): [1, 3]}))
    user.wait_for("reassignments", "onto-3", "True", "Completed")

    user.kubectl("scale", "cluster.steward.dev/main", "--replicas=2")

    message = wait_for(user, "Scaled", "False", "ScaleInRefused")
    assert "Scale-in from 3 to 2 broker pods is blocked: broker 3 holds held-0." in message
    assert (pods.replicas(), user.row("clusters", "main")["SCALED"]) == (3, "ScaleInRefused")
    user.apply(
        declared(place.cluster.bootstrap(), 2, autoRebalance={"onBrokersRemoved": True, "approval": "Automatic"})
    )
    wait_for(user, "Scaled", "True", "AsDeclared")
    user.wait_for("reassignments", "main-auto-1", "True", "Completed")
    assert place.cluster.assignment("held") == {0: [1, 2]}
    wait_until(lambda: sorted(pods.pods()) == [0, 1], timeout_s=PATIENCE_S, what="the pod goes")
    user.kubectl("scale", "statefulset/main-broker", "--replicas=1")
    wait_until(lambda: pods.replicas() == 2, timeout_s=PATIENCE_S, what="what was done behind its back is undone")


def test_a_missing_permission_is_named_and_ends_the_operator(pods_api: KubernetesApi, site: Site) -> None:
    """Verb and resource are named."""
    pods_api.kubectl("delete", "clusterrole", "steward-operator-pods", check=True)
    with lab_folder() as folder:
        options = ["--pods", "--drain", f"--namespace={site.user.namespace}"]
        other = StewardOperator(pods_api.kubeconfig_for(OPERATOR), folder, arguments=options)
        try:
            other.launch()
            wait_until(lambda: not other.process.running, timeout_s=PATIENCE_S, what="it has ended")
            log = other.process.log_text()
        finally:
            other.close()
            pods_api.kubectl("apply", "--filename=-", stdin=POD_ROLE, check=True)

    assert "Operator cannot start" in log
    for right in (
        "patch on statefulsets.apps/scale in namespace kafka",
        "delete on pods in namespace kafka",
        "get on nodes",
    ):
        assert right in log


def test_an_operator_that_is_deleted_with_its_namespace_releases_all_finalizers(
    pods_api: KubernetesApi, site: Site
) -> None:
    """A deleted namespace does not hang. Its pods are deleted first, including the operator's; the test deletes nothing itself."""
    user = site.user
    user.apply(topic_text("kept", replication_factor=2))
    user.wait_until_ready("kept")
    assert all(item["metadata"]["finalizers"] for kind in ("clusters", "topics") for item in user.listed(kind))
    pods_api.kubectl("delete", "namespace", user.namespace, "--wait=false", check=True)

    assert site.operator.stop() == 0

    left = [item for kind in ("clusters", "topics", "reassignments") for item in user.listed(kind)]
    assert [item["metadata"]["name"] for item in left if item["metadata"].get("finalizers")] == []

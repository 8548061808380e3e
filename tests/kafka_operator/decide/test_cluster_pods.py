"""Decisions about a Cluster's pods: recorded before they are deleted, one event each, brokers before controllers."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from kafka_operator.decide.clusters.cluster_pods import (
    BUSY_POLL_S,
    IDLE_POLL_S,
    DeletePod,
    PodsView,
    ScaleTo,
    Step,
    decide_pods,
    without_pods,
)
from kafka_operator.decide.clusters.rolling import AskKafka
from kafka_operator.decide.kafka.observed import Unavailable
from kafka_operator.resources.cluster import Cluster, Replacing, read_cluster
from kafka_operator.resources.pods import PodSet
from reconciler.decide.steps import ResourceEvent, Wait, WriteStatus
from tests.kafka_operator.cluster_pods import LONG_AGO, OLD, cluster_with_pods, health, partition, pod, pod_set
from tests.kafka_operator.makers import NOW, raw_cluster

THREE = pod_set(pod(0), pod(1), pod(2))
WELL = health(partition(0, (0, 1, 2)))


def settle(cluster: Cluster, pods: PodSet | Unavailable, **view: Any) -> tuple[Cluster, Step, list[ResourceEvent]]:
    """Carry out status writes until there are none; return the first other step, and the events."""
    events: list[ResourceEvent] = []
    for _ in range(4):
        step = decide_pods(cluster, PodsView(NOW, pods, **view))
        if not isinstance(step, WriteStatus):
            return cluster, step, events
        cluster = replace(cluster, status=step.status)
        events += [step.event] if step.event is not None else []
    raise AssertionError("it writes forever")


def shown(cluster: Cluster) -> dict[str, tuple[str, str]]:
    """The conditions by type."""
    return {item.type: (item.status, item.reason) for item in cluster.status.conditions}


def test_settled_pods_are_reported_once() -> None:
    """No event for the desired state, and no check of Kafka."""
    cluster, step, events = settle(cluster_with_pods(), THREE)

    assert (Wait(IDLE_POLL_S), []) == (step, events)
    assert shown(cluster) == {"Scaled": ("True", "AsDeclared"), "Settled": ("True", "AsDeclared")}
    assert cluster.status.broker_replicas == 3


def test_a_pod_is_named_in_the_status_before_it_is_deleted() -> None:
    """A second operator loses the write and reads whom the first one chose."""
    before, _, _ = settle(cluster_with_pods(), THREE)
    pods = pod_set(pod(0, OLD), pod(1), pod(2))
    assert decide_pods(before, PodsView(NOW, pods)) == AskKafka()

    after, step, events = settle(before, pods, health=WELL)

    assert step == DeletePod(pods.pods[0])
    assert after.status.replacing == Replacing("main-broker-0", "uid-0")
    assert shown(after)["Settled"] == ("False", "Rolling")
    assert [(event.warning, event.reason) for event in events] == [(False, "Rolling")]


def test_each_pod_that_is_replaced_is_an_event_and_so_is_the_end() -> None:
    """Waiting in between is none."""
    cluster, _, events = settle(cluster_with_pods(2), pod_set(pod(0, OLD), pod(1, OLD)), health=WELL)
    cluster, step, more = settle(cluster, pod_set(pod(0, ready=False), pod(1, OLD)))
    assert (Wait(BUSY_POLL_S), []) == (step, more)
    assert cluster.status.replacing is None
    cluster, _, last = settle(cluster, pod_set(pod(0), pod(1, OLD)), health=WELL)
    cluster, _, end = settle(cluster, pod_set(pod(0), pod(1)))

    assert [event.reason for event in (*events, *last, *end)] == ["Rolling", "Rolling", "Settled"]


def test_a_stuck_pod_is_a_warning() -> None:
    """It stops, with a condition and an event."""
    pods = pod_set(pod(0, OLD), pod(1, ready=False, since=LONG_AGO))

    cluster, step, events = settle(cluster_with_pods(2), pods)

    assert shown(cluster)["Settled"] == ("False", "PodStuck")
    assert [(event.warning, event.reason) for event in events] == [(True, "PodStuck")]
    assert step == Wait(BUSY_POLL_S)


def test_a_refused_scale_in_is_a_warning_and_the_pods_stay() -> None:
    """Refused while it holds replicas; the message names them."""
    before, _, _ = settle(cluster_with_pods(), THREE)
    declared = replace(before, brokers=cluster_with_pods(2).brokers)
    assert decide_pods(declared, PodsView(NOW, THREE)) == AskKafka()

    refused, step, events = settle(declared, THREE, health=WELL)

    assert isinstance(step, Wait)
    assert shown(refused)["Scaled"] == ("False", "ScaleInRefused")
    assert [(event.warning, event.reason) for event in events] == [(True, "ScaleInRefused")]
    assert "broker 2 holds orders-0" in events[0].message
    moved, step, events = settle(refused, THREE, health=health(partition(0, (0, 1))))
    assert (ScaleTo(THREE, 2), 2) == (step, moved.status.broker_replicas)
    assert [event.reason for event in events] == ["Scaled"]


def test_more_pods_are_had_at_once() -> None:
    """And the number that is stood for is written first."""
    cluster, step, _ = settle(cluster_with_pods(4), THREE)

    assert (ScaleTo(THREE, 4), 4) == (step, cluster.status.broker_replicas)


def test_pods_without_a_declared_number_are_rolled_too() -> None:
    """spec.brokers.replicas is left out: the StatefulSet's number is its owner's."""
    cluster, step, _ = settle(cluster_with_pods(None), pod_set(pod(0), pod(1, OLD)), health=WELL)

    assert isinstance(step, DeletePod)
    assert shown(cluster).keys() == {"Settled"}


def test_controllers_come_after_all_brokers() -> None:
    """Standby first, the active one last."""
    controllers = pod_set(pod(1000, OLD), pod(1001, OLD), first_id=1000)
    seen = health(partition(0, (0, 1, 2)), controller_id=1001)

    _, first, _ = settle(
        cluster_with_pods(), pod_set(pod(0), pod(1), pod(2, OLD)), controllers=controllers, health=seen
    )
    _, then, _ = settle(cluster_with_pods(), THREE, controllers=controllers, health=seen)

    assert isinstance(first, DeletePod)
    assert isinstance(then, DeletePod)
    assert (first.pod.node_id, then.pod.node_id) == (2, 1000)


def test_pods_that_cannot_be_read_are_unknown() -> None:
    """A missing right, a StatefulSet that does not exist: reported by the condition and an event."""
    cluster, step, events = settle(cluster_with_pods(), Unavailable("NotAllowed", "pods is forbidden"))

    assert (Wait(IDLE_POLL_S), ("Unknown", "NotAllowed")) == (step, shown(cluster)["Settled"])
    assert [event.reason for event in events] == ["NotAllowed"]


def test_a_status_reads_back_as_it_was_written() -> None:
    """Otherwise every poll would write again."""
    cluster, _, _ = settle(cluster_with_pods(), pod_set(pod(0, OLD), pod(1), pod(2)), health=WELL)
    raw = raw_cluster()
    raw["metadata"] |= {"uid": "u", "resourceVersion": "1", "creationTimestamp": "2026-01-01T00:00:00Z"}
    raw["spec"]["brokers"] = {"statefulSet": "main-broker", "replicas": 3}
    raw["status"] = {name: value for name, value in cluster.status.to_patch().items() if value is not None}

    read = read_cluster(raw)

    assert (cluster.status, cluster.brokers) == (read.status, read.brokers)
    assert (without_pods(cluster).conditions, without_pods(cluster).broker_replicas) == ((), None)

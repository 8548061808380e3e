"""Number of pods of brokers. Scaling in is refused while a broker holds replicas; the message names it."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from kafka_operator.decide.clusters.scaling import YOUNG_S, AskHolders, Scale, decide_scale
from kafka_operator.decide.kafka.observed import Quorum, Unavailable
from kafka_operator.resources.pods import PodSet
from tests.kafka_operator.cluster_pods import health, partition, pod, pod_set
from tests.kafka_operator.makers import NOW, quorum

THREE = pod_set(pod(0), pod(1), pod(2))


def scale(declared: int, standing: int | None, seen: object = None, pods: PodSet = THREE) -> Scale | AskHolders:
    """Decide, for a StatefulSet of three by default."""
    return decide_scale(declared, standing, pods, seen, NOW)


@pytest.mark.parametrize(("declared", "standing"), [(3, None), (3, 3), (5, 3), (5, None)])
def test_as_many_or_more_are_had_at_once(declared: int, standing: int | None) -> None:
    """No consent is needed."""
    found = scale(declared, standing)

    assert isinstance(found, Scale)
    assert (declared, False) == (found.replicas, found.refused)


def test_fewer_pods_need_a_check_of_kafka() -> None:
    """And stay as many while it cannot be asked."""
    assert scale(2, 3) == AskHolders()
    away = scale(2, 3, Unavailable("ClusterUnreachable", "No broker answers."))
    assert isinstance(away, Scale)
    assert (away.replicas, away.reason) == (3, "ClusterUnreachable")


def test_brokers_that_hold_replicas_stay_and_are_named() -> None:
    """By broker, with the partitions, out of sync or not."""
    seen = health(
        partition(0, (0, 1)), partition(1, (0, 2), isr=(0,)), partition(2, (1, 2)), partition(0, (1, 0), topic="logs")
    )

    found = scale(1, 3, seen)

    assert isinstance(found, Scale)
    assert (found.replicas, found.reason, found.refused) == (3, "ScaleInRefused", True)
    assert "broker 1 holds logs-0, orders-0, orders-2; broker 2 holds orders-1, orders-2" in found.message


@pytest.mark.shows("F45")
@pytest.mark.parametrize(
    ("seen", "message"),
    [
        (quorum(0, 1, 2), "voters of the quorum would be removed: 2. Remove them first with kafka-metadata-quorum"),
        (Unavailable("QuorumNotVisible", "Not allowed."), "which is not visible. Not allowed."),
        (Quorum(-1), "which has no leader at the moment."),
    ],
    ids=["voter", "not visible", "election"],
)
def test_a_pod_of_a_voter_is_never_scaled_in(seen: Quorum | Unavailable, message: str) -> None:
    """A quorum keeps counting a voter that is gone (KIP-853), also one that holds no replica."""
    found = scale(2, 3, replace(health(partition(0, (0, 1))), quorum=seen))

    assert isinstance(found, Scale)
    assert (found.replicas, found.reason, message in found.message) == (3, "ScaleInRefused", True)


def test_a_pod_that_is_no_voter_is_scaled_in() -> None:
    """Brokers are observers where controllers are nodes of their own."""
    found = scale(2, 3, replace(health(partition(0, (0, 1))), quorum=quorum(100, observers=(0, 1, 2))))

    assert isinstance(found, Scale)
    assert (found.replicas, found.refused) == (2, False)


def test_many_partitions_are_named_in_part() -> None:
    """A message has its limits."""
    found = scale(2, 3, health(*(partition(index, (2, 0)) for index in range(9))))

    assert isinstance(found, Scale)
    assert "orders-4 and 4 more" in found.message


def test_empty_brokers_may_go() -> None:
    """All that leave at once: they hold nothing."""
    found = scale(1, 3, health(partition(0, (0,))))

    assert isinstance(found, Scale)
    assert (found.replicas, found.refused) == (1, False)


def test_pods_scaled_in_outside_are_scaled_out_again() -> None:
    """`kubectl scale statefulset`, or a chart rolled back: the StatefulSet has 3, the operator maintains 5."""
    found = scale(5, 5)

    assert isinstance(found, Scale)
    assert found.replicas == 5
    refused = scale(3, 5, health(partition(0, (0, 4)), brokers=3))
    assert isinstance(refused, Scale)
    assert (refused.replicas, refused.reason) == (5, "ScaleInRefused")


def test_pods_scaled_out_outside_are_checked_before_their_removal() -> None:
    """The StatefulSet has 3, 2 are declared and maintained: the third broker may already hold replicas."""
    assert scale(2, 2) == AskHolders()
    held = scale(2, 2, health(partition(0, (0, 2))))
    assert isinstance(held, Scale)
    assert (held.replicas, held.reason) == (3, "ScaleInRefused")


def test_a_pod_that_was_just_made_is_not_removed_again() -> None:
    """Its Cluster may be about to declare it; one that does not start is removed."""
    made = pod(2, ready=False)

    young = scale(2, 2, None, pod_set(pod(0), pod(1), made))
    old = scale(2, 2, None, pod_set(pod(0), pod(1), replace(made, since=NOW - timedelta(seconds=YOUNG_S))))

    assert isinstance(young, Scale)
    assert (young.replicas, young.reason) == (3, "WaitingForPods")
    assert old == AskHolders()

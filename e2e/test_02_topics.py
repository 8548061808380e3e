"""`kubectl apply` of Topics, and applications that use them from pods of their own."""

from collections import Counter

import pytest

from e2e.clients import KafkaClients
from e2e.release import Release
from e2e.resources import TOPICS, topic

pytestmark = pytest.mark.smoke

READY_WITHIN_S = 60.0
"""Some twenty times what is usual."""

NAME = "orders"

LOAD_S = 10.0


@pytest.fixture(scope="module")
def orders(release: Release) -> str:
    """A Topic of six partitions, Ready."""
    release.kube.apply(topic(NAME))
    release.kube.wait_condition(TOPICS, NAME, timeout_s=READY_WITHIN_S)
    return NAME


@pytest.mark.shows("F1")
def test_a_topic_gets_ready_and_its_leaders_are_spread(orders: str, clients: KafkaClients) -> None:
    """Six partitions on three brokers: two leaders each, and every partition in all three racks."""
    partitions = clients.partitions(orders)

    assert len(partitions) == 6
    assert Counter(partition.leader for partition in partitions.values()) == {0: 2, 1: 2, 2: 2}
    assert all(sorted(partition.replicas) == [0, 1, 2] for partition in partitions.values())


def test_what_one_pod_produces_another_consumes(orders: str, clients: KafkaClients) -> None:
    """An application knows the client Service and nothing else."""
    witness = clients.witness(orders, min_isr=2)
    witness.run_for(LOAD_S)
    report = witness.stop()

    assert report.wrong() == {}
    assert report.consumed >= report.acked * 9 // 10, "the reader of a group keeps up"


@pytest.mark.shows("F3")
def test_partitions_grow(orders: str, release: Release, clients: KafkaClients) -> None:
    """A Topic's number of partitions is raised by applying it again."""
    release.kube.apply(topic(orders, partitions=9))
    release.kube.wait_condition(TOPICS, orders, timeout_s=READY_WITHIN_S)

    assert len(clients.partitions(orders)) == 9


@pytest.mark.shows("F4")
def test_fewer_partitions_are_refused_at_apply(orders: str, release: Release) -> None:
    """Kafka would have to drop records."""
    assert "never be decreased" in release.kube.refusal(topic(orders, partitions=3))


@pytest.mark.shows("F31")
def test_more_replicas_than_brokers_are_refused_with_a_reason(release: Release) -> None:
    """Only the cluster knows the number of brokers: the condition reports it."""
    release.kube.apply(topic("wide", replication_factor=5))
    release.kube.wait_condition(TOPICS, "wide", timeout_s=READY_WITHIN_S, status="False", reason="NotEnoughBrokers")
    release.kube.delete(TOPICS, "wide")

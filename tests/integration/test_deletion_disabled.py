"""Deletions queued by hand while brokers run with delete.topic.enable=false: real ZooKeeper, real brokers."""

from collections.abc import Iterator

import pytest

from lab.checks.traffic import Traffic
from lab.processes.waiting import wait_until
from tests.integration.clusters import create_on, held_cluster
from tests.integration.conftest import CHROOT, PATIENCE_S, Held

pytestmark = pytest.mark.kafka

QUEUED = f"{CHROOT}/admin/delete_topics/orders"


@pytest.fixture(scope="module")
def cluster() -> Iterator[Held]:
    """Two brokers that must not delete topics, under a Steward controller."""
    with held_cluster((1, 2), settings={"delete.topic.enable": "false"}) as held:
        create_on(held, "orders", [1, 2])
        yield held


def is_queued(held: Held) -> bool:
    """Whether the topic is in the deletion queue."""
    return held.cluster.zookeeper.client.exists(QUEUED) is not None


def wait_until_removed(held: Held) -> None:
    """Wait until the topic has left the queue; the topic and its logs must still exist."""
    wait_until(lambda: not is_queued(held), timeout_s=PATIENCE_S, what="the name out of the deletion queue")
    assert "orders" in held.topics()
    folders = [broker.data_folder / "orders-0" for broker in held.cluster.brokers.values()]
    assert [folder.is_dir() for folder in folders] == [True, True]


@pytest.mark.soak(
    "integration/test_deletion_disabled.py::test_a_deletion_found_at_a_take_over_waits_for_the_setting_and_is_dequeued"
)
def test_a_deletion_queued_by_hand_is_dequeued_and_the_topic_keeps_its_records(cluster: Held) -> None:
    """KafkaController.processTopicDeletion; the traffic's consumer reads the records back."""
    with Traffic(cluster.cluster.bootstrap(), "orders") as traffic:
        traffic.wait_for_acks(40)
        cluster.cluster.zookeeper.client.create(QUEUED)
        wait_until_removed(cluster)
        traffic.wait_for_acks(40)
        report = traffic.stop()

    assert report.ok, report.summary()


@pytest.mark.shows("C10")
def test_a_deletion_found_at_a_take_over_waits_for_the_setting_and_is_dequeued(cluster: Held) -> None:
    """C10, TopicDeletionManager.init. No broker is up to report the setting when the controller takes over."""
    cluster.controller.kill()
    for broker in cluster.cluster.brokers.values():
        broker.kill()
    for broker in cluster.cluster.brokers.values():
        broker.wait_until_deregistered()
    if not is_queued(cluster):
        cluster.cluster.zookeeper.client.create(QUEUED)

    cluster.controller.start()
    cluster.wait_until_held()
    assert is_queued(cluster), "the topic was dequeued before any broker reported the setting"
    for broker in cluster.cluster.brokers.values():
        broker.start()

    wait_until_removed(cluster)
    cluster.cluster.wait_until_in_sync("orders")
    with Traffic(cluster.cluster.bootstrap(), "orders") as traffic:
        traffic.wait_for_acks(10)
        report = traffic.stop()
    assert report.ok, report.summary()

"""Moves of replicas and deletions of topics, observed in ZooKeeper while they run."""

import pytest
from kafka import KafkaAdminClient, TopicPartition

from lab.checks.traffic import Traffic
from lab.processes.waiting import wait_until
from tests.integration.conftest import CHROOT, PATIENCE_S, Held

pytestmark = pytest.mark.kafka


@pytest.mark.shows("C9")
def test_a_move_under_load_ends_exactly_at_its_target(held: Held) -> None:
    """C9: never fewer than the old replicas until the new ones are in sync, then exactly the target; clients are not affected."""
    held.create("moved", partitions=4, min_insync_replicas="2")
    target = {partition: [2, 3, 4] for partition in range(4)}

    with Traffic(held.cluster.bootstrap(), "moved") as traffic:
        admin = KafkaAdminClient(bootstrap_servers=held.cluster.bootstrap())
        moves = {TopicPartition("moved", partition): replicas for partition, replicas in target.items()}
        admin.alter_partition_reassignments(moves)
        wait_until(lambda: held.cluster.assignment("moved") == target, timeout_s=PATIENCE_S, what="the target")
        admin.close()
        traffic.wait_for_acks(40)
        report = traffic.stop()

    assert report.ok, report.summary()
    assert all(set(held.state("moved", partition)["isr"]) == {2, 3, 4} for partition in target)


@pytest.mark.shows("C10")
def test_a_deletion_waits_for_a_dead_replica_and_goes_on_when_it_is_back(held: Held) -> None:
    """C10; protocol notes, Z80: the znode stays until every replica's broker has answered; the logs are deleted then."""
    held.create("deleted", partitions=2, replication_factor=4)
    broker = held.cluster.broker(4)
    broker.kill()
    broker.wait_until_deregistered()

    held.admin.delete_topics(["deleted"], operation_timeout=1)
    wait_until(
        lambda: held.cluster.zookeeper.read(f"{CHROOT}/admin/delete_topics/deleted") is not None,
        timeout_s=PATIENCE_S,
        what="the deletion in the queue",
    )
    assert held.cluster.assignment("deleted"), "the topic was removed before all of its replicas"

    broker.restart()
    wait_until(
        lambda: held.cluster.zookeeper.read(f"{CHROOT}/brokers/topics/deleted") is None,
        timeout_s=PATIENCE_S,
        what="the removal of the topic",
    )
    assert list(broker.data_folder.glob("deleted-?")) == []

"""Brokers of Kafka 3.9 with two log directories: one is lost and comes back (KIP-112), replicas move between them (KIP-113)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from confluent_kafka import ElectionType

from kafka_operator.admin.client import KafkaAdmin
from kafka_operator.decide.kafka.replica_dirs import ReplicaDir, replica_dirs_of
from kafka_operator.decide.reassignments.reassignment_steps import AlterBroker
from kafka_operator.decide.reassignments.throttle import LOG_DIRS_RATE
from kafka_operator.metrics import KafkaMetrics
from kafka_operator.resources.reassignment import Partition
from lab.checks.traffic import Traffic
from lab.peers.kafka import KafkaBroker
from lab.processes.waiting import wait_until
from tests.conftest import SMALL_FETCHES
from tests.integration.clusters import held_cluster, metadata_by
from tests.integration.conftest import CHROOT, PATIENCE_S, Held
from tests.integration.faults import (
    controller_epoch,
    is_queued_for_deletion,
    judge_history,
    metadata_differences,
    wait_until_converged,
)
from tests.kafka_operator.stock import Stock

pytestmark = pytest.mark.kafka

SETTINGS = {"replica.high.watermark.checkpoint.interval.ms": "500", **SMALL_FETCHES}
"""Interval in which a broker writes into each of its directories, also without load: it soon detects a failed one."""
NOTIFICATIONS = f"{CHROOT}/log_dir_event_notification"
DELETED = "deleted"
POLL_S = 0.1


@pytest.fixture(scope="module")
def held() -> Iterator[Held]:
    """Three brokers with two log directories each; leave them running and complete."""
    with held_cluster((1, 2, 3), log_dirs=2, settings=SETTINGS) as held:
        yield held


@contextmanager
def lost(broker: KafkaBroker, folder: Path) -> Iterator[None]:
    """Replace a log directory by a file; at the end stop the broker, restore the directory and start it."""
    aside = folder.with_suffix(".aside")
    folder.rename(aside)
    folder.touch()
    try:
        yield
    finally:
        broker.stop()
        folder.unlink()
        aside.rename(folder)
        broker.start()


def partitions_in(folder: Path, topic: str) -> set[int]:
    """List the partitions of a topic in a log directory."""
    return {int(path.name.rpartition("-")[2]) for path in folder.glob(f"{topic}-?")}


def offline_replicas(held: Held, broker_id: int, topic: str) -> dict[int, list[int]]:
    """Ask a broker for the offline replicas, by partition."""
    return {
        partition["partition_index"]: partition["offline_replicas"] for partition in metadata_by(held, broker_id, topic)
    }


def wait_until_led_by_others(held: Held, topic: str, victim: int, partitions: set[int]) -> float:
    """Wait until a broker is out of the ISR of these partitions only, and all brokers know it."""

    def out() -> bool:
        states = {partition: held.state(topic, partition) for partition in held.cluster.assignment(topic)}
        return (
            partitions == {partition for partition, state in states.items() if victim not in state["isr"]}
            and all(states[partition]["leader"] not in {victim, -1} for partition in partitions)
            and not metadata_differences(held)
        )

    return wait_until(out, timeout_s=PATIENCE_S, what=f"broker {victim} out of {topic}-{sorted(partitions)} only")


def test_a_lost_log_directory_affects_only_its_replicas_and_they_come_back(held: Held) -> None:
    """C1, C2, C4, C9, C10, C12, C14, B1 (KafkaController.processLogDirEventNotification): other replicas lead its partitions.

    Neither a take-over nor a preferred election makes them online; a deletion waits for the log that would stay behind.
    """
    held.create("spread", partitions=6, min_insync_replicas="2")
    held.create(DELETED, partitions=6)
    victim = held.leaders("spread")[0]
    broker = held.cluster.broker(victim)
    folder = next(data_folder for data_folder in broker.data_folders if 0 in partitions_in(data_folder, "spread"))
    lost_partitions, kept = partitions_in(folder, "spread"), {*range(6)} - partitions_in(folder, "spread")
    expected = {partition: [victim] if partition in lost_partitions else [] for partition in range(6)}
    assert partitions_in(folder, DELETED)
    epoch, witness = controller_epoch(held), next(broker for broker in held.cluster.brokers if broker != victim)

    with Traffic(held.cluster.bootstrap(), "spread", consume=False) as traffic:
        with lost(broker, folder):
            took_s = wait_until_led_by_others(held, "spread", victim, lost_partitions)
            print(f"\nled by others {took_s:.1f} s after a log directory was lost")  # noqa: T201
            assert offline_replicas(held, witness, "spread") == expected
            assert held.cluster.zookeeper.client.get_children(NOTIFICATIONS) == []
            assert broker.registered

            held.cluster.zookeeper.client.delete(f"{CHROOT}/controller")
            wait_until(lambda: controller_epoch(held) > epoch, timeout_s=PATIENCE_S, what="a take-over")
            held.wait_until_held()
            wait_until(
                lambda: not metadata_differences(held) and offline_replicas(held, witness, "spread") == expected,
                timeout_s=PATIENCE_S,
                what="offline replicas known after the take-over",
            )
            held.admin.list_topics(timeout=PATIENCE_S)  # only this makes librdkafka find a new controller
            held.admin.elect_leaders(ElectionType.PREFERRED).result(PATIENCE_S)
            assert victim not in {held.leaders("spread")[lost_partition] for lost_partition in lost_partitions}
            held.admin.delete_topics([DELETED], operation_timeout=1)
            wait_until(lambda: is_queued_for_deletion(held, DELETED), timeout_s=PATIENCE_S, what="a deletion queued")
            traffic.wait_for_acks(40)
            assert is_queued_for_deletion(held, DELETED)
        wait_until_converged(held, "the start of a broker with its log directory restored")
        traffic.wait_for_acks(40)
        report = traffic.stop()

    assert report.ok, report.summary()
    assert kept
    assert DELETED not in held.topics()
    assert [
        data_folder
        for broker in held.cluster.brokers.values()
        for data_folder in broker.data_folders
        if partitions_in(data_folder, DELETED)
    ] == []
    assert {partition: [] for partition in range(6)} == offline_replicas(held, witness, "spread")
    judge_history(held)


async def wait_for_dir(admin: KafkaAdmin, broker_id: int, name: Partition, holds: Callable[[ReplicaDir], bool]) -> None:
    """Wait until the replica of a broker is in a directory as expected."""
    async with asyncio.timeout(PATIENCE_S):
        while True:
            found = replica_dirs_of(await admin.describe_replica_dirs([broker_id], [name]))
            if name in found and holds(found[name][broker_id]):
                return
            await asyncio.sleep(POLL_S)


async def throttle(admin: KafkaAdmin, broker_id: int, rate: str) -> None:
    """Limit the rate of moves between directories, and wait until the broker does: it learns of the change from ZooKeeper."""
    await admin.alter_broker_configs([AlterBroker(broker_id, ((LOG_DIRS_RATE, rate),))])
    async with asyncio.timeout(PATIENCE_S):
        while await admin.describe_broker_configs([broker_id], [LOG_DIRS_RATE]) != {broker_id: {LOG_DIRS_RATE: rate}}:  # noqa: ASYNC110
            await asyncio.sleep(POLL_S)


@pytest.mark.shows("F44")
async def test_a_replica_moves_between_directories_and_a_cancelled_move_leaves_it(held: Held) -> None:
    """AlterReplicaLogDirs with the current directory deletes the future log (ReplicaManager.alterReplicaLogDirs)."""
    held.create("moved", partitions=1)
    await asyncio.to_thread(Stock(held.cluster.bootstrap()).fill, "moved", 20)
    name, broker_id = Partition("moved", 0), held.leaders("moved")[0]
    admin = KafkaAdmin(held.cluster.bootstrap().split(","), KafkaMetrics())
    folders = {str(folder) for folder in held.cluster.broker(broker_id).data_folders}
    first = replica_dirs_of(await admin.describe_replica_dirs([broker_id], [name]))[name][broker_id].path
    (second,) = folders - {first}
    try:
        assert await admin.move_log_dirs({broker_id: {name: second}}) == {}
        await wait_for_dir(admin, broker_id, name, lambda found: found == ReplicaDir(second))

        await throttle(admin, broker_id, "1000")
        assert await admin.move_log_dirs({broker_id: {name: first}}) == {}
        await wait_for_dir(admin, broker_id, name, lambda found: (found.path, found.future) == (second, first))
        assert await admin.move_log_dirs({broker_id: {name: second}}) == {}
        await wait_for_dir(admin, broker_id, name, lambda found: found == ReplicaDir(second))
        await admin.alter_broker_configs([AlterBroker(broker_id, ((LOG_DIRS_RATE, None),))])
        refused = await admin.move_log_dirs({broker_id: {name: "/none"}})
    finally:
        await admin.close()

    assert refused[name].name == "LOG_DIR_NOT_FOUND"

"""A broker loses one of its two log directories, and gets it back (KIP-112)."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from confluent_kafka import ElectionType

from lab.kafka import KafkaBroker
from lab.traffic import Traffic
from lab.waiting import wait_until
from tests.integration.clusters import held_cluster, told_by
from tests.integration.conftest import CHROOT, PATIENCE_S, Held
from tests.integration.faults import (
    controller_epoch,
    is_queued_for_deletion,
    judge_history,
    unlike_zookeeper,
    wait_until_converged,
)

pytestmark = [pytest.mark.kafka, pytest.mark.timeout(240)]

SETTINGS = {"replica.high.watermark.checkpoint.interval.ms": "500"}
"""So often a broker writes into each of its directories, load or no load: it soon notices that one is no more."""
NOTICES = f"{CHROOT}/log_dir_event_notification"
DOOMED = "doomed"


@pytest.fixture(scope="module")
def held() -> Iterator[Held]:
    """Three brokers with two log directories each; leave them running and whole."""
    with held_cluster((1, 2, 3), log_dirs=2, settings=SETTINGS) as held:
        yield held


@contextmanager
def lost(broker: KafkaBroker, folder: Path) -> Iterator[None]:
    """Put a file in a log directory's place; in the end stop the broker, put the directory back and start it."""
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
    """Name the partitions of a topic in a log directory."""
    return {int(one.name.rpartition("-")[2]) for one in folder.glob(f"{topic}-?")}


def offline_replicas(held: Held, broker_id: int, topic: str) -> dict[int, list[int]]:
    """Ask a broker which replicas are offline, by partition."""
    return {one["partition_index"]: one["offline_replicas"] for one in told_by(held, broker_id, topic)}


def wait_until_led_by_others(held: Held, topic: str, victim: int, partitions: set[int]) -> float:
    """Wait until a broker is out of some partitions, and of no others, and everybody was told."""

    def out() -> bool:
        states = {partition: held.state(topic, partition) for partition in held.cluster.assignment(topic)}
        return (
            partitions == {partition for partition, state in states.items() if victim not in state["isr"]}
            and all(states[partition]["leader"] not in {victim, -1} for partition in partitions)
            and not unlike_zookeeper(held)
        )

    return wait_until(out, timeout_s=PATIENCE_S, what=f"broker {victim} out of {topic}-{sorted(partitions)} alone")


def test_a_lost_log_directory_costs_its_replicas_alone_and_they_come_back(held: Held) -> None:
    """C1, C2, C4, C9, C10, C12, C14, B1 (KafkaController.processLogDirEventNotification): others lead what was in it.

    A take-over does not make them online, nor does a preferred election; a deletion waits for the log that would stay behind.
    """
    held.create("spread", partitions=6, min_insync_replicas="2")
    held.create(DOOMED, partitions=6)
    victim = held.leaders("spread")[0]
    broker = held.cluster.broker(victim)
    folder = next(one for one in broker.data_folders if 0 in partitions_in(one, "spread"))
    gone, kept = partitions_in(folder, "spread"), {*range(6)} - partitions_in(folder, "spread")
    expected = {partition: [victim] if partition in gone else [] for partition in range(6)}
    assert partitions_in(folder, DOOMED)
    epoch, witness = controller_epoch(held), next(one for one in held.cluster.brokers if one != victim)

    with Traffic(held.cluster.bootstrap(), "spread", consume=False) as traffic:
        with lost(broker, folder):
            took_s = wait_until_led_by_others(held, "spread", victim, gone)
            print(f"\nled by others {took_s:.1f} s after a log directory was lost")  # noqa: T201
            assert offline_replicas(held, witness, "spread") == expected
            assert held.cluster.zookeeper.client.get_children(NOTICES) == []
            assert broker.registered

            held.cluster.zookeeper.client.delete(f"{CHROOT}/controller")
            wait_until(lambda: controller_epoch(held) > epoch, timeout_s=PATIENCE_S, what="a take-over")
            held.wait_until_held()
            wait_until(
                lambda: not unlike_zookeeper(held) and offline_replicas(held, witness, "spread") == expected,
                timeout_s=PATIENCE_S,
                what="offline replicas known after the take-over",
            )
            held.admin.list_topics(timeout=PATIENCE_S)  # librdkafka learns of another controller by this alone
            held.admin.elect_leaders(ElectionType.PREFERRED).result(PATIENCE_S)
            assert victim not in {held.leaders("spread")[one] for one in gone}
            held.admin.delete_topics([DOOMED], operation_timeout=1)
            wait_until(lambda: is_queued_for_deletion(held, DOOMED), timeout_s=PATIENCE_S, what="a deletion queued")
            traffic.wait_for_acks(100)
            assert is_queued_for_deletion(held, DOOMED)
        wait_until_converged(held, "the start of a broker with its log directory mended")
        traffic.wait_for_acks(100)
        report = traffic.stop()

    assert report.ok, report.summary()
    assert kept
    assert DOOMED not in held.topics()
    assert [
        one for each in held.cluster.brokers.values() for one in each.data_folders if partitions_in(one, DOOMED)
    ] == []
    assert {partition: [] for partition in range(6)} == offline_replicas(held, witness, "spread")
    judge_history(held)

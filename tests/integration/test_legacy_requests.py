"""Requests of old tools and users in ZooKeeper itself, and the balance of leaders, on real brokers."""

import json
from contextlib import closing

import pytest

from lab.peers.steward import StewardController
from lab.processes.waiting import wait_until
from tests.integration.conftest import CHROOT, PATIENCE_S, Held

pytestmark = pytest.mark.kafka

MOVES, ELECTIONS = f"{CHROOT}/admin/reassign_partitions", f"{CHROOT}/admin/preferred_replica_election"
QUICK_ID = 999


def request(held: Held, path: str, *partitions: dict[str, object]) -> None:
    """Write a list as the tools before KIP-455 and KIP-183 did."""
    document = json.dumps({"version": 1, "partitions": partitions})
    held.cluster.zookeeper.client.create(path, document.encode())


def wait_until_removed(held: Held, path: str) -> None:
    """Wait until the list is removed."""
    wait_until(lambda: held.cluster.zookeeper.read(path) is None, timeout_s=PATIENCE_S, what=f"{path} removed")


def preferred(held: Held, topic: str) -> dict[int, int]:
    """Return the preferred leaders: the first of each partition's replicas."""
    return {partition: replicas[0] for partition, replicas in held.cluster.assignment(topic).items()}


def make_others_lead(held: Held, topic: str) -> None:
    """Stop and start a broker: it is in sync, and others lead the partitions that prefer it.

    The controller's first check of the balance, 5 s after its take-over, may elect the broker again: then once more.
    """
    away = preferred(held, topic)[0]
    for _ in range(2):
        held.cluster.broker(away).stop()
        held.cluster.broker(away).start()
        held.wait_until_all_are_back(topic)
        if held.leaders(topic)[0] != away:
            return
    raise AssertionError(f"broker {away} leads {topic}-0 again")


def test_a_move_requested_in_zookeeper_runs_and_its_znode_is_removed(held: Held) -> None:
    """KafkaController.processZkPartitionReassignment; an unknown partition in the request is removed at once."""
    held.create("legacy", partitions=1)
    replicas = held.cluster.assignment("legacy")[0]
    newcomer = ({1, 2, 3, 4} - set(replicas)).pop()
    target = [newcomer, *replicas[:2]]

    move = {"topic": "legacy", "partition": 0, "replicas": target}
    request(held, MOVES, move, {"topic": "ghost", "partition": 7, "replicas": [1]})
    wait_until_removed(held, MOVES)

    assert held.cluster.assignment("legacy") == {0: target}
    held.wait_until_all_are_back("legacy")
    assert held.state("legacy", 0)["leader"] in target


def test_preferred_leaders_requested_in_zookeeper_are_elected_and_the_znode_is_removed(held: Held) -> None:
    """KafkaController.onReplicaElection, triggered by ZooKeeper."""
    held.create("electing")
    make_others_lead(held, "electing")

    request(held, ELECTIONS, *({"topic": "electing", "partition": partition} for partition in range(3)))
    wait_until_removed(held, ELECTIONS)

    assert preferred(held, "electing") == held.leaders("electing")


@pytest.mark.parametrize("path", [MOVES, ELECTIONS])
def test_an_invalid_request_is_removed(held: Held, path: str) -> None:
    """Bad input: logged once with its path; the term goes on."""
    held.wait_until_held()
    epoch = held.cluster.zookeeper.read(f"{CHROOT}/controller_epoch")
    held.cluster.zookeeper.client.create(path, b'{"version":1,"partitions":"all of them"}')
    wait_until_removed(held, path)

    lines = [
        line for line in held.controller.process.log_path.read_text().splitlines() if "Failed to decode request" in line
    ]
    # The controller's paths are within its chroot.
    assert len([line for line in lines if path.removeprefix(CHROOT) in line]) == 1
    assert epoch == held.cluster.zookeeper.read(f"{CHROOT}/controller_epoch")


@pytest.mark.shows("C14", "F22")
def test_leaders_are_balanced_periodically(held: Held) -> None:
    """C14: leader.imbalance.per.broker.percentage and leader.imbalance.check.interval.seconds, with Kafka's meaning."""
    held.create("balanced")
    make_others_lead(held, "balanced")
    often = ("--leader-imbalance-check-interval-seconds=1", "--leader-imbalance-per-broker-percentage=0")
    quick = StewardController(
        held.cluster.zookeeper_connect, held.cluster.folder, controller_id=QUICK_ID, arguments=often
    )

    held.controller.stop()
    try:
        with closing(quick):
            quick.start()
            held.cluster.wait_for_controller(QUICK_ID)
            wait_until(
                lambda: preferred(held, "balanced") == held.leaders("balanced"),
                timeout_s=PATIENCE_S,
                what="preferred leaders in their place",
            )
            quick.stop()
    finally:
        held.controller.start()
        held.wait_until_held()

"""Leaders that fail, leave or freeze, under a load that counts every acknowledged record."""

import pytest

from lab.checks.traffic import Traffic
from lab.processes.waiting import wait_until
from tests.integration.conftest import PATIENCE_S, Held

pytestmark = pytest.mark.kafka


@pytest.mark.shows("C1")
def test_a_killed_leader_is_replaced_and_nothing_acknowledged_is_lost(held: Held) -> None:
    """B1 and C1: kill -9 of a leader under load, acks=all, min.insync.replicas 2."""
    held.create("killed", min_insync_replicas="2")
    victim = held.leaders("killed")[0]
    before = held.state("killed", 0)

    with Traffic(held.cluster.bootstrap(), "killed") as traffic:
        held.cluster.broker(victim).kill()
        wait_until(
            lambda: victim not in held.leaders("killed").values(),
            timeout_s=PATIENCE_S,
            what="leaders other than the dead one",
        )
        traffic.wait_for_acks(40)
        after = held.state("killed", 0)
        held.cluster.broker(victim).restart()
        held.wait_until_all_are_back("killed")
        report = traffic.stop()

    assert report.ok, report.summary()
    assert report.duplicates == 0, report.summary()
    assert after["leader_epoch"] > before["leader_epoch"]
    assert victim not in after["isr"]


@pytest.mark.shows("C8")
def test_a_controlled_shutdown_moves_leaders_before_the_broker_exits(held: Held) -> None:
    """C8: SIGTERM, ControlledShutdown; the broker's log reports success, and no leader was offline in between."""
    held.create("leaving", min_insync_replicas="2")
    leaving = held.leaders("leaving")[0]
    broker = held.cluster.broker(leaving)

    with Traffic(held.cluster.bootstrap(), "leaving") as traffic:
        broker.stop()
        leaders = held.leaders("leaving")
        states = [held.state("leaving", partition) for partition in leaders]
        broker.start()
        held.wait_until_all_are_back("leaving")
        report = traffic.stop()

    assert leaving not in leaders.values()
    assert all(leaving not in state["isr"] for state in states)
    assert "Controlled shutdown request returned successfully" in broker.process.log_path.read_text()
    assert report.ok, report.summary()


def test_a_frozen_follower_leaves_the_isr_and_comes_back(held: Held) -> None:
    """AlterPartition through the controller (KIP-497): the leader shrinks the ISR, and expands it when the follower continues."""
    held.create("frozen", partitions=1)
    state = held.state("frozen", 0)
    follower = next(replica for replica in state["isr"] if replica != state["leader"])
    broker = held.cluster.broker(follower)

    with Traffic(held.cluster.bootstrap(), "frozen", consume=False) as traffic:
        broker.pause()
        try:
            wait_until(
                lambda: follower not in held.state("frozen", 0)["isr"],
                timeout_s=PATIENCE_S,
                what="the ISR without the frozen",
            )
        finally:
            broker.resume()
        held.wait_until_all_are_back("frozen")
        report = traffic.stop()

    assert report.ok, report.summary()

"""Brokers fail, restart and register; partitions have a leader whenever a replica can lead."""

import pytest

from controller_core.model import NO_LEADER, events
from controller_core.model.changes import PartitionStates
from tests.controller_core.decisions.driver import State, cluster_with, tp
from tests.controller_core.decisions.messages import LeaderAndIsr, UpdateMetadata

THREE = [1, 2, 3]


def test_a_new_partition_has_its_first_replica_as_leader_and_all_live_ones_in_sync() -> None:
    """Protocol notes, Z64: from New to Online with the first live replica as leader and all live ones as ISR."""
    driver = cluster_with(THREE, {"orders": [[2, 3, 1]]})

    assert driver.state("orders-0") == State(2, 0, (2, 3, 1))


def test_the_first_isr_of_a_new_partition_excludes_dead_replicas() -> None:
    """Protocol notes, Z64: the first live replica leads, the live ones are the ISR."""
    driver = cluster_with(THREE)
    driver.kill(2)
    driver.find("late", [[2, 3, 1]])

    assert driver.state("late-0") == State(3, 0, (3, 1))


def test_only_replicas_of_a_new_partition_get_leader_and_isr_with_is_new() -> None:
    """ControllerBrokerRequestBatch: LeaderAndIsr to replicas, UpdateMetadata to all brokers; isNew with the first state."""
    driver = cluster_with(THREE)
    driver.create("orders", [[1, 2]])

    assert [sent.is_new for message in driver.sent(LeaderAndIsr) for sent in message.partitions.values()] == [
        True,
        True,
    ]
    assert driver.sent(LeaderAndIsr, broker_id=3) == []
    assert tp("orders-0") in driver.sent(UpdateMetadata, broker_id=3)[-1].partitions


@pytest.mark.shows("C1")
def test_a_dead_leader_is_replaced_with_the_first_live_isr_member() -> None:
    """Election.leaderForOffline: a live ISR member leads, dead ones leave the ISR (C1, C4)."""
    driver = cluster_with(THREE, {"orders": [[1, 2, 3]]})
    driver.kill(1)

    assert driver.state("orders-0") == State(2, 1, (2, 3))


def test_a_replica_outside_the_isr_does_not_lead_while_a_member_is_live() -> None:
    """C1, C7: only among ISR members the assignment order matters."""
    driver = cluster_with(THREE, {"orders": [[1, 2, 3]]})
    driver.alter_isr("orders-0", [1, 3])
    driver.kill(1)

    assert driver.state("orders-0") == State(3, 1, (3,))


@pytest.mark.shows("C7")
def test_without_a_live_isr_member_there_is_no_leader_and_the_isr_stays() -> None:
    """C7: only its members may lead again; the first of them that is back leads."""
    driver = cluster_with(THREE, {"orders": [[1, 2, 3]]})
    driver.alter_isr("orders-0", [1, 2])
    driver.kill(1, 2)

    assert driver.state("orders-0") == State(NO_LEADER, 1, (1, 2))

    driver.start(2)

    assert driver.state("orders-0") == State(2, 2, (2,))


def test_a_partition_without_a_leader_is_written_once() -> None:
    """The dead leader is removed once; after that there is nothing to write."""
    driver = cluster_with(THREE, {"orders": [[1, 2]]})
    driver.kill(1, 2)
    driver.forget()
    driver.submit(events.RepairPartitions())

    assert driver.changes == []


@pytest.mark.shows("C7")
def test_an_unclean_leader_is_elected_if_the_topic_allows_it() -> None:
    """C7: only with the topic's unclean.leader.election.enable; the ISR is only the leader."""
    driver = cluster_with(THREE, {"orders": [[1, 2, 3]], "logs": [[1, 2, 3]]}, unclean=["logs"])
    for partition in ("orders-0", "logs-0"):
        driver.alter_isr(partition, [1])
    driver.forget()
    driver.kill(1)

    assert driver.state("orders-0") == State(NO_LEADER, 1, (1,))
    assert driver.state("logs-0") == State(2, 1, (2,))
    assert [
        f"{name.topic}-{name.partition}"
        for change in driver.changes
        if isinstance(change, PartitionStates) and change.unclean is not None
        for name in map(driver.cluster.name_of, change.rows[change.unclean].tolist())
    ] == ["logs-0"]


@pytest.mark.shows("C7")
def test_a_clean_leader_is_preferred_if_unclean_ones_are_allowed() -> None:
    """C7: unclean only if no ISR member is live."""
    driver = cluster_with(THREE, {"logs": [[1, 2, 3]]}, unclean=["logs"])
    driver.alter_isr("logs-0", [1, 3])
    driver.kill(1)

    assert driver.state("logs-0") == State(3, 1, (3,))


def test_a_dead_follower_leaves_the_isr_with_a_higher_leader_epoch() -> None:
    """ReplicaStateMachine, OnlineReplica to OfflineReplica: the ISR shrinks, and the leader gets it (C2, C4)."""
    driver = cluster_with(THREE, {"orders": [[1, 2, 3]]})
    driver.kill(3)

    assert driver.state("orders-0") == State(1, 1, (1, 2))
    assert driver.brokers[1].states[tp("orders-0")].isr == (1, 2)


def test_a_dead_broker_outside_the_isr_changes_nothing() -> None:
    """Nothing is written for a replica that was already out of sync."""
    driver = cluster_with(THREE, {"orders": [[1, 2, 3]]})
    driver.alter_isr("orders-0", [1, 2])
    driver.kill(3)

    assert driver.state("orders-0") == State(1, 0, (1, 2))


def test_a_restarted_broker_is_removed_before_it_is_added_again() -> None:
    """KIP-380: another epoch is another incarnation without unflushed records, so others lead and it leaves ISRs."""
    driver = cluster_with(THREE, {"orders": [[1, 2, 3], [2, 3, 1]]})
    driver.bounce(1)

    assert driver.state("orders-0") == State(2, 1, (2, 3))
    assert driver.state("orders-1") == State(2, 1, (2, 3))


@pytest.mark.shows("C4")
def test_a_restarted_broker_leads_its_only_replicas_again_with_a_higher_epoch() -> None:
    """C4: a partition with one replica is briefly without a leader, and its epoch grows with each change."""
    driver = cluster_with(THREE, {"orders": [[1]]})
    driver.bounce(1)

    assert driver.state("orders-0") == State(1, 2, (1,))
    assert driver.brokers[1].leads(tp("orders-0"))


def test_a_new_broker_gets_the_live_brokers_before_leader_and_isr() -> None:
    """Protocol notes, Z32: a follower finds its leader's address in the metadata, so UpdateMetadata precedes LeaderAndIsr."""
    driver = cluster_with(THREE, {"orders": [[1, 2]]})
    driver.kill(1)
    driver.forget()
    driver.start(1)

    first = next(message for to, message in driver.messages if 1 in to)
    full = next(message for message in driver.sent(UpdateMetadata, broker_id=1) if message.partitions)
    assert isinstance(first, UpdateMetadata)
    assert full.live == (1, 2, 3)
    assert full.partitions.keys() == {tp("orders-0")}


@pytest.mark.shows("C12")
def test_a_new_broker_gets_leader_and_isr_of_its_replicas() -> None:
    """C12, KafkaController.onBrokerStartup: no other request would contain them, since leader and ISR stay."""
    driver = cluster_with(THREE, {"orders": [[1, 2]], "others": [[1, 3]]})
    driver.kill(2)
    driver.forget()
    driver.start(2)

    assert driver.state("orders-0") == State(1, 1, (1,))
    assert [set(message.partitions) for message in driver.sent(LeaderAndIsr)] == [{tp("orders-0")}]
    assert 2 in driver.brokers[2].states[tp("orders-0")].replicas


def test_other_brokers_get_a_new_broker_without_partitions() -> None:
    """KafkaController.onBrokerStartup: existing brokers get only the live brokers."""
    driver = cluster_with(THREE, {"orders": [[1, 2]]})
    driver.start(4)

    assert driver.sent(UpdateMetadata, broker_id=2)[0].partitions == {}
    assert driver.sent(UpdateMetadata, broker_id=2)[0].live == (1, 2, 3, 4)


def test_a_read_of_the_same_brokers_sends_nothing() -> None:
    """Reads are levels, so a repeated watch changes nothing."""
    driver = cluster_with(THREE, {"orders": [[1, 2]]})
    driver.read_brokers()

    assert (driver.changes, driver.messages) == ([], [])


def test_several_changes_of_brokers_in_one_read_are_all_processed() -> None:
    """A coalesced watch: only the read matters."""
    driver = cluster_with(THREE, {"orders": [[1, 2, 3]]})
    for broker_id in (1, 2):
        driver.brokers[broker_id].is_up = False
    driver.start(4)

    assert driver.state("orders-0") == State(3, 1, (3,))
    assert driver.cluster.may_lead() == {3, 4}


def test_a_refused_write_is_read_and_decided_again() -> None:
    """Protocol notes, Z51: a broker below 2.7 writes its ISR itself, so the known version is stale; the partition gets its leader."""
    driver = cluster_with(THREE, {"orders": [[1, 2, 3], [1, 2, 3]]})
    driver.intrude(lambda: driver.write_isr("orders-0", [1, 3]))  # Before the brokers are observed.
    driver.kill(1)

    assert driver.state("orders-0") == State(3, 1, (3,))
    assert driver.state("orders-1") == State(2, 1, (2, 3))


def test_a_partition_created_with_dead_replicas_is_online_when_one_is_back() -> None:
    """New partitions stay New, and are checked whenever brokers change."""
    driver = cluster_with(THREE)
    driver.kill(2)
    driver.find("late", [[2]])

    assert tp("late-0") not in driver.written.states

    driver.start(2)

    assert driver.state("late-0") == State(2, 0, (2,))

"""Brokers die, bounce and come; partitions have a leader whenever they can have one."""

import pytest

from controller_core.model import events
from controller_core.model.changes import PartitionStates
from controller_core.model.ids import NO_LEADER
from tests.controller_core.decisions.driver import State, cluster_with, tp
from tests.controller_core.decisions.messages import LeaderAndIsr, UpdateMetadata

THREE = [1, 2, 3]


def test_a_new_partition_is_led_by_its_first_replica_and_all_live_replicas_are_in_sync() -> None:
    """Protocol notes, Z64: New to Online takes the first live replica as leader and all live ones as the ISR."""
    driver = cluster_with(THREE, {"orders": [[2, 3, 1]]})

    assert driver.state("orders-0") == State(2, 0, (2, 3, 1))


def test_a_new_partition_leaves_dead_replicas_out_of_its_first_isr() -> None:
    """Protocol notes, Z64: the first live replica leads, the live ones are the ISR."""
    driver = cluster_with(THREE)
    driver.kill(2)
    driver.find("late", [[2, 3, 1]])

    assert driver.state("late-0") == State(3, 0, (3, 1))


def test_replicas_of_a_new_partition_are_told_that_it_is_new_and_nobody_else_is_told_to_follow() -> None:
    """ControllerBrokerRequestBatch: LeaderAndIsr to replicas, UpdateMetadata to everybody; isNew on the first state."""
    driver = cluster_with(THREE)
    driver.create("orders", [[1, 2]])

    assert [told.is_new for message in driver.told(LeaderAndIsr) for told in message.partitions.values()] == [
        True,
        True,
    ]
    assert driver.told(LeaderAndIsr, broker_id=3) == []
    assert tp("orders-0") in driver.told(UpdateMetadata, broker_id=3)[-1].partitions


@pytest.mark.shows("C1")
def test_a_dead_leader_is_followed_by_the_first_live_replica_of_the_isr() -> None:
    """Election.leaderForOffline: a live member of the ISR leads, the ISR loses the dead (C1, C4)."""
    driver = cluster_with(THREE, {"orders": [[1, 2, 3]]})
    driver.kill(1)

    assert driver.state("orders-0") == State(2, 1, (2, 3))


def test_a_live_replica_outside_the_isr_does_not_lead_while_a_member_lives() -> None:
    """C1, C7: assignment order counts only among members of the ISR."""
    driver = cluster_with(THREE, {"orders": [[1, 2, 3]]})
    driver.alter_isr("orders-0", [1, 3])
    driver.kill(1)

    assert driver.state("orders-0") == State(3, 1, (3,))


@pytest.mark.shows("C7")
def test_without_a_live_isr_member_there_is_no_leader_and_the_isr_stays() -> None:
    """C7: its members are the ones that may lead again; the first of them back takes the lead."""
    driver = cluster_with(THREE, {"orders": [[1, 2, 3]]})
    driver.alter_isr("orders-0", [1, 2])
    driver.kill(1, 2)

    assert driver.state("orders-0") == State(NO_LEADER, 1, (1, 2))

    driver.start(2)

    assert driver.state("orders-0") == State(2, 2, (2,))


def test_a_partition_without_a_leader_is_written_once() -> None:
    """failover: the dead leader's name is taken off once; after that there is nothing to write."""
    driver = cluster_with(THREE, {"orders": [[1, 2]]})
    driver.kill(1, 2)
    driver.forget()
    driver.submit(events.RepairPartitions())

    assert driver.changes == []


@pytest.mark.shows("C7")
def test_an_unclean_leader_is_elected_where_the_topic_allows_it() -> None:
    """C7: only by the topic's unclean.leader.election.enable, and the ISR is the leader alone."""
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
def test_a_clean_leader_is_preferred_where_unclean_ones_are_allowed() -> None:
    """C7: unclean only if no ISR member lives."""
    driver = cluster_with(THREE, {"logs": [[1, 2, 3]]}, unclean=["logs"])
    driver.alter_isr("logs-0", [1, 3])
    driver.kill(1)

    assert driver.state("logs-0") == State(3, 1, (3,))


def test_a_dead_follower_leaves_the_isr_under_a_higher_leader_epoch() -> None:
    """ReplicaStateMachine, OnlineReplica to OfflineReplica: the ISR shrinks, the leader is told (C2, C4)."""
    driver = cluster_with(THREE, {"orders": [[1, 2, 3]]})
    driver.kill(3)

    assert driver.state("orders-0") == State(1, 1, (1, 2))
    assert driver.brokers[1].states[tp("orders-0")].isr == (1, 2)


def test_a_dead_broker_outside_the_isr_changes_nothing() -> None:
    """Nothing is written for a replica that was out of sync already."""
    driver = cluster_with(THREE, {"orders": [[1, 2, 3]]})
    driver.alter_isr("orders-0", [1, 2])
    driver.kill(3)

    assert driver.state("orders-0") == State(1, 0, (1, 2))


def test_a_bounced_broker_is_taken_out_before_it_is_added_again() -> None:
    """KIP-380: another epoch is another life; what it had not written is gone, so others lead and it is out of ISRs."""
    driver = cluster_with(THREE, {"orders": [[1, 2, 3], [2, 3, 1]]})
    driver.bounce(1)

    assert driver.state("orders-0") == State(2, 1, (2, 3))
    assert driver.state("orders-1") == State(2, 1, (2, 3))


@pytest.mark.shows("C4")
def test_a_bounced_broker_leads_its_only_replicas_again_under_a_higher_epoch() -> None:
    """C4: a partition of one replica is leaderless for a moment, and its epoch grows for each change."""
    driver = cluster_with(THREE, {"orders": [[1]]})
    driver.bounce(1)

    assert driver.state("orders-0") == State(1, 2, (1,))
    assert driver.brokers[1].leads(tp("orders-0"))


def test_a_broker_that_comes_hears_who_lives_before_what_it_leads() -> None:
    """Protocol notes, Z32: a follower finds its leader's address in the metadata, so UpdateMetadata comes before LeaderAndIsr."""
    driver = cluster_with(THREE, {"orders": [[1, 2]]})
    driver.kill(1)
    driver.forget()
    driver.start(1)

    first = next(message for to, message in driver.messages if 1 in to)
    full = next(message for message in driver.told(UpdateMetadata, broker_id=1) if message.partitions)
    assert isinstance(first, UpdateMetadata)
    assert full.live == (1, 2, 3)
    assert full.partitions.keys() == {tp("orders-0")}


@pytest.mark.shows("C12")
def test_a_broker_that_comes_is_told_what_it_has_replicas_of() -> None:
    """C12, KafkaController.onBrokerStartup: nothing else would tell it, since leader and ISR stay as they are."""
    driver = cluster_with(THREE, {"orders": [[1, 2]], "others": [[1, 3]]})
    driver.kill(2)
    driver.forget()
    driver.start(2)

    assert driver.state("orders-0") == State(1, 1, (1,))
    assert [set(message.partitions) for message in driver.told(LeaderAndIsr)] == [{tp("orders-0")}]
    assert 2 in driver.brokers[2].states[tp("orders-0")].replicas


def test_the_others_hear_of_a_new_broker_and_of_no_partition() -> None:
    """KafkaController.onBrokerStartup: existing brokers get the live brokers alone."""
    driver = cluster_with(THREE, {"orders": [[1, 2]]})
    driver.start(4)

    assert driver.told(UpdateMetadata, broker_id=2)[0].partitions == {}
    assert driver.told(UpdateMetadata, broker_id=2)[0].live == (1, 2, 3, 4)


def test_a_read_of_the_same_brokers_tells_nobody_anything() -> None:
    """events: reads are levels, so a doubled watch changes nothing."""
    driver = cluster_with(THREE, {"orders": [[1, 2]]})
    driver.read_brokers()

    assert (driver.changes, driver.messages) == ([], [])


def test_several_deaths_and_a_birth_in_one_read_are_all_seen() -> None:
    """A coalesced watch: the read alone counts."""
    driver = cluster_with(THREE, {"orders": [[1, 2, 3]]})
    for broker_id in (1, 2):
        driver.brokers[broker_id].is_up = False
    driver.start(4)

    assert driver.state("orders-0") == State(3, 1, (3,))
    assert driver.cluster.may_lead() == {3, 4}


def test_a_refused_write_is_read_again_and_decided_anew() -> None:
    """Protocol notes, Z51: a broker below 2.7 writes its ISR itself, so our version is stale; the partition gets its leader."""
    driver = cluster_with(THREE, {"orders": [[1, 2, 3], [1, 2, 3]]})
    driver.intrude(lambda: driver.write_isr("orders-0", [1, 3]))  # Before the brokers are observed.
    driver.kill(1)

    assert driver.state("orders-0") == State(3, 1, (3,))
    assert driver.state("orders-1") == State(2, 1, (2, 3))


def test_a_partition_whose_replicas_were_all_dead_when_it_was_made_is_online_when_one_comes() -> None:
    """New partitions stay New, and are looked at whenever brokers change."""
    driver = cluster_with(THREE)
    driver.kill(2)
    driver.find("late", [[2]])

    assert tp("late-0") not in driver.written.states

    driver.start(2)

    assert driver.state("late-0") == State(2, 0, (2,))

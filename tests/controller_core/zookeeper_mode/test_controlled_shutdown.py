"""Controlled shutdown: a broker's leaders are moved before it exits (KIP-143, KIP-380; C8)."""

import pytest

from controller_core.model import NO_LEADER, zookeeper_events
from controller_core.zookeeper_mode.controlled_shutdown import Remaining
from kafka_wire import ErrorCode
from tests.controller_core.decisions.driver import State, cluster_with, tp
from tests.controller_core.decisions.messages import LeaderAndIsr, StopReplica

THREE = [1, 2, 3]


@pytest.mark.shows("C8")
def test_leaders_move_to_live_isr_members() -> None:
    """C8; Election.leaderForControlledShutdown: brokers that shut down leave the ISR, and its first replica leads."""
    driver = cluster_with(THREE, {"orders": [[1, 2, 3]]})

    assert driver.shut_down(1) == Remaining(())
    assert driver.state("orders-0") == State(2, 1, (2, 3))


def test_the_broker_leaves_the_isrs_in_which_it_follows() -> None:
    """ReplicaStateMachine: its replicas become Offline while another member stays."""
    driver = cluster_with(THREE, {"orders": [[1, 2, 3]]})
    driver.shut_down(3)

    assert driver.state("orders-0") == State(1, 1, (1, 2))


def test_the_broker_is_sent_requests_to_stop_following_without_deletion() -> None:
    """KafkaController.doControlledShutdown: StopReplica without deletion, with an epoch that passes the broker's check."""
    driver = cluster_with(THREE, {"orders": [[1, 2, 3]]})
    driver.shut_down(3)

    assert driver.sent(StopReplica) == [StopReplica({tp("orders-0"): 1}, delete=False)]
    assert tp("orders-0") in driver.brokers[3].logs
    assert driver.brokers[3].stopped == {tp("orders-0")}


def test_the_last_isr_member_stays_leader_and_is_reported_as_remaining() -> None:
    """C8: it stays leader while no other live ISR member can lead; the broker repeats the request."""
    driver = cluster_with(THREE, {"orders": [[1, 2, 3]]})
    driver.alter_isr("orders-0", [1])

    assert driver.shut_down(1) == Remaining((tp("orders-0"),))
    assert driver.state("orders-0") == State(1, 0, (1,))


def test_a_repeated_request_moves_leaders_that_have_become_movable() -> None:
    """The broker repeats the request until nothing remains."""
    driver = cluster_with(THREE, {"orders": [[1, 2, 3]]})
    driver.alter_isr("orders-0", [1])
    driver.shut_down(1)
    driver.alter_isr("orders-0", [1, 2])

    assert driver.shut_down(1) == Remaining(())
    assert driver.state("orders-0") == State(2, 1, (2,))


def test_partitions_with_one_replica_stay_and_do_not_delay_the_shutdown() -> None:
    """KafkaController.doControlledShutdown acts on partitions with more than one replica."""
    driver = cluster_with(THREE, {"alone": [[1]], "orders": [[1, 2]]})

    assert driver.shut_down(1) == Remaining(())
    assert driver.state("alone-0") == State(1, 0, (1,))
    assert driver.state("orders-0") == State(2, 1, (2,))


@pytest.mark.shows("C8")
def test_a_broker_that_shuts_down_is_not_elected() -> None:
    """C8: also when other brokers fail."""
    driver = cluster_with(THREE, {"orders": [[1, 2, 3], [3, 2, 1]]})
    driver.shut_down(2)
    driver.alter_isr("orders-0", [1, 3])
    driver.kill(1)

    assert driver.state("orders-0") == State(3, 2, (3,))
    assert driver.state("orders-1") == State(3, 2, (3,))


def test_a_broker_that_shuts_down_leads_no_new_partition() -> None:
    """C8: it is not in the first ISR either, since it is about to leave."""
    driver = cluster_with(THREE)
    driver.shut_down(2)
    driver.find("orders", [[2, 3]])

    assert driver.state("orders-0") == State(3, 0, (3,))


def test_two_brokers_may_shut_down_one_after_the_other() -> None:
    """C8: neither moves its leaders to the other."""
    driver = cluster_with(THREE, {"orders": [[1, 2, 3]]})
    driver.shut_down(2)

    assert driver.shut_down(1) == Remaining(())
    assert driver.state("orders-0") == State(3, 2, (3,))


def test_the_last_isr_member_stays_while_there_is_no_leader() -> None:
    """An ISR without a live leader stays, since only its members may lead again."""
    driver = cluster_with(THREE, {"orders": [[1, 2]]})
    driver.brokers[1].is_up = False
    driver.cluster.shutting_down.add(2)
    driver.read_brokers()
    assert driver.state("orders-0") == State(NO_LEADER, 1, (1, 2))
    driver.shut_down(2)

    assert driver.state("orders-0") == State(NO_LEADER, 1, (1, 2))


def test_a_broker_that_is_back_after_its_shutdown_leads_again() -> None:
    """A new registration ends the shutdown."""
    driver = cluster_with(THREE, {"orders": [[1, 2]]})
    driver.shut_down(1)
    driver.kill(1)
    driver.start(1)
    driver.alter_isr("orders-0", [2, 1])
    driver.kill(2)

    assert driver.state("orders-0").leader == 1


def test_a_request_of_an_earlier_incarnation_is_refused() -> None:
    """KIP-380: a delayed request must not move the leaders of the broker that came back."""
    driver = cluster_with(THREE, {"orders": [[1, 2]]})
    old = driver.brokers[1].epoch
    driver.bounce(1)
    driver.forget()

    assert driver.submit(zookeeper_events.ControlledShutdown(1, old)).code == ErrorCode.STALE_BROKER_EPOCH
    assert (driver.changes, frozenset(driver.cluster.shutting_down)) == ([], frozenset())


def test_a_request_without_an_epoch_is_accepted() -> None:
    """ControlledShutdown below version 2 has no broker epoch."""
    driver = cluster_with(THREE, {"orders": [[1, 2]]})

    assert driver.submit(zookeeper_events.ControlledShutdown(1)) == Remaining(())


def test_an_unknown_broker_is_refused() -> None:
    """KafkaController.processControlledShutdown: BROKER_NOT_AVAILABLE."""
    driver = cluster_with(THREE)

    assert driver.submit(zookeeper_events.ControlledShutdown(9)).code == ErrorCode.BROKER_NOT_AVAILABLE


def test_a_refused_write_is_decided_again() -> None:
    """A stale version, because a broker below 2.7 wrote the ISR itself: the written ISR is used."""
    driver = cluster_with(THREE, {"orders": [[1, 2, 3]]})
    driver.intrude(lambda: driver.write_isr("orders-0", [1, 3]))

    assert driver.shut_down(1) == Remaining(())
    assert driver.state("orders-0") == State(3, 1, (3,))


def test_the_broker_gets_the_new_leaders_of_its_partitions() -> None:
    """Election.leaderForControlledShutdown: receivers are the live replicas, to which it still belongs."""
    driver = cluster_with(THREE, {"orders": [[1, 2]]})
    driver.shut_down(1)

    assert driver.sent(LeaderAndIsr, broker_id=1)[0].partitions[tp("orders-0")].leader == 2

"""ControlledShutdown: a broker's leaderships are taken before it exits (KIP-143, KIP-380; C8)."""

import pytest

from controller_core.decisions.shutdown import Remaining
from controller_core.model import events
from controller_core.model.ids import NO_LEADER
from kafka_wire.errors import ErrorCode
from tests.controller_core.decisions.driver import State, cluster_with, tp
from tests.controller_core.decisions.messages import LeaderAndIsr, StopReplica

THREE = [1, 2, 3]


@pytest.mark.shows("C8")
def test_a_broker_that_shuts_down_hands_its_leaderships_to_live_members_of_the_isr() -> None:
    """C8; Election.leaderForControlledShutdown: the ISR loses those that shut down, its first replica leads."""
    driver = cluster_with(THREE, {"orders": [[1, 2, 3]]})

    assert driver.shut_down(1) == Remaining(())
    assert driver.state("orders-0") == State(2, 1, (2, 3))


def test_a_broker_that_shuts_down_leaves_the_isrs_that_it_follows_in() -> None:
    """ReplicaStateMachine: its replicas become Offline while another member stays."""
    driver = cluster_with(THREE, {"orders": [[1, 2, 3]]})
    driver.shut_down(3)

    assert driver.state("orders-0") == State(1, 1, (1, 2))


def test_a_broker_that_shuts_down_is_told_to_stop_following_and_to_keep_its_logs() -> None:
    """KafkaController.doControlledShutdown: StopReplica without deletion, under an epoch that passes the broker's check."""
    driver = cluster_with(THREE, {"orders": [[1, 2, 3]]})
    driver.shut_down(3)

    assert driver.told(StopReplica) == [StopReplica({tp("orders-0"): 1}, delete=False)]
    assert tp("orders-0") in driver.brokers[3].logs
    assert driver.brokers[3].stopped == {tp("orders-0")}


def test_the_last_member_of_an_isr_keeps_the_lead_and_is_told_what_remains() -> None:
    """C8: it leads on while no other live member of the ISR can; the broker asks again."""
    driver = cluster_with(THREE, {"orders": [[1, 2, 3]]})
    driver.alter_isr("orders-0", [1])

    assert driver.shut_down(1) == Remaining((tp("orders-0"),))
    assert driver.state("orders-0") == State(1, 0, (1,))


def test_a_repeated_request_takes_what_can_be_taken_by_then() -> None:
    """The broker asks again until nothing remains."""
    driver = cluster_with(THREE, {"orders": [[1, 2, 3]]})
    driver.alter_isr("orders-0", [1])
    driver.shut_down(1)
    driver.alter_isr("orders-0", [1, 2])

    assert driver.shut_down(1) == Remaining(())
    assert driver.state("orders-0") == State(2, 1, (2,))


def test_partitions_of_one_replica_stay_and_do_not_hold_the_broker_up() -> None:
    """KafkaController.doControlledShutdown acts on partitions with more than one replica."""
    driver = cluster_with(THREE, {"alone": [[1]], "orders": [[1, 2]]})

    assert driver.shut_down(1) == Remaining(())
    assert driver.state("alone-0") == State(1, 0, (1,))
    assert driver.state("orders-0") == State(2, 1, (2,))


@pytest.mark.shows("C8")
def test_a_broker_on_its_way_out_is_not_elected() -> None:
    """C8: it leads nothing afterwards, whoever dies."""
    driver = cluster_with(THREE, {"orders": [[1, 2, 3], [3, 2, 1]]})
    driver.shut_down(2)
    driver.alter_isr("orders-0", [1, 3])
    driver.kill(1)

    assert driver.state("orders-0") == State(3, 2, (3,))
    assert driver.state("orders-1") == State(3, 2, (3,))


def test_a_broker_on_its_way_out_leads_no_new_partition() -> None:
    """C8: nor is it in the first ISR, since it is about to leave it."""
    driver = cluster_with(THREE)
    driver.shut_down(2)
    driver.find("orders", [[2, 3]])

    assert driver.state("orders-0") == State(3, 0, (3,))


def test_two_brokers_may_shut_down_one_after_the_other() -> None:
    """C8: neither hands its partitions to the other."""
    driver = cluster_with(THREE, {"orders": [[1, 2, 3]]})
    driver.shut_down(2)

    assert driver.shut_down(1) == Remaining(())
    assert driver.state("orders-0") == State(3, 2, (3,))


def test_the_last_member_of_an_isr_is_not_taken_out_while_nobody_leads() -> None:
    """failover: an ISR without a live leader stays as it is, since its members are the ones that may lead again."""
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


def test_a_request_of_an_earlier_life_is_refused() -> None:
    """KIP-380: a delayed request must not take the leaderships of the broker that came back."""
    driver = cluster_with(THREE, {"orders": [[1, 2]]})
    old = driver.brokers[1].epoch
    driver.bounce(1)
    driver.forget()

    assert driver.submit(events.ControlledShutdown(1, old)).code == ErrorCode.STALE_BROKER_EPOCH
    assert (driver.changes, frozenset(driver.cluster.shutting_down)) == ([], frozenset())


def test_a_request_without_an_epoch_is_taken() -> None:
    """ControlledShutdown below version 2 has no broker epoch."""
    driver = cluster_with(THREE, {"orders": [[1, 2]]})

    assert driver.submit(events.ControlledShutdown(1)) == Remaining(())


def test_an_unknown_broker_is_refused() -> None:
    """KafkaController.processControlledShutdown: BROKER_NOT_AVAILABLE."""
    driver = cluster_with(THREE)

    assert driver.submit(events.ControlledShutdown(9)).code == ErrorCode.BROKER_NOT_AVAILABLE


def test_a_handover_that_was_refused_is_decided_anew() -> None:
    """A stale version, as a broker below 2.7 causes by its own write: the ISR that is written counts."""
    driver = cluster_with(THREE, {"orders": [[1, 2, 3]]})
    driver.intrude(lambda: driver.write_isr("orders-0", [1, 3]))

    assert driver.shut_down(1) == Remaining(())
    assert driver.state("orders-0") == State(3, 1, (3,))


def test_the_broker_itself_hears_that_it_leads_no_more() -> None:
    """Election.leaderForControlledShutdown: receivers are the live replicas, and it is one of them still."""
    driver = cluster_with(THREE, {"orders": [[1, 2]]})
    driver.shut_down(1)

    assert driver.told(LeaderAndIsr, broker_id=1)[0].partitions[tp("orders-0")].leader == 2

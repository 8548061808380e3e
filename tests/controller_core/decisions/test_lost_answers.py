"""Writes whose results are lost with the connection.

The state is read again and the event is decided again. Written states have to be sent to brokers, and the caller has to get the
right result (protocol notes, Z103).
"""

import pytest

from controller_core.decisions.broker_requests import PartitionAnswer, ProducerIdBlock
from controller_core.model import events
from controller_core.zookeeper_mode.controlled_shutdown import Remaining
from kafka_wire import ErrorCode
from tests.controller_core.decisions.driver import Driver, State, cluster_with, tp


@pytest.fixture
def driver() -> Driver:
    """Four brokers, a topic of one partition; the result of the next write is lost."""
    driver = cluster_with([1, 2, 3, 4], {"orders": [[1, 2, 3]]})
    driver.lose_answer()
    return driver


def brokers_know_state(driver: Driver, partition: str = "orders-0") -> bool:
    """Whether live brokers know the leader and its epoch, and live replicas lead and follow accordingly."""
    state = driver.state(partition)
    up = [broker for broker in driver.brokers.values() if broker.is_up]
    return all(broker.metadata[tp(partition)] == state[:2] for broker in up) and all(
        (broker.states[tp(partition)].leader, broker.states[tp(partition)].leader_epoch) == state[:2]
        for broker in up
        if broker.id in driver.replicas(partition)
    )


@pytest.mark.shows("C12", "D4")
def test_a_written_leader_is_sent(driver: Driver) -> None:
    """C12: an election that is already written when it is read again was not sent to any broker yet."""
    driver.lose_answer(commits=1)
    driver.kill(1)

    assert driver.state("orders-0") == State(2, 1, (2, 3))
    assert brokers_know_state(driver)


@pytest.mark.shows("C8")
def test_a_written_controlled_shutdown_is_sent(driver: Driver) -> None:
    """C8: the broker gets the new leaders of its partitions before the response."""
    assert driver.shut_down(1) == Remaining(())
    assert driver.state("orders-0") == State(2, 1, (2, 3))
    assert brokers_know_state(driver)


def test_a_written_preferred_election_is_sent(driver: Driver) -> None:
    """C12."""
    driver.lost_answer = None
    driver.bounce(1)
    driver.alter_isr("orders-0", [2, 3, 1])
    driver.lose_answer()
    driver.submit(events.ElectLeaders((tp("orders-0"),)))

    assert driver.state("orders-0").leader == 1
    assert brokers_know_state(driver)


def test_a_written_isr_is_sent_and_granted(driver: Driver) -> None:
    """KIP-497: the leader gets the written version; other brokers get the ISR by UpdateMetadata."""
    assert driver.alter_isr("orders-0", [1, 2]) == PartitionAnswer(1, 0, (1, 2), 1)
    assert any("UpdateMetadata" in line and "isr [1,2]" in line for line in driver.lines)


def test_a_written_move_starts(driver: Driver) -> None:
    """The caller gets success, and replicas get the move at once."""
    assert driver.reassign({"orders-0": [2, 3, 4]}) == {"orders-0": None}
    assert tp("orders-0") in driver.brokers[4].states
    assert brokers_know_state(driver)


@pytest.mark.shows("C12")
def test_a_written_order_of_replicas_is_sent(driver: Driver) -> None:
    """C12: nothing is added or removed, so the written lists do not show that it has to be sent."""
    assert driver.reassign({"orders-0": [3, 2, 1]}) == {"orders-0": None}
    assert {broker.states[tp("orders-0")].replicas for broker in driver.brokers.values() if broker.logs} == {(3, 2, 1)}
    assert driver.cluster.moves == {}


def test_a_written_cancellation_is_reported_as_done(driver: Driver) -> None:
    """KIP-455: a cancelled move that only removes leaves no trace, so the state does not show which request cancelled it."""
    driver.lost_answer = None
    driver.alter_isr("orders-0", [1])
    assert driver.reassign({"orders-0": [2, 3]}) == {"orders-0": None}
    assert driver.written.topics["orders"].removing == {0: (1,)}
    driver.lose_answer()

    assert driver.reassign({"orders-0": None}) == {"orders-0": None}
    assert (driver.written.topics["orders"].replicas, driver.written.topics["orders"].removing) == ({0: (2, 3, 1)}, {})
    assert driver.cluster.moves == {}
    failure = driver.reassign({"orders-0": None})["orders-0"]
    assert failure is not None
    assert failure.code is ErrorCode.NO_REASSIGNMENT_IN_PROGRESS, "for another request there is no move"


@pytest.mark.parametrize("commits", range(5))
def test_a_move_ends_whichever_result_is_lost(driver: Driver, commits: int) -> None:
    """Start, union, ISR, end of the union, end: the result of each write may be lost."""
    driver.lose_answer(commits)
    driver.reassign({"orders-0": [2, 3, 4]})
    driver.alter_isr("orders-0", [1, 2, 3, 4])

    assert driver.written.topics["orders"].replicas == {0: (2, 3, 4)}
    assert driver.written.topics["orders"].removing == {}
    assert {broker.id for broker in driver.brokers.values() if broker.logs} == {2, 3, 4}
    assert brokers_know_state(driver)


@pytest.mark.parametrize("commits", range(2))
def test_a_written_topic_is_created_and_online(driver: Driver, commits: int) -> None:
    """CreateTopics: the topic, or the states of its partitions."""
    driver.lose_answer(commits)

    assert driver.create("events", [[1, 2]]).failure is None
    assert driver.state("events-0") == State(1, 0, (1, 2))
    assert brokers_know_state(driver, "events-0")


@pytest.mark.parametrize("commits", range(6))
def test_a_topic_is_deleted_whichever_result_is_lost(driver: Driver, commits: int) -> None:
    """C10: the queue, or the znodes."""
    driver.lose_answer(commits)

    assert driver.delete("orders") == {"orders": None}
    assert (driver.written.topics, driver.written.deletions) == ({}, [])


def test_written_producer_ids_are_not_allocated_again(driver: Driver) -> None:
    """KIP-730: a gap is better than an id allocated twice."""
    event = events.AllocateProducerIds(1, driver.brokers[1].epoch)

    assert driver.submit(event) == ProducerIdBlock(1000, 1000)
    assert driver.written.producer_ids.block_end == 1999

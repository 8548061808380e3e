"""The connection goes when a write is under way: it is done, and the controller does not hear that it is.

What was meant is read again and decided anew. Whatever was written, brokers have to hear of, and the caller has to be told
the truth (protocol notes, Z103).
"""

import pytest

from controller_core.decisions.isr import PartitionAnswer
from controller_core.decisions.producer_ids import ProducerIdBlock
from controller_core.decisions.shutdown import Remaining
from controller_core.model import events
from kafka_wire.errors import ErrorCode
from tests.controller_core.decisions.driver import Driver, State, cluster_with, tp


@pytest.fixture
def driver() -> Driver:
    """Four brokers, a topic of one partition; the answer to the next write is lost."""
    driver = cluster_with([1, 2, 3, 4], {"orders": [[1, 2, 3]]})
    driver.lose_answer()
    return driver


def everybody_knows(driver: Driver, partition: str = "orders-0") -> bool:
    """Whether live brokers know the leader and its epoch, and live replicas lead and follow accordingly."""
    state = driver.state(partition)
    up = [broker for broker in driver.brokers.values() if broker.is_up]
    return all(broker.metadata[tp(partition)] == state[:2] for broker in up) and all(
        (broker.states[tp(partition)].leader, broker.states[tp(partition)].leader_epoch) == state[:2]
        for broker in up
        if broker.id in driver.replicas(partition)
    )


@pytest.mark.shows("C12", "D4")
def test_a_new_leader_that_was_written_is_told(driver: Driver) -> None:
    """C12: an election that looks done when it is read again was told to nobody yet."""
    driver.lose_answer(commits=1)
    driver.kill(1)

    assert driver.state("orders-0") == State(2, 1, (2, 3))
    assert everybody_knows(driver)


@pytest.mark.shows("C8")
def test_a_handover_that_was_written_is_told(driver: Driver) -> None:
    """C8: the broker that shuts down hears that it leads no more before it is answered."""
    assert driver.shut_down(1) == Remaining(())
    assert driver.state("orders-0") == State(2, 1, (2, 3))
    assert everybody_knows(driver)


def test_an_election_that_was_written_is_told(driver: Driver) -> None:
    """C12."""
    driver.lost_answer = None
    driver.bounce(1)
    driver.alter_isr("orders-0", [2, 3, 1])
    driver.lose_answer()
    driver.submit(events.ElectLeaders((tp("orders-0"),)))

    assert driver.state("orders-0").leader == 1
    assert everybody_knows(driver)


def test_an_isr_that_was_written_is_told_and_granted(driver: Driver) -> None:
    """KIP-497: the leader gets the version that is written; others hear of the ISR by metadata."""
    assert driver.alter_isr("orders-0", [1, 2]) == PartitionAnswer(1, 0, (1, 2), 1)
    assert any("UpdateMetadata" in line and "isr [1,2]" in line for line in driver.lines)


def test_a_move_that_was_written_begins(driver: Driver) -> None:
    """It is ours, so that the caller is told so, and replicas hear of it at once."""
    assert driver.reassign({"orders-0": [2, 3, 4]}) == {"orders-0": None}
    assert tp("orders-0") in driver.brokers[4].states
    assert everybody_knows(driver)


@pytest.mark.shows("C12")
def test_another_order_of_replicas_that_was_written_is_told(driver: Driver) -> None:
    """C12: nothing is added or removed, so that what is written alone does not tell that it is to be told."""
    assert driver.reassign({"orders-0": [3, 2, 1]}) == {"orders-0": None}
    assert {broker.states[tp("orders-0")].replicas for broker in driver.brokers.values() if broker.logs} == {(3, 2, 1)}
    assert driver.cluster.moves == {}


def test_a_cancel_that_was_written_is_answered_as_done(driver: Driver) -> None:
    """KIP-455: a move that only removes leaves no trace when it is cancelled, so the state alone does not tell whose work it is."""
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
    assert failure.code is ErrorCode.NO_REASSIGNMENT_IN_PROGRESS, "of another request there is none"


@pytest.mark.parametrize("commits", range(5))
def test_a_move_ends_whichever_of_its_answers_is_lost(driver: Driver, commits: int) -> None:
    """Start, union, ISR, end of the union, end: each may be done without our hearing of it."""
    driver.lose_answer(commits)
    driver.reassign({"orders-0": [2, 3, 4]})
    driver.alter_isr("orders-0", [1, 2, 3, 4])

    assert driver.written.topics["orders"].replicas == {0: (2, 3, 4)}
    assert driver.written.topics["orders"].removing == {}
    assert {broker.id for broker in driver.brokers.values() if broker.logs} == {2, 3, 4}
    assert everybody_knows(driver)


@pytest.mark.parametrize("commits", range(2))
def test_a_topic_that_was_written_is_made_and_online(driver: Driver, commits: int) -> None:
    """CreateTopics: the topic, or the states of its partitions."""
    driver.lose_answer(commits)

    assert driver.create("events", [[1, 2]]).failure is None
    assert driver.state("events-0") == State(1, 0, (1, 2))
    assert everybody_knows(driver, "events-0")


@pytest.mark.parametrize("commits", range(6))
def test_a_topic_is_deleted_whichever_of_the_answers_is_lost(driver: Driver, commits: int) -> None:
    """C10: the queue, or the znodes."""
    driver.lose_answer(commits)

    assert driver.delete("orders") == {"orders": None}
    assert (driver.written.topics, driver.written.deletions) == ({}, [])


def test_producer_ids_that_were_written_are_handed_out_to_nobody(driver: Driver) -> None:
    """KIP-730: better a gap than an id twice."""
    event = events.AllocateProducerIds(1, driver.brokers[1].epoch)

    assert driver.submit(event) == ProducerIdBlock(1000, 1000)
    assert driver.written.producer_ids.block_end == 1999

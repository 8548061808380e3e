"""AlterPartition: leaders change their ISR (KIP-497, KIP-841; the checks of KafkaController.alterPartitions)."""

import pytest

from controller_core.decisions.broker_requests import PartitionAnswer
from controller_core.model import NO_LEADER, events
from kafka_wire import ErrorCode, Failure
from tests.controller_core.decisions.driver import Driver, State, cluster_with, tp
from tests.controller_core.decisions.messages import LeaderAndIsr, UpdateMetadata


@pytest.fixture
def driver() -> Driver:
    """Four brokers; orders-0 on three of them."""
    return cluster_with([1, 2, 3, 4], {"orders": [[1, 2, 3]]})


def refusal(answer: object) -> ErrorCode:
    """Return the error code of a response that must be an error."""
    assert isinstance(answer, Failure)
    return answer.code


def test_a_leader_shrinks_its_isr_and_keeps_its_epoch(driver: Driver) -> None:
    """KIP-497: the partition epoch grows, the leader epoch does not; all other brokers get UpdateMetadata, and no replica gets LeaderAndIsr."""
    answer = driver.alter_isr("orders-0", [1, 2])

    assert answer == PartitionAnswer(leader=1, leader_epoch=0, isr=(1, 2), partition_epoch=1)
    assert driver.state("orders-0") == State(1, 0, (1, 2))
    assert driver.sent(LeaderAndIsr) == []
    assert driver.sent(UpdateMetadata, broker_id=4)[0].partitions[tp("orders-0")].isr == (1, 2)


def test_a_leader_grows_its_isr(driver: Driver) -> None:
    """KIP-497: a follower that has caught up joins again."""
    driver.alter_isr("orders-0", [1])
    driver.alter_isr("orders-0", [1, 3])

    assert driver.state("orders-0") == State(1, 0, (1, 3))


def test_an_isr_that_is_already_set_is_granted_with_an_old_partition_epoch(driver: Driver) -> None:
    """KafkaController: a leader that lost the response repeats the request and gets the current partition epoch; nothing is written."""
    driver.alter_isr("orders-0", [1, 2])
    driver.forget()

    answer = driver.alter_isr("orders-0", [1, 2], partition_epoch=0)

    assert answer == PartitionAnswer(leader=1, leader_epoch=0, isr=(1, 2), partition_epoch=1)
    assert driver.changes == []


def test_a_stale_partition_epoch_is_refused(driver: Driver) -> None:
    """INVALID_UPDATE_VERSION: the leader waits for the state that it does not know yet."""
    driver.alter_isr("orders-0", [1, 2])

    assert refusal(driver.alter_isr("orders-0", [1], partition_epoch=0)) == ErrorCode.INVALID_UPDATE_VERSION


def test_a_leader_with_a_newer_state_gets_not_controller(driver: Driver) -> None:
    """NOT_CONTROLLER: another controller must have written; this one lost controllership without noticing yet (C6)."""
    assert refusal(driver.alter_isr("orders-0", [1], partition_epoch=7)) == ErrorCode.NOT_CONTROLLER
    assert refusal(driver.alter_isr("orders-0", [1], leader_epoch=7)) == ErrorCode.NOT_CONTROLLER


def test_a_deposed_leader_is_fenced(driver: Driver) -> None:
    """FENCED_LEADER_EPOCH: its leader epoch is outdated."""
    driver.bounce(1)

    assert (
        refusal(driver.alter_isr("orders-0", [1], broker=1, leader_epoch=0, partition_epoch=0))
        == ErrorCode.FENCED_LEADER_EPOCH
    )


def test_only_the_leader_may_change_the_isr(driver: Driver) -> None:
    """INVALID_REQUEST: a follower must not request it."""
    assert refusal(driver.alter_isr("orders-0", [1, 2], broker=2)) == ErrorCode.INVALID_REQUEST


@pytest.mark.shows("C1", "C2")
@pytest.mark.parametrize("isr", [[], [2, 3], [1, 1], [1, 2, 2], [1, 4]])
def test_an_invalid_isr_is_refused(driver: Driver, isr: list[int]) -> None:
    """C1, C2: it must contain the leader, no duplicates, and only replicas."""
    assert refusal(driver.alter_isr("orders-0", isr)) == ErrorCode.INVALID_REQUEST
    assert driver.state("orders-0") == State(1, 0, (1, 2, 3))


def test_a_recovering_leader_is_the_only_isr_member(driver: Driver) -> None:
    """KIP-704: others join when it has recovered."""
    driver.alter_isr("orders-0", [1])

    assert refusal(driver.alter_isr("orders-0", [1, 2], is_recovering=True)) == ErrorCode.INVALID_REQUEST


@pytest.fixture
def unclean() -> Driver:
    """`logs` has a leader that was not in sync: broker 1, since only 2 was in sync and is offline."""
    driver = cluster_with([1, 2], {"logs": [[1, 2]]}, unclean=["logs"])
    driver.kill(1)
    driver.kill(2)
    driver.start(1)
    assert driver.written.states[tp("logs-0")].is_recovering
    driver.start(2)
    return driver


def is_recovering(driver: Driver) -> bool:
    """Whether the leader of `logs` recovers; memory and the written state must agree."""
    known = bool(driver.cluster.columns.recovering[driver.row("logs-0")])
    assert known == driver.written.states[tp("logs-0")].is_recovering, "memory and the written state differ"
    return known


def test_an_unclean_leader_recovers_until_it_reports_recovered(unclean: Driver) -> None:
    """KIP-704: it reports this by requesting an ISR as RECOVERED."""
    assert is_recovering(unclean)

    unclean.alter_isr("logs-0", [1, 2])

    assert not is_recovering(unclean)


def test_an_unclean_leader_may_change_only_its_recovery_state(unclean: Driver) -> None:
    """LeaderAndIsr.equalsAllowStalePartitionEpoch: the recovery state is part of the state."""
    epoch = unclean.written.states[tp("logs-0")].version

    unclean.alter_isr("logs-0", [1])

    assert not is_recovering(unclean)
    assert unclean.written.states[tp("logs-0")].version == epoch + 1


def test_recovery_outlives_its_leader_and_the_controller(unclean: Driver) -> None:
    """LeaderAndIsr.newLeaderAndIsr keeps the state: no leader has reported that the log was recovered."""
    unclean.kill(1)
    unclean.take_over()
    unclean.kill(2)
    assert unclean.state("logs-0").leader == NO_LEADER
    unclean.start(2)

    assert unclean.state("logs-0").leader == 2
    assert is_recovering(unclean)


def test_a_leader_that_has_recovered_does_not_recover_again(driver: Driver) -> None:
    """KafkaController.alterPartitions: RECOVERED to RECOVERING is INVALID_REQUEST."""
    assert refusal(driver.alter_isr("orders-0", [1], is_recovering=True)) == ErrorCode.INVALID_REQUEST


def test_an_offline_broker_does_not_join_the_isr(driver: Driver) -> None:
    """KIP-841: INELIGIBLE_REPLICA."""
    driver.kill(3)

    assert refusal(driver.alter_isr("orders-0", [1, 2, 3])) == ErrorCode.INELIGIBLE_REPLICA


def test_a_broker_that_shuts_down_does_not_join_the_isr(driver: Driver) -> None:
    """KIP-841: otherwise it could be elected just before it exits."""
    driver.shut_down(3)

    assert refusal(driver.alter_isr("orders-0", [1, 2, 3])) == ErrorCode.INELIGIBLE_REPLICA


def test_an_unknown_partition_is_refused(driver: Driver) -> None:
    """UNKNOWN_TOPIC_OR_PARTITION."""
    wish = events.IsrChange(tp("ghost-0"), 0, (1,), 0)
    answers = driver.submit(events.AlterPartition(1, driver.brokers[1].epoch, (wish,)))

    assert refusal(answers[tp("ghost-0")]) == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_a_topic_that_is_being_deleted_is_unknown(driver: Driver) -> None:
    """C10: brokers were sent its deletion."""
    driver.holds_answers = True
    driver.delete("orders")

    assert refusal(driver.alter_isr("orders-0", [1])) == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


@pytest.mark.parametrize("epoch", [-1, 0, 10_000])
def test_only_the_registered_incarnation_may_change_isrs(driver: Driver, epoch: int) -> None:
    """KIP-380: any other broker epoch, and a missing one, is refused for the whole request."""
    assert refusal(driver.alter_isr("orders-0", [1], broker_epoch=epoch)) == ErrorCode.STALE_BROKER_EPOCH


def test_a_broker_that_is_not_registered_is_refused(driver: Driver) -> None:
    """KafkaController.alterPartitions: STALE_BROKER_EPOCH for an unknown broker, too."""
    epoch = driver.brokers[1].epoch
    driver.kill(1)

    assert (
        refusal(driver.submit(events.AlterPartition(1, epoch, (events.IsrChange(tp("orders-0"), 0, (1,), 0),))))
        == ErrorCode.STALE_BROKER_EPOCH
    )


def test_partitions_of_a_request_are_independent() -> None:
    """KIP-497: an error for one does not affect the others."""
    driver = cluster_with([1, 2], {"orders": [[1, 2], [1, 2]]})
    wishes = (
        events.IsrChange(tp("orders-0"), 0, (1,), 5),
        events.IsrChange(tp("orders-1"), 0, (1,), 0),
    )
    answers = driver.submit(events.AlterPartition(1, driver.brokers[1].epoch, wishes))

    assert refusal(answers[tp("orders-0")]) == ErrorCode.NOT_CONTROLLER
    assert answers[tp("orders-1")] == PartitionAnswer(1, 0, (1,), 1)
    assert driver.state("orders-0") == State(1, 0, (1, 2))


def test_the_response_after_a_refused_write_is_that_of_the_written_state(driver: Driver) -> None:
    """The event is decided again on the written state, whose version is newer than the leader's."""
    driver.intrude(lambda: driver.write_isr("orders-0", [1, 3]))

    assert refusal(driver.alter_isr("orders-0", [1, 2], partition_epoch=0)) == ErrorCode.INVALID_UPDATE_VERSION
    assert driver.state("orders-0") == State(1, 0, (1, 3))


def test_a_write_whose_result_was_lost_is_granted(driver: Driver) -> None:
    """The connection was lost after the write: read again, the ISR is already set (idempotent)."""
    driver.intrude(lambda: driver.write_isr("orders-0", [1, 2]))

    assert driver.alter_isr("orders-0", [1, 2]) == PartitionAnswer(1, 0, (1, 2), 1)

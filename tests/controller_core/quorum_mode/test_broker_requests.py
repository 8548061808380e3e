"""Requests of brokers in KRaft mode: heartbeats, ISRs, shutdowns, with the epochs that fence them."""

import pytest

from controller_core.decisions.broker_requests import PartitionAnswer
from controller_core.model import events, quorum_events
from controller_core.quorum_mode.heartbeats import HeartbeatAnswer
from kafka_wire import ErrorCode, Failure
from tests.controller_core.quorum_mode.driver import QuorumDriver


@pytest.fixture
def driver() -> QuorumDriver:
    """Three brokers in service, and a partition that broker 1 leads."""
    driver = QuorumDriver()
    driver.start(1, 2, 3)
    driver.create("orders", [(1, 2, 3)])
    driver.forget()
    return driver


def code_of(answer: object) -> ErrorCode:
    """Return the error of an answer."""
    assert isinstance(answer, Failure)
    return answer.code


@pytest.mark.shows("C13")
def test_a_heartbeat_of_another_incarnation_is_refused(driver: QuorumDriver) -> None:
    """C13 in KRaft mode: STALE_BROKER_EPOCH."""
    answer = driver.submit(quorum_events.Heartbeat(1, 10_000, 10_000))

    assert (code_of(answer), driver.changes) == (ErrorCode.STALE_BROKER_EPOCH, [])


def test_a_broker_behind_its_registration_stays_fenced(driver: QuorumDriver) -> None:
    """It would serve clients from old metadata."""
    driver.launch(4)
    driver.register(4)

    behind = driver.heartbeat(4, lag=1)
    caught_up = driver.heartbeat(4)

    assert behind == HeartbeatAnswer(is_caught_up=False, is_fenced=True, may_shut_down=False)
    assert caught_up == HeartbeatAnswer(is_caught_up=True, is_fenced=False, may_shut_down=False)


@pytest.mark.shows("C17")
def test_a_broker_that_asks_for_it_is_fenced(driver: QuorumDriver) -> None:
    """BrokerHeartbeatManager: wantFence."""
    answer = driver.heartbeat(1, wants_fence=True)

    assert (answer.is_fenced, driver.cluster.fenced, driver.leader("orders-0")) == (True, {1}, 2)


def test_a_session_that_expired_fences_only_its_incarnation(driver: QuorumDriver) -> None:
    """The broker registered again in the meantime."""
    driver.submit(quorum_events.FenceBroker(1, 10_000))

    assert driver.changes == []


def test_suspicion_of_an_earlier_incarnation_is_ignored(driver: QuorumDriver) -> None:
    """ADR 57: its connection ended because it was replaced."""
    driver.submit(quorum_events.HeartbeatConnectionEnded(1, 10_000))

    assert driver.cluster.suspected == set()


def test_a_new_controller_starts_a_controlled_shutdown_again(driver: QuorumDriver) -> None:
    """It has no offsets; the registration contains that the broker is shutting down."""
    driver.shut_down(1)
    driver.cluster.progress.clear()

    first = driver.shut_down(1)
    driver.heartbeat(2)
    driver.heartbeat(3)
    second = driver.shut_down(1)

    assert (first.may_shut_down, second.may_shut_down) == (True, True)


def test_an_isr_with_a_fenced_member_is_refused(driver: QuorumDriver) -> None:
    """KIP-841: all members must be live, not only those that join."""
    driver.kill(3)
    driver.expire()

    assert code_of(driver.alter_isr("orders-0", [1, 2, 3])) is ErrorCode.INELIGIBLE_REPLICA


def test_an_isr_with_a_restarted_member_is_refused(driver: QuorumDriver) -> None:
    """KIP-903: it caught up in an earlier life."""
    driver.alter_isr("orders-0", [1, 2])
    old = driver.processes[3].epoch
    driver.start(3)
    epochs = driver.processes[1].epoch, driver.processes[2].epoch

    refused = driver.alter_isr("orders-0", [1, 2, 3], isr_epochs=(*epochs, old))
    granted = driver.alter_isr("orders-0", [1, 2, 3], isr_epochs=(*epochs, driver.processes[3].epoch))

    assert code_of(refused) is ErrorCode.INELIGIBLE_REPLICA
    assert isinstance(granted, PartitionAnswer)


def test_a_leader_that_repeats_its_request_gets_the_current_state(driver: QuorumDriver) -> None:
    """Its first answer was lost."""
    row = driver.row("orders-0")
    epoch = int(driver.cluster.columns.partition_epoch[row])
    first = driver.alter_isr("orders-0", [1, 2])

    assert driver.alter_isr("orders-0", [1, 2], partition_epoch=epoch) == first


@pytest.mark.parametrize(
    ("isr", "claims", "code"),
    [
        ([1, 2], {"leader_epoch": 9}, ErrorCode.NOT_CONTROLLER),
        ([1, 2], {"partition_epoch": 9}, ErrorCode.NOT_CONTROLLER),
        ([1, 2], {"leader_epoch": -1}, ErrorCode.FENCED_LEADER_EPOCH),
        ([2, 3], {"broker": 2}, ErrorCode.INVALID_REQUEST),
        ([2, 3], {}, ErrorCode.INVALID_REQUEST),
        ([1, 4], {}, ErrorCode.INVALID_REQUEST),
        ([1], {"is_recovering": True}, ErrorCode.INVALID_REQUEST),
    ],
)
def test_a_wrong_isr_is_refused(
    driver: QuorumDriver, isr: list[int], claims: dict[str, object], code: ErrorCode
) -> None:
    """ReplicationControlManager.validateAlterPartitionData."""
    assert code_of(driver.alter_isr("orders-0", isr, **claims)) is code


def test_cordoned_directories_get_no_new_replicas(driver: QuorumDriver) -> None:
    """KIP-1066."""
    cordoned = driver.processes[3].directories
    driver.heartbeat(3, cordoned_directories=cordoned)

    created = driver.create("more", partitions=4, replication_factor=2)
    refused = driver.create("wide", partitions=1, replication_factor=3)

    replicas = {
        broker
        for partition in range(4)
        for broker in driver.cluster.columns.replicas_of(driver.row(f"more-{partition}"))
    }
    assert (created.failure, replicas) == (None, {1, 2})
    assert code_of(refused.failure) is ErrorCode.INVALID_REPLICATION_FACTOR


def test_a_directory_that_was_cordoned_already_is_not_written_again(driver: QuorumDriver) -> None:
    """Each heartbeat reports it."""
    cordoned = driver.processes[3].directories
    driver.heartbeat(3, cordoned_directories=cordoned)
    end = driver.log_end

    driver.heartbeat(3, cordoned_directories=cordoned)

    assert driver.log_end == end


@pytest.mark.shows("C14")
def test_a_balance_elects_only_live_members_of_the_isr(driver: QuorumDriver) -> None:
    """C14."""
    driver.create("more", [(2, 1), (2, 3)])
    driver.kill(2)
    driver.expire()
    driver.start(2)
    driver.alter_isr("more-0", [1, 2])

    driver.submit(events.BalanceLeaders(0))

    assert (driver.leader("more-0"), driver.leader("more-1")) == (2, 3)


@pytest.mark.shows("C7")
def test_an_unclean_election_takes_no_live_leaders_place(driver: QuorumDriver) -> None:
    """C7: a request for all partitions returns no result for those with a leader."""
    assert (driver.submit(events.ElectLeaders(None, unclean=True)), driver.leader("orders-0")) == ({}, 1)

"""Registrations that are refused, and what a new incarnation finds. Source: ClusterControlManager.registerBroker of Kafka 4.3."""

from dataclasses import replace
from typing import Any
from uuid import UUID

import pytest

from controller_core.model.broker import FeatureRange
from controller_core.model.ids import MAX_BROKER_ID
from controller_core.model.mode_rules import RestartPolicy
from controller_core.quorum_mode.registration import Registered
from kafka_metadata.metadata_versions import METADATA_VERSION
from kafka_wire import ErrorCode, Failure
from tests.controller_core.quorum_mode.driver import CONTROLLER, FEATURES, QuorumDriver, directory


@pytest.fixture
def driver() -> QuorumDriver:
    """Three brokers in service, and a partition that broker 1 leads."""
    driver = QuorumDriver()
    driver.start(1, 2, 3)
    driver.create("orders", [(1, 2, 3)])
    driver.forget()
    return driver


@pytest.mark.parametrize(
    ("claims", "code"),
    [
        ({"cluster_id": "another"}, ErrorCode.INCONSISTENT_CLUSTER_ID),
        ({"is_migrating": True}, ErrorCode.BROKER_ID_NOT_REGISTERED),
        ({"directories": ()}, ErrorCode.INVALID_REGISTRATION),
        ({"directories": (UUID(int=1),)}, ErrorCode.INVALID_REGISTRATION),
        ({"directories": (directory(4), directory(4))}, ErrorCode.INVALID_REGISTRATION),
        ({"directories": (directory(1),)}, ErrorCode.INVALID_REGISTRATION),
        ({"features": (FeatureRange(METADATA_VERSION, 7, 29), FEATURES[1])}, ErrorCode.UNSUPPORTED_VERSION),
        ({"features": FEATURES[:1]}, ErrorCode.UNSUPPORTED_VERSION),
        ({"features": (*FEATURES, FeatureRange("share.version", 1, 2))}, ErrorCode.UNSUPPORTED_VERSION),
    ],
)
def test_a_wrong_registration_is_refused_and_changes_nothing(
    driver: QuorumDriver, claims: dict[str, Any], code: ErrorCode
) -> None:
    """Another cluster, a ZooKeeper broker, directories, features."""
    driver.launch(4)

    answer = driver.register(4, **claims)

    assert isinstance(answer, Failure)
    assert (answer.code, driver.changes) == (code, [])


def test_the_id_of_the_controller_is_refused(driver: QuorumDriver) -> None:
    """Brokers and controllers share their ids."""
    driver.launch(CONTROLLER)

    answer = driver.register(CONTROLLER)

    assert isinstance(answer, Failure)
    assert answer.code is ErrorCode.DUPLICATE_BROKER_REGISTRATION


@pytest.mark.parametrize("broker", [-1, MAX_BROKER_ID + 1])
def test_an_id_that_no_broker_can_have_is_refused(driver: QuorumDriver, broker: int) -> None:
    """It would not fit into the columns."""
    driver.launch(broker)

    answer = driver.register(broker)

    assert isinstance(answer, Failure)
    assert (answer.code, driver.changes) == (ErrorCode.INVALID_REGISTRATION, [])


def test_a_broker_below_metadata_version_17_names_no_directories() -> None:
    """KIP-858 begins with 3.7-IV2."""
    driver = QuorumDriver(elr=False, version=16)
    driver.launch(1)

    assert driver.register(1, directories=()) == Registered(driver.log_end - 1)
    assert driver.cluster.brokers[1].directories == ()


def test_the_same_process_registers_again_under_its_epoch(driver: QuorumDriver) -> None:
    """It may have new endpoints; it stays in service and keeps its leaders."""
    epoch = driver.processes[1].epoch

    assert driver.register(1, rack="b") == Registered(epoch)

    registered = driver.cluster.brokers[1]
    assert (registered.rack, registered.fenced, driver.leader("orders-0")) == ("b", False, 1)


@pytest.mark.shows("C16")
def test_a_new_incarnations_epoch_is_the_offset_of_its_record(driver: QuorumDriver) -> None:
    """C16: the earlier incarnation leaves its partitions by records before it."""
    driver.launch(1)
    end = driver.log_end

    driver.register(1)

    assert (driver.cluster.brokers[1].epoch, driver.log_end) == (end + 1, end + 2)


@pytest.mark.parametrize(
    ("policy", "is_admitted"),
    [(RestartPolicy(), True), (RestartPolicy(admits_same_directories=False), False)],
)
def test_a_process_with_the_directories_of_its_predecessor_is_let_in_at_once(
    driver: QuorumDriver, policy: RestartPolicy, is_admitted: bool
) -> None:
    """ADR 57: it has locked them."""
    driver.cluster.restarts = policy
    driver.launch(1)

    answer = driver.register(1)

    assert isinstance(answer, Registered) == is_admitted


def test_a_process_without_one_of_the_directories_is_a_duplicate(driver: QuorumDriver) -> None:
    """ADR 57: the old process may still have locked the other one."""
    driver.start(5, directories=(51, 52))
    driver.launch(5, directories=(51,))

    answer = driver.register(5)

    assert isinstance(answer, Failure)
    assert answer.code is ErrorCode.DUPLICATE_BROKER_REGISTRATION


def test_a_process_with_one_more_directory_is_let_in_at_once(driver: QuorumDriver) -> None:
    """ADR 57: it has locked those of the old process."""
    driver.launch(1, directories=(1, 61))

    assert isinstance(driver.register(1), Registered)


@pytest.mark.parametrize(
    ("policy", "is_admitted"),
    [
        (RestartPolicy(admits_same_directories=False), True),
        (RestartPolicy(admits_same_directories=False, admits_after_shutdown=False), False),
    ],
)
def test_a_process_after_a_granted_shutdown_is_let_in_at_once(
    driver: QuorumDriver, policy: RestartPolicy, is_admitted: bool
) -> None:
    """ADR 57, KAFKA-19047."""
    driver.cluster.restarts = policy
    driver.start(4)
    driver.shut_down(4)
    driver.sessions.hear(4, driver.processes[4].epoch, driver.now_ms)
    driver.launch(4)

    answer = driver.register(4)

    assert isinstance(answer, Registered) == is_admitted


def test_a_clean_shutdown_keeps_a_replica_eligible() -> None:
    """KIP-966: the epoch in the clean-shutdown file is the registered one."""
    driver = QuorumDriver()
    driver.start(1)
    driver.create("orders", [(1,)], configs={"min.insync.replicas": "1"})
    driver.shut_down(1)
    driver.shut_down(1)

    driver.start(1)

    row = driver.row("orders-0")
    assert (driver.leader("orders-0"), bool(driver.cluster.columns.recovering[row])) == (1, False)


def test_an_unclean_shutdown_makes_a_replica_ineligible() -> None:
    """KIP-966: it may have lost unflushed records; it leads again only as the last known leader, and recovers."""
    driver = QuorumDriver()
    driver.start(1)
    driver.create("orders", [(1,)])
    driver.kill(1)
    driver.expire()

    driver.start(1)

    row = driver.row("orders-0")
    assert (driver.leader("orders-0"), bool(driver.cluster.columns.recovering[row])) == (1, True)


def test_a_fenced_broker_is_registered_like_any_other(driver: QuorumDriver) -> None:
    """Its session has expired."""
    driver.kill(2)
    driver.expire()
    driver.launch(2, directories=(62,))

    assert isinstance(driver.register(2), Registered)


def test_the_decision_changes_nothing_itself(driver: QuorumDriver) -> None:
    """Decide, then apply."""
    before = replace(driver.cluster.brokers[1])
    driver.launch(1, directories=(63,))

    driver.register(1)

    assert driver.cluster.brokers[1] == before

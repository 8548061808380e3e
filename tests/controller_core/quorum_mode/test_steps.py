"""Brokers with many partitions: their partitions are changed in steps, with the same result as in one."""

from collections.abc import Callable

import pytest

from controller_core.model import changes, events, quorum_events
from controller_core.quorum_mode.decide import decide
from controller_core.quorum_mode.heartbeats import HeartbeatAnswer
from controller_core.quorum_mode.leaving import WHOLE_STEPS
from controller_core.quorum_mode.transitions import apply
from kafka_wire import ErrorCode
from tests.controller_core.quorum_mode.driver import QuorumDriver

PARTITIONS = 7
STEP_ROWS = 2


def fence(driver: QuorumDriver) -> object:
    """The session of broker 1 expires."""
    driver.kill(1)
    driver.expire()
    return None


def shut_down(driver: QuorumDriver) -> object:
    """Broker 1 asks for its controlled shutdown, and again once the others have read of the new leaders."""
    began = driver.shut_down(1)
    driver.heartbeat(2)
    driver.heartbeat(3)
    return began, driver.shut_down(1)


def ask_for_fencing(driver: QuorumDriver) -> object:
    """Broker 1 asks to be fenced."""
    return driver.heartbeat(1, wants_fence=True)


def lose_directory(driver: QuorumDriver) -> object:
    """The first directory of broker 1 fails."""
    driver.fail_directory(1, 11)
    return None


def unregister(driver: QuorumDriver) -> object:
    """An administrator removes broker 1 while it is in service."""
    return driver.submit(events.UnregisterBroker(1))


def restart(driver: QuorumDriver) -> object:
    """Broker 1 is killed and registers again at once, without a clean shutdown before."""
    driver.launch(1)
    driver.register(1)
    return driver.heartbeat(1).is_fenced


def return_of_all(driver: QuorumDriver) -> object:
    """All brokers are fenced; then the last leader of all returns."""
    driver.kill(1, 2, 3)
    driver.expire()
    return driver.heartbeat(1), driver.heartbeat(2), driver.heartbeat(3)


SCENARIOS = (fence, shut_down, ask_for_fencing, lose_directory, unregister, restart, return_of_all)


def cluster_of_three(step_rows: int, *, elr: bool) -> QuorumDriver:
    """Three brokers of which the first leads all partitions; in some it is the only replica."""
    driver = QuorumDriver(elr=elr)
    driver.cluster.step_rows = step_rows
    driver.start(1, directories=(11, 12))
    driver.start(2, 3)
    driver.create("orders", [(1, 2, 3)] * PARTITIONS)
    driver.create("single", [(1,)] * PARTITIONS)
    for partition in range(PARTITIONS):
        driver.assign_directory(1, f"orders-{partition}", 11 + partition % 2)
        driver.assign_directory(1, f"single-{partition}", 11)
    driver.forget()
    return driver


def states(driver: QuorumDriver) -> list[object]:
    """The state of every partition, with its epochs."""
    columns = driver.cluster.columns
    return [
        (
            driver.cluster.name_of(row),
            int(columns.leader[row]),
            columns.isr_of(row),
            int(columns.leader_epoch[row]),
            int(columns.partition_epoch[row]),
            columns.elr_in(columns.used())[index].tolist(),
        )
        for index, row in enumerate(columns.used().tolist())
    ]


@pytest.mark.parametrize("scenario", SCENARIOS)
@pytest.mark.parametrize("elr", [True, False])
def test_steps_lead_to_the_same_state_and_answer_as_one_decision(
    scenario: Callable[[QuorumDriver], object], elr: bool
) -> None:
    """No decision changes more rows than a step has; what is left of a return is one step if it is at most two."""
    whole, stepwise = cluster_of_three(1_000, elr=elr), cluster_of_three(STEP_ROWS, elr=elr)

    answers = scenario(whole), scenario(stepwise)

    assert answers[1] == answers[0]
    assert states(stepwise) == states(whole)
    assert stepwise.cluster.brokers.keys() == whole.cluster.brokers.keys()
    assert stepwise.cluster.fenced == whole.cluster.fenced
    assert stepwise.cluster.shutting_down == whole.cluster.shutting_down
    rows = [len(change.rows) for change in stepwise.changes if isinstance(change, changes.PartitionStates)]
    assert len(rows) > 1
    assert rows[0] == STEP_ROWS
    assert max(rows) <= (WHOLE_STEPS if scenario in {return_of_all, restart} else 1) * STEP_ROWS


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_partitions_of_two_steps_are_changed_in_one(scenario: Callable[[QuorumDriver], object]) -> None:
    """Brokers then know all new leaders at once: K1."""
    driver = cluster_of_three(PARTITIONS, elr=True)

    scenario(driver)

    found = [change for change in driver.changes if isinstance(change, changes.PartitionStates)]
    assert max(len(change.rows) for change in found) > PARTITIONS


def first_step(driver: QuorumDriver, event: events.Event) -> tuple[events.Event, ...]:
    """Carry out the first step of an event; return its rest."""
    made = decide(driver.cluster, event)
    for change in made.changes:
        apply(driver.cluster, change)
    assert made.rest
    return made.rest


def test_a_broker_that_leaves_does_not_return_to_an_isr_between_two_steps() -> None:
    """Otherwise a broker that is alive, and only cut off from the controller, could stay in service."""
    driver = cluster_of_three(STEP_ROWS, elr=True)
    first_step(driver, quorum_events.FenceBroker(1, driver.processes[1].epoch))

    assert driver.alter_isr("orders-0", (2, 3, 1)).code is ErrorCode.INELIGIBLE_REPLICA


def test_a_broker_whose_fencing_was_not_completed_is_in_service_with_its_next_heartbeat() -> None:
    """The request that asked for it ended between two steps."""
    driver = cluster_of_three(STEP_ROWS, elr=True)
    first_step(driver, quorum_events.Heartbeat(1, driver.processes[1].epoch, driver.log_end, wants_fence=True))
    assert driver.cluster.may_lead() == {2, 3}

    answer = driver.heartbeat(1)

    assert answer == HeartbeatAnswer(is_caught_up=True, is_fenced=False, may_shut_down=False)
    assert driver.cluster.may_lead() == {1, 2, 3}


def test_a_new_active_controller_elects_the_leaders_of_an_unfinished_return() -> None:
    """The controller before ended between two steps."""
    driver = cluster_of_three(STEP_ROWS, elr=True)
    driver.kill(1, 2, 3)
    driver.expire()
    first_step(driver, quorum_events.Heartbeat(1, driver.processes[1].epoch, driver.log_end))
    led = len(driver.cluster.columns.led_by(driver.cluster.columns.flags([1])))
    assert led > 0

    driver.submit(quorum_events.ElectWaitingLeaders())

    assert len(driver.cluster.columns.led_by(driver.cluster.columns.flags([1]))) > led

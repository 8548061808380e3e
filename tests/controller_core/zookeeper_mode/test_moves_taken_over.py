"""A controller that takes over during a move finishes it from the written lists (C9; O3 for the core)."""

import contextlib

import pytest

from controller_core.model import events
from tests.controller_core.decisions.driver import CrashError, Driver, State, cluster_with

FOUR = [1, 2, 3, 4]


@pytest.fixture
def driver() -> Driver:
    """Four brokers, orders-0 on 1, 2 and 3; answers are held."""
    return cluster_with(FOUR, {"orders": [[1, 2, 3]]}, holds_answers=True)


def finish(driver: Driver) -> None:
    """Let the added replica catch up, and every broker answer."""
    if 4 not in driver.state("orders-0").isr:
        driver.alter_isr("orders-0", [*driver.state("orders-0").isr, 4])
    driver.answer()
    driver.answer()


def holders(driver: Driver) -> set[int]:
    """Return the brokers with a log of the partition."""
    return {broker.id for broker in driver.brokers.values() if broker.logs}


def test_a_planned_move_is_sent(driver: Driver) -> None:
    """PLANNED: written before the controller failed."""
    driver.die_at(commits=0, after=True)
    driver.crashing(lambda: driver.reassign({"orders-0": [2, 3, 4]}))
    assert driver.state_written("orders-0") == State(1, 0, (1, 2, 3))
    driver.take_over()

    assert driver.state("orders-0") == State(1, 1, (1, 2, 3))

    finish(driver)

    assert driver.replicas("orders-0") == (2, 3, 4)
    assert holders(driver) == {2, 3, 4}


def test_a_move_that_waits_for_its_target_continues(driver: Driver) -> None:
    """UNION: sent again with a higher epoch, which does no harm."""
    driver.reassign({"orders-0": [2, 3, 4]})
    driver.take_over()

    assert set(driver.replicas("orders-0")) == {1, 2, 3, 4}
    assert driver.state("orders-0") == State(1, 2, (1, 2, 3))

    finish(driver)

    assert holders(driver) == {2, 3, 4}


def test_a_move_whose_target_came_into_sync_without_a_controller_ends(driver: Driver) -> None:
    """A native controller, or none, was active when the ISR grew."""
    driver.reassign({"orders-0": [2, 3, 4]})
    driver.write_isr("orders-0", [1, 2, 3, 4])
    driver.take_over()
    driver.answer()

    assert driver.written.topics["orders"].replicas == {0: (2, 3, 4)}
    assert holders(driver) == {2, 3, 4}


def test_requests_to_delete_removed_replicas_are_repeated(driver: Driver) -> None:
    """REMOVING: the answers were sent to the earlier controller."""
    driver.reassign({"orders-0": [2, 3, 4]})
    driver.alter_isr("orders-0", [1, 2, 3, 4])
    driver.take_over()

    assert driver.written.topics["orders"].removing == {0: (1,)}

    driver.answer()

    assert driver.written.topics["orders"].removing == {}
    assert holders(driver) == {2, 3, 4}


def test_a_written_end_of_a_move_is_final(driver: Driver) -> None:
    """The controller failed right after the last write."""
    driver.reassign({"orders-0": [2, 3, 4]})
    driver.alter_isr("orders-0", [1, 2, 3, 4])
    driver.die_at(commits=1, after=True)
    driver.crashing(driver.answer)
    driver.take_over()

    assert driver.replicas("orders-0") == (2, 3, 4)
    assert driver.cluster.moves == {}


def test_a_cancelled_move_is_finished_as_cancelled(driver: Driver) -> None:
    """It is recognisable from its lists."""
    driver.reassign({"orders-0": [2, 3, 4]})
    driver.die_at(commits=0, after=True)
    driver.crashing(lambda: driver.reassign({"orders-0": None}))
    driver.take_over()
    driver.answer()

    assert driver.written.topics["orders"].replicas == {0: (2, 3, 1)}
    assert holders(driver) == {1, 2, 3}


@pytest.mark.parametrize("after", [False, True])
@pytest.mark.parametrize("commits", range(6))
def test_a_controller_may_fail_at_any_commit_of_a_move(driver: Driver, commits: int, after: bool) -> None:
    """Enumerated: the next controller reaches the target and leaves no stray log, whatever is written."""
    driver.die_at(commits=commits, after=after)
    with contextlib.suppress(CrashError):
        driver.reassign({"orders-0": [2, 3, 4]})
        finish(driver)
    driver.take_over()
    if not driver.cluster.moves and driver.replicas("orders-0") == (1, 2, 3):
        driver.reassign({"orders-0": [2, 3, 4]})
    finish(driver)
    driver.submit(events.AdvanceMoves())

    assert driver.written.topics["orders"].replicas == {0: (2, 3, 4)}
    assert driver.cluster.moves == {}
    assert holders(driver) == {2, 3, 4}

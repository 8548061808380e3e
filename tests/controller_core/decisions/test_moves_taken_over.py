"""A controller that takes over in the middle of a move finishes it from what is written (C9; O3 for the core)."""

import contextlib

import pytest

from controller_core.model import events
from tests.controller_core.decisions.driver import CrashError, Driver, State, cluster_with

FOUR = [1, 2, 3, 4]


@pytest.fixture
def driver() -> Driver:
    """Four brokers, orders-0 on 1, 2 and 3; answers are held."""
    driver = cluster_with(FOUR, {"orders": [[1, 2, 3]]})
    driver.holds_answers = True
    return driver


def finish(driver: Driver) -> None:
    """Let the added replica catch up, and every broker answer."""
    if 4 not in driver.state("orders-0").isr:
        driver.alter_isr("orders-0", [*driver.state("orders-0").isr, 4])
    driver.answer()
    driver.answer()


def holders(driver: Driver) -> set[int]:
    """Brokers with a log of the partition."""
    return {broker.id for broker in driver.brokers.values() if broker.logs}


def test_a_move_that_nobody_was_told_of_is_told(driver: Driver) -> None:
    """PLANNED: written, and the controller died."""
    driver.die_at(commits=0, after=True)
    driver.crashing(lambda: driver.reassign({"orders-0": [2, 3, 4]}))
    assert driver.state_written("orders-0") == State(1, 0, (1, 2, 3))
    driver.take_over()

    assert driver.state("orders-0") == State(1, 1, (1, 2, 3))

    finish(driver)

    assert driver.replicas("orders-0") == (2, 3, 4)
    assert holders(driver) == {2, 3, 4}


def test_a_move_that_waits_for_its_target_goes_on_waiting(driver: Driver) -> None:
    """UNION: told again under a higher epoch, which does no harm."""
    driver.reassign({"orders-0": [2, 3, 4]})
    driver.take_over()

    assert set(driver.replicas("orders-0")) == {1, 2, 3, 4}
    assert driver.state("orders-0") == State(1, 2, (1, 2, 3))

    finish(driver)

    assert holders(driver) == {2, 3, 4}


def test_a_move_whose_target_came_into_sync_meanwhile_ends(driver: Driver) -> None:
    """A native controller, or nobody, was there when the ISR grew."""
    driver.reassign({"orders-0": [2, 3, 4]})
    driver.write_isr("orders-0", [1, 2, 3, 4])
    driver.take_over()
    driver.answer()

    assert driver.written.topics["orders"].replicas == {0: (2, 3, 4)}
    assert holders(driver) == {2, 3, 4}


def test_removed_replicas_that_have_not_answered_are_told_again(driver: Driver) -> None:
    """REMOVING: the answers went to the earlier controller."""
    driver.reassign({"orders-0": [2, 3, 4]})
    driver.alter_isr("orders-0", [1, 2, 3, 4])
    driver.take_over()

    assert driver.written.topics["orders"].removing == {0: (1,)}

    driver.answer()

    assert driver.written.topics["orders"].removing == {}
    assert holders(driver) == {2, 3, 4}


def test_an_end_that_was_written_is_an_end(driver: Driver) -> None:
    """The controller died right after the last write."""
    driver.reassign({"orders-0": [2, 3, 4]})
    driver.alter_isr("orders-0", [1, 2, 3, 4])
    driver.die_at(commits=1, after=True)
    driver.crashing(driver.answer)
    driver.take_over()

    assert driver.replicas("orders-0") == (2, 3, 4)
    assert driver.cluster.moves == {}


def test_a_cancelled_move_is_finished_as_cancelled(driver: Driver) -> None:
    """move: it can be told from its lists alone."""
    driver.reassign({"orders-0": [2, 3, 4]})
    driver.die_at(commits=0, after=True)
    driver.crashing(lambda: driver.reassign({"orders-0": None}))
    driver.take_over()
    driver.answer()

    assert driver.written.topics["orders"].replicas == {0: (2, 3, 1)}
    assert holders(driver) == {1, 2, 3}


@pytest.mark.parametrize("after", [False, True])
@pytest.mark.parametrize("commits", range(6))
def test_a_controller_may_die_at_any_commit_of_a_move(driver: Driver, commits: int, after: bool) -> None:
    """Enumerated: whatever is written when it dies, the next one ends at the target and leaves no log behind."""
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

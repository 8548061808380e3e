"""`apply` stops the controller rather than make a state true that must never be (C1 to C4)."""

from typing import Any

import numpy as np
import pytest

from controller_core.decisions.transition import apply
from controller_core.model.changes import ReplicaRemovalAnswered, RequestsToBrokers, TopicObserved
from controller_core.model.move import Move
from tests.controller_core.decisions.driver import Driver, State, cluster_with
from tests.controller_core.states import NewState, partition_states


@pytest.fixture
def driver() -> Driver:
    """Three brokers; orders-0 on two of them, led by broker 1 under epoch 0."""
    return cluster_with([1, 2, 3], {"orders": [[1, 2]]})


def put(driver: Driver, requests: RequestsToBrokers = RequestsToBrokers.LEADER_AND_ISR, **state: Any) -> None:
    """Apply a state of orders-0 that nobody decided."""
    whole: dict[str, Any] = {"leader": 1, "leader_epoch": 1, "isr": (1, 2)} | state
    change = partition_states([NewState(driver.row("orders-0"), **whole)], requests)
    assert change is not None
    apply(driver.cluster, change)


def test_a_sound_state_is_made_true(driver: Driver) -> None:
    """The baseline of the refusals below."""
    put(driver)

    assert driver.cluster.columns.leader_epoch[driver.row("orders-0")] == 1


@pytest.mark.shows("C1", "C2", "C3", "C4")
@pytest.mark.parametrize(
    ("invariant", "state"),
    [
        ("C1", {"leader": 2, "isr": (1,)}),
        ("C1", {"leader": 3, "isr": (1, 2)}),
        ("C2", {"isr": (1, 3)}),
        ("C2", {"leader": -1, "isr": ()}),
        ("C3", {"isr": (1, 1)}),
        ("C3", {"isr": (1,), "replicas": (1, 1)}),
        ("C4", {"leader_epoch": 0}),
        ("C4", {"leader_epoch": -1}),
    ],
)
def test_an_unsound_state_stops_the_controller(driver: Driver, invariant: str, state: dict[str, Any]) -> None:
    """C1, C2, C3, C4: asserted in production, in the control plane (TIGER_STYLE)."""
    with pytest.raises(AssertionError, match=invariant):
        put(driver, **state)
    assert driver.state("orders-0") == State(1, 0, (1, 2))


def test_an_isr_that_its_leader_asked_for_comes_under_the_same_leader_epoch(driver: Driver) -> None:
    """KIP-497: a leader that were given another epoch without hearing of it would be fenced."""
    with pytest.raises(AssertionError, match="C4"):
        put(driver, RequestsToBrokers.METADATA_ONLY, leader_epoch=1, isr=(1,))


def test_a_change_can_be_taken_in_part() -> None:
    """The store writes some rows of a change and not others: those that were written keep their columns."""
    rows = [NewState(row, row, 1, (row, 9), replicas=(row, 9), unclean=row == 2) for row in range(3)]
    change = partition_states(rows, RequestsToBrokers.LEADER_AND_ISR)
    assert change is not None
    taken = change.take(np.array([0, 2], dtype=np.int32))

    assert (taken.rows.tolist(), taken.leader.tolist(), taken.isr.tolist()) == ([0, 2], [0, 2], [[0, 9], [2, 9]])
    assert taken.replicas is not None
    assert taken.unclean is not None
    assert (taken.replicas.tolist(), taken.unclean.tolist()) == ([[0, 9], [2, 9]], [False, True])


def observe(driver: Driver, replicas: dict[int, tuple[int, ...]], **lists: dict[int, tuple[int, ...]]) -> None:
    """Find the znode of orders as somebody else wrote it."""
    found: dict[str, Any] = {"adding": {}, "removing": {}} | lists
    apply(driver.cluster, TopicObserved("orders", replicas, version=9, **found))


def test_an_assignment_that_was_found_counts_whoever_wrote_it(driver: Driver) -> None:
    """TopicObserved: partitions added, moves started and moves ended by somebody else."""
    observe(driver, {0: (2, 3, 1), 1: (3, 2)}, adding={0: (3,)}, removing={0: (1,)})

    assert (driver.replicas("orders-0"), driver.replicas("orders-1")) == ((2, 3, 1), (3, 2))
    assert driver.cluster.moves[driver.row("orders-0")] == Move((2, 3, 1), (3,), (1,))

    observe(driver, {0: (2, 3), 1: (3, 2)})

    assert driver.replicas("orders-0") == (2, 3)
    assert driver.cluster.moves[driver.row("orders-0")] == Move((2, 3), (), ()), "brokers have to hear of it"
    assert driver.cluster.topics["orders"].version == 9


def test_a_move_that_was_found_as_it_is_known_stays_where_it_is(driver: Driver) -> None:
    """How far it has come is not written: brokers that were told to delete are waited for still."""
    driver.holds_answers = True
    driver.reassign({"orders-0": [2]})
    move = driver.cluster.moves[driver.row("orders-0")]
    assert move.waiting
    observe(driver, {0: (2, 1)}, removing={0: (1,)})

    assert move == driver.cluster.moves[driver.row("orders-0")]
    assert driver.replicas("orders-0") == (2,)


def test_an_answer_for_a_partition_that_does_not_move_is_nothing_to_note(driver: Driver) -> None:
    """It came when the move had ended, or the topic was gone."""
    for topic in ("orders", "ghost"):
        apply(driver.cluster, ReplicaRemovalAnswered(topic, 0, 1))

    assert driver.cluster.moves == {}


def test_what_nobody_can_apply_is_a_defect(driver: Driver) -> None:
    """A change without a rule must not be passed over."""
    with pytest.raises(TypeError, match="no rule"):
        apply(driver.cluster, object())  # type: ignore[arg-type]

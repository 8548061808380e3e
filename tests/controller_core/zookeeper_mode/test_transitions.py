"""State transitions: changes as found written, and invariants that stop the controller (C1 to C4)."""

from typing import Any, get_args

import numpy as np
import pytest

from controller_core.model import Move
from controller_core.model.changes import Change, RequestsToBrokers
from controller_core.model.quorum_changes import QuorumChange
from controller_core.model.zookeeper_changes import ReplicaRemovalAnswered, TopicObserved
from controller_core.zookeeper_mode.transitions import TRANSITIONS, apply
from tests.controller_core.decisions.driver import Driver, State, cluster_with
from tests.controller_core.states import NewState, partition_states


@pytest.fixture
def driver() -> Driver:
    """Three brokers; orders-0 on two of them, led by broker 1 under epoch 0."""
    return cluster_with([1, 2, 3], {"orders": [[1, 2]]})


def apply_state(driver: Driver, requests: RequestsToBrokers = RequestsToBrokers.LEADER_AND_ISR, **state: Any) -> None:
    """Apply a state of orders-0 without a decision."""
    whole: dict[str, Any] = {"leader": 1, "leader_epoch": 1, "isr": (1, 2)} | state
    change = partition_states([NewState(driver.row("orders-0"), **whole)], requests)
    assert change is not None
    apply(driver.cluster, change)


def test_a_valid_state_is_applied(driver: Driver) -> None:
    """Baseline of the invalid states below."""
    apply_state(driver)

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
def test_an_invalid_state_stops_the_controller(driver: Driver, invariant: str, state: dict[str, Any]) -> None:
    """C1, C2, C3, C4: asserted in production, in the control plane (TIGER_STYLE)."""
    with pytest.raises(AssertionError, match=invariant):
        apply_state(driver, **state)
    assert driver.state("orders-0") == State(1, 0, (1, 2))


def test_an_isr_requested_by_the_leader_keeps_the_leader_epoch(driver: Driver) -> None:
    """KIP-497: the leader would be fenced by another epoch that it is not sent."""
    with pytest.raises(AssertionError, match="C4"):
        apply_state(driver, RequestsToBrokers.METADATA_ONLY, leader_epoch=1, isr=(1,))


def test_a_part_of_a_change_keeps_its_columns() -> None:
    """The store may write only some rows of a change."""
    rows = [NewState(row, row, 1, (row, 9), replicas=(row, 9), unclean=row == 2) for row in range(3)]
    change = partition_states(rows, RequestsToBrokers.LEADER_AND_ISR)
    assert change is not None
    taken = change.take(np.array([0, 2], dtype=np.int32))

    assert (taken.rows.tolist(), taken.leader.tolist(), taken.isr.tolist()) == ([0, 2], [0, 2], [[0, 9], [2, 9]])
    assert taken.replicas is not None
    assert taken.unclean is not None
    assert (taken.replicas.tolist(), taken.unclean.tolist()) == ([[0, 9], [2, 9]], [False, True])


def observe(driver: Driver, replicas: dict[int, tuple[int, ...]], **lists: dict[int, tuple[int, ...]]) -> None:
    """Apply an assignment of orders as another process wrote it."""
    found: dict[str, Any] = {"adding": {}, "removing": {}} | lists
    apply(driver.cluster, TopicObserved("orders", replicas, **found))


def test_an_assignment_of_another_process_is_applied(driver: Driver) -> None:
    """TopicObserved: another process added partitions, started moves and ended moves."""
    observe(driver, {0: (2, 3, 1), 1: (3, 2)}, adding={0: (3,)}, removing={0: (1,)})

    assert (driver.replicas("orders-0"), driver.replicas("orders-1")) == ((2, 3, 1), (3, 2))
    assert driver.cluster.moves[driver.row("orders-0")] == Move((2, 3, 1), (3,), (1,))

    observe(driver, {0: (2, 3), 1: (3, 2)})

    assert driver.replicas("orders-0") == (2, 3)
    assert driver.cluster.moves[driver.row("orders-0")] == Move((2, 3), (), ()), (
        "the replicas have to be sent to brokers"
    )


def test_a_known_move_found_written_keeps_its_stage(driver: Driver) -> None:
    """The stage is not written: the controller still waits for brokers that delete their replicas."""
    driver.holds_answers = True
    driver.reassign({"orders-0": [2]})
    move = driver.cluster.moves[driver.row("orders-0")]
    assert move.waiting
    observe(driver, {0: (2, 1)}, removing={0: (1,)})

    assert driver.cluster.moves[driver.row("orders-0")] == move
    assert driver.replicas("orders-0") == (2,)


def test_a_removal_answer_without_a_move_changes_nothing(driver: Driver) -> None:
    """The move had ended, or the topic was deleted."""
    for topic in ("orders", "ghost"):
        apply(driver.cluster, ReplicaRemovalAnswered(topic, 0, 1))

    assert driver.cluster.moves == {}


def test_every_change_of_zookeeper_mode_has_a_transition(driver: Driver) -> None:
    """A change of another type is a defect and is not ignored."""
    assert TRANSITIONS.keys() == set(get_args(Change)) - set(get_args(QuorumChange))
    with pytest.raises(KeyError):
        apply(driver.cluster, object())

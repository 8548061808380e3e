"""Activation: a controller that becomes active sends the full state to brokers and repairs partitions."""

from dataclasses import replace

import pytest

from controller_core.model import NO_LEADER, zookeeper_events
from controller_core.model.zookeeper_changes import TopicDeletionObserved
from tests.controller_core.decisions.driver import Driver, State, cluster_with, tp
from tests.controller_core.decisions.messages import LeaderAndIsr, UpdateMetadata
from tests.controller_core.decisions.written import DeposedError

THREE = [1, 2, 3]


@pytest.fixture
def driver() -> Driver:
    """Three brokers, two topics."""
    return cluster_with(THREE, {"orders": [[1, 2], [2, 3]], "alone": [[3]]})


def test_brokers_get_the_live_brokers_before_leader_and_isr(driver: Driver) -> None:
    """Protocol notes, Z32: UpdateMetadata with the live brokers comes before LeaderAndIsr, to every broker."""
    driver.take_over()

    for broker_id in THREE:
        kinds = [type(message) for to, message in driver.messages if broker_id in to]
        assert kinds == [UpdateMetadata, LeaderAndIsr]


def test_every_broker_gets_all_metadata_and_leader_and_isr_of_its_replicas(driver: Driver) -> None:
    """KafkaController.onControllerFailover: sendUpdateMetadataRequest with all, replica states of the live ones."""
    driver.take_over()

    everything = {tp("orders-0"), tp("orders-1"), tp("alone-0")}
    assert everything == driver.sent(UpdateMetadata, 1)[0].partitions.keys()
    assert driver.sent(LeaderAndIsr, 3)[0].partitions.keys() == {tp("orders-1"), tp("alone-0")}


def test_a_takeover_without_changes_writes_nothing(driver: Driver) -> None:
    """No leader and no epoch changes."""
    driver.take_over()

    assert [change for change in driver.changes if not isinstance(change, TopicDeletionObserved)] == []
    assert driver.state("orders-0") == State(1, 0, (1, 2))


def test_changes_while_no_controller_was_active_are_repaired(driver: Driver) -> None:
    """Protocol notes, Z14: a failed leader is replaced only when a controller is active again, and then at once."""
    driver.brokers[1].is_up = False
    driver.brokers[3].is_up = False
    driver.take_over()

    assert driver.state("orders-0") == State(2, 1, (2,))
    assert driver.state("orders-1") == State(2, 1, (2,))
    assert driver.state("alone-0") == State(NO_LEADER, 1, (3,))


def test_a_cluster_without_brokers_gets_no_requests(driver: Driver) -> None:
    """Partitions lose their leaders once brokers have been read."""
    driver.kill(*THREE)
    driver.forget()
    driver.take_over()

    assert (driver.changes, driver.messages) == ([], [])


def test_states_contain_the_epoch_of_the_controller_that_wrote_them(driver: Driver) -> None:
    """C5: the controller epoch grows with each active term."""
    driver.take_over()
    driver.kill(1)

    assert (
        driver.written.states[tp("orders-0")].controller_epoch,
        driver.written.states[tp("alone-0")].controller_epoch,
    ) == (2, 1)


@pytest.mark.shows("C5")
def test_a_deposed_controller_writes_nothing(driver: Driver) -> None:
    """C5, C6: every write is fenced."""
    driver.written.take_place(7)
    before = dict(driver.written.states)

    with pytest.raises(DeposedError):
        driver.kill(1)
    assert before == driver.written.states


def test_a_controlled_shutdown_is_requested_again_after_a_takeover(driver: Driver) -> None:
    """It is kept only in memory: the broker repeats the request until no leader remains."""
    driver.shut_down(1)
    driver.take_over()

    assert frozenset(driver.cluster.shutting_down) == frozenset()


@pytest.mark.parametrize(("leader", "isr", "expected"), [(2, (2, 3), (2, (2,))), (3, (3, 2), (2, (2,)))])
def test_non_replicas_in_a_written_state_are_dropped(
    driver: Driver, leader: int, isr: tuple[int, ...], expected: tuple[int, tuple[int, ...]]
) -> None:
    """C1, C2: after a manual edit, brokers that are not replicas do not lead and are not in the next ISR."""
    state = driver.written.states[tp("orders-0")]
    driver.written.states[tp("orders-0")] = replace(state, leader=leader, isr=isr)
    driver.take_over()
    driver.bounce(1)

    assert expected[0] == driver.cluster.columns.leader[driver.row("orders-0")]
    assert expected[1] == driver.cluster.columns.isr_of(driver.row("orders-0"))


@pytest.mark.parametrize("after", [False, True])
@pytest.mark.parametrize("commits", range(3))
def test_a_controller_that_fails_during_a_failover_misses_no_partition(
    driver: Driver, commits: int, after: bool
) -> None:
    """Before or after each commit: the next controller reads what is written and reaches the same result."""
    driver.brokers[2].is_up = False
    driver.die_at(commits=commits, after=after)
    if commits < 2:
        driver.crashing(driver.read_brokers)
    driver.take_over()

    assert (driver.state("orders-0").leader, driver.state("orders-0").isr) == (1, (1,))
    assert (driver.state("orders-1").leader, driver.state("orders-1").isr) == (3, (3,))


def test_a_decision_changes_nothing_and_is_repeatable(driver: Driver) -> None:
    """`decide` is a pure function of the cluster and the event (ARCHITECTURE.md)."""
    from controller_core.zookeeper_mode.decide import decide

    event = zookeeper_events.BrokersRead((driver.brokers[1].registration,))
    before = {name: getattr(driver.cluster.columns, name).copy() for name in ("leader", "isr", "leader_epoch")}
    first, second = (decide(driver.cluster, event) for _ in range(2))

    assert [type(change) for change in first.changes] == [type(change) for change in second.changes]
    assert first.then == second.then
    assert all((getattr(driver.cluster.columns, name) == column).all() for name, column in before.items())

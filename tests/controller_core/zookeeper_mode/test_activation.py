"""Taking over: whoever holds the cluster anew tells every broker everything, and mends what nobody mended."""

from dataclasses import replace

import pytest

from controller_core.model import events
from controller_core.model.changes import TopicDeletionObserved
from controller_core.model.ids import NO_LEADER
from tests.controller_core.decisions.driver import Driver, State, cluster_with, tp
from tests.controller_core.decisions.messages import LeaderAndIsr, UpdateMetadata
from tests.controller_core.decisions.written import DeposedError

THREE = [1, 2, 3]


@pytest.fixture
def driver() -> Driver:
    """Three brokers, two topics."""
    return cluster_with(THREE, {"orders": [[1, 2], [2, 3]], "alone": [[3]]})


def test_brokers_hear_who_lives_before_what_they_lead_and_follow(driver: Driver) -> None:
    """Protocol notes, Z32: UpdateMetadata with the live brokers comes before LeaderAndIsr, to every broker."""
    driver.take_over()

    for broker_id in THREE:
        kinds = [type(message) for to, message in driver.messages if broker_id in to]
        assert kinds == [UpdateMetadata, LeaderAndIsr]


def test_every_broker_is_told_all_partitions_and_those_that_it_has_replicas_of(driver: Driver) -> None:
    """KafkaController.onControllerFailover: sendUpdateMetadataRequest with all, replica states of the live ones."""
    driver.take_over()

    everything = {tp("orders-0"), tp("orders-1"), tp("alone-0")}
    assert everything == driver.told(UpdateMetadata, 1)[0].partitions.keys()
    assert driver.told(LeaderAndIsr, 3)[0].partitions.keys() == {tp("orders-1"), tp("alone-0")}


def test_nothing_is_written_where_nothing_is_wrong(driver: Driver) -> None:
    """A take-over by itself changes no leader and no epoch."""
    driver.take_over()

    assert [change for change in driver.changes if not isinstance(change, TopicDeletionObserved)] == []
    assert driver.state("orders-0") == State(1, 0, (1, 2))


def test_what_happened_while_nobody_held_the_cluster_is_mended(driver: Driver) -> None:
    """Protocol notes, Z14: a leader death stays unrepaired until a controller is there; it then repairs it at once."""
    driver.brokers[1].is_up = False
    driver.brokers[3].is_up = False
    driver.take_over()

    assert driver.state("orders-0") == State(2, 1, (2,))
    assert driver.state("orders-1") == State(2, 1, (2,))
    assert driver.state("alone-0") == State(NO_LEADER, 1, (3,))


def test_a_cluster_without_brokers_is_told_nothing(driver: Driver) -> None:
    """Nobody is there to hear it; partitions lose their leaders once brokers are known to be gone."""
    driver.kill(*THREE)
    driver.forget()
    driver.take_over()

    assert (driver.changes, driver.messages) == ([], [])


def test_states_carry_the_epoch_of_the_controller_that_wrote_them(driver: Driver) -> None:
    """C5: the controller epoch grows with each tenure."""
    driver.take_over()
    driver.kill(1)

    assert (
        driver.written.states[tp("orders-0")].controller_epoch,
        driver.written.states[tp("alone-0")].controller_epoch,
    ) == (2, 1)


@pytest.mark.shows("C5")
def test_a_deposed_controller_writes_nothing(driver: Driver) -> None:
    """C5, C6: the fence of every write."""
    driver.written.take_place(7)
    before = dict(driver.written.states)

    with pytest.raises(DeposedError):
        driver.kill(1)
    assert before == driver.written.states


def test_a_shutdown_that_the_earlier_controller_knew_of_is_asked_for_again(driver: Driver) -> None:
    """It is kept in memory alone: the broker asks until nothing remains, whoever the controller is."""
    driver.shut_down(1)
    driver.take_over()

    assert frozenset(driver.cluster.shutting_down) == frozenset()


@pytest.mark.parametrize(("leader", "isr", "expected"), [(2, (2, 3), (2, (2,))), (3, (3, 2), (2, (2,)))])
def test_a_state_that_names_strangers_counts_without_them(
    driver: Driver, leader: int, isr: tuple[int, ...], expected: tuple[int, tuple[int, ...]]
) -> None:
    """C1, C2: somebody wrote it by hand; whoever is no replica does not lead, and stays out of the next ISR."""
    state = driver.written.states[tp("orders-0")]
    driver.written.states[tp("orders-0")] = replace(state, leader=leader, isr=isr)
    driver.take_over()
    driver.bounce(1)

    assert expected[0] == driver.cluster.columns.leader[driver.row("orders-0")]
    assert expected[1] == driver.cluster.columns.isr_of(driver.row("orders-0"))


@pytest.mark.parametrize("after", [False, True])
@pytest.mark.parametrize("commits", range(3))
def test_a_controller_that_dies_in_the_middle_of_a_failover_leaves_no_partition_behind(
    driver: Driver, commits: int, after: bool
) -> None:
    """Before or after each commit: the next one finds what is written, and ends where this one would have ended."""
    driver.brokers[2].is_up = False
    driver.die_at(commits=commits, after=after)
    if commits < 2:
        driver.crashing(driver.read_brokers)
    driver.take_over()

    assert (driver.state("orders-0").leader, driver.state("orders-0").isr) == (1, (1,))
    assert (driver.state("orders-1").leader, driver.state("orders-1").isr) == (3, (3,))


def test_deciding_changes_nothing_and_the_same_event_gets_the_same_decision(driver: Driver) -> None:
    """`decide` is a pure function of the cluster and the event (ARCHITECTURE.md)."""
    from controller_core.zookeeper_mode.decide import decide

    event = events.BrokersRead((driver.brokers[1].registration,))
    before = {name: getattr(driver.cluster.columns, name).copy() for name in ("leader", "isr", "leader_epoch")}
    first, second = (decide(driver.cluster, event) for _ in range(2))

    assert [type(change) for change in first.changes] == [type(change) for change in second.changes]
    assert first.then == second.then
    assert all((getattr(driver.cluster.columns, name) == column).all() for name, column in before.items())

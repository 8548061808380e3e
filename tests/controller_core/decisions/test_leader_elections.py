"""ElectLeaders: preferred leaders (KIP-183) and unclean ones (KIP-460)."""

import pytest

from controller_core.decisions.leader_elections import election_candidates
from controller_core.model import NO_LEADER, events
from kafka_wire import ErrorCode, Failure
from tests.controller_core.decisions.driver import Driver, State, cluster_with, tp

THREE = [1, 2, 3]


def elect(driver: Driver, *partitions: str, unclean: bool = False) -> dict[str, ErrorCode | None]:
    """Request elections, of all partitions if none is given; return error codes by name."""
    requested = tuple(map(tp, partitions)) or None
    results = driver.submit(events.ElectLeaders(requested, unclean))
    return {f"{name.topic}-{name.partition}": failure and failure.code for name, failure in results.items()}


@pytest.fixture
def driver() -> Driver:
    """Three brokers; broker 1 was offline, so 2 leads orders-0 instead."""
    driver = cluster_with(THREE, {"orders": [[1, 2, 3], [2, 3, 1]]})
    driver.bounce(1)
    return driver


def test_the_preferred_leader_is_elected_if_it_is_in_sync(driver: Driver) -> None:
    """Election.leaderForPreferredReplica: the first replica of the assignment leads, the ISR stays."""
    driver.alter_isr("orders-0", [2, 3, 1])

    assert elect(driver, "orders-0") == {"orders-0": None}
    assert driver.state("orders-0") == State(1, 2, (2, 3, 1))


def test_a_preferred_leader_out_of_sync_is_not_available(driver: Driver) -> None:
    """C14: only live preferred leaders in the ISR."""
    assert elect(driver, "orders-0") == {"orders-0": ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE}
    assert driver.state("orders-0") == State(2, 1, (2, 3))


def test_a_preferred_leader_that_shuts_down_is_not_available(driver: Driver) -> None:
    """C8: it leads no partition afterwards."""
    driver.alter_isr("orders-0", [2, 3, 1])
    driver.cluster.shutting_down.add(1)

    assert elect(driver, "orders-0") == {"orders-0": ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE}


def test_a_preferred_leader_that_leads_needs_no_election(driver: Driver) -> None:
    """ELECTION_NOT_NEEDED, with Kafka's message."""
    results = driver.submit(events.ElectLeaders((tp("orders-1"),)))

    assert results == {
        tp("orders-1"): Failure(ErrorCode.ELECTION_NOT_NEEDED, "Leader election not needed for topic partition.")
    }


def test_a_request_for_all_partitions_omits_unneeded_elections(driver: Driver) -> None:
    """KIP-460: the response contains successful and failed elections."""
    driver.alter_isr("orders-0", [2, 3, 1])

    assert elect(driver) == {"orders-0": None}


def test_an_unclean_leader_is_elected_on_request() -> None:
    """C7, KIP-460: no ISR member is live; the ISR is only the leader."""
    driver = cluster_with(THREE, {"orders": [[1, 2, 3]]})
    driver.alter_isr("orders-0", [1])
    driver.kill(1)
    assert driver.state("orders-0").leader == NO_LEADER

    assert elect(driver, "orders-0", unclean=True) == {"orders-0": None}
    assert driver.state("orders-0") == State(2, 2, (2,))
    assert any("UNCLEAN" in line for line in driver.lines)


def test_an_unclean_election_is_not_held_while_the_leader_is_live(driver: Driver) -> None:
    """C7: ELECTION_NOT_NEEDED."""
    assert elect(driver, "orders-0", unclean=True) == {"orders-0": ErrorCode.ELECTION_NOT_NEEDED}


def test_without_a_live_replica_no_leader_can_be_elected() -> None:
    """ELIGIBLE_LEADERS_NOT_AVAILABLE."""
    driver = cluster_with(THREE, {"orders": [[1]]})
    driver.kill(1)

    assert elect(driver, "orders-0", unclean=True) == {"orders-0": ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE}
    assert elect(driver, "orders-0") == {"orders-0": ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE}


def test_an_unknown_partition_is_refused(driver: Driver) -> None:
    """UNKNOWN_TOPIC_OR_PARTITION, only for this partition."""
    assert elect(driver, "ghost-0", "orders-1") == {
        "ghost-0": ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        "orders-1": ErrorCode.ELECTION_NOT_NEEDED,
    }


def test_no_leader_is_elected_for_a_topic_that_is_being_deleted(driver: Driver) -> None:
    """KafkaController.processReplicaLeaderElection: INVALID_TOPIC_EXCEPTION, "The topic is being deleted"."""
    driver.holds_answers = True
    driver.delete("orders")

    assert elect(driver, "orders-0") == {"orders-0": ErrorCode.INVALID_TOPIC_EXCEPTION}


@pytest.mark.parametrize(
    ("unclean", "code"),
    [(False, ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE), (True, ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE)],
)
def test_no_leader_is_elected_for_a_partition_that_never_had_one(unclean: bool, code: ErrorCode) -> None:
    """It exists without a live replica: it gets its first leader when a replica's broker registers."""
    driver = cluster_with([1, 2])
    driver.kill(2)
    driver.find("late", [[2]])

    assert elect(driver, "late-0", unclean=unclean) == {"late-0": code}


@pytest.mark.shows("C4")
def test_a_partition_listed_twice_is_elected_once(driver: Driver) -> None:
    """C4: two writes of one row would not know each other's version."""
    driver.alter_isr("orders-0", [2, 3, 1])

    assert elect(driver, "orders-0", "orders-0") == {"orders-0": None}
    assert driver.state("orders-0") == State(1, 2, (2, 3, 1))


@pytest.fixture
def both() -> Driver:
    """Three brokers; broker 2 leads both partitions of orders instead of broker 1, which is in sync again."""
    driver = cluster_with(THREE, {"orders": [[1, 2, 3], [1, 2, 3]]})
    driver.bounce(1)
    for partition in ("orders-0", "orders-1"):
        driver.alter_isr(partition, [2, 3, 1])
    return driver


@pytest.mark.parametrize("requested", [("orders-0", "orders-1"), ()], ids=["by name", "all"])
def test_partitions_elected_by_an_earlier_attempt_are_reported_as_elected(
    both: Driver, requested: tuple[str, ...]
) -> None:
    """ELECTION_NOT_NEEDED would be wrong: the request's own first attempt elected them."""
    both.intrude(lambda: both.write_isr("orders-1", [2, 1]))

    assert elect(both, *requested) == {"orders-0": None, "orders-1": None}
    assert [State(1, 2, (2, 3, 1)), State(1, 2, (2, 1))] == [both.state("orders-0"), both.state("orders-1")]


def test_partitions_that_can_no_longer_be_elected_are_reported(both: Driver) -> None:
    """Independently of each other: the leader removed its follower from the ISR just before."""
    both.intrude(lambda: both.write_isr("orders-1", [2, 3]))

    assert elect(both, "orders-0", "orders-1") == {
        "orders-0": None,
        "orders-1": ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE,
    }


def test_elections_of_every_attempt_are_remembered(both: Driver) -> None:
    """The second attempt is refused as well, and knows the elections of the first one."""
    both.intrude(lambda: both.write_isr("orders-1", [2, 1]))
    both.intrude(lambda: both.write_isr("orders-1", [2, 1, 3]), commits=1)

    assert elect(both, "orders-0", "orders-1") == {"orders-0": None, "orders-1": None}
    assert both.state("orders-1") == State(1, 2, (2, 1, 3))


@pytest.mark.parametrize("requested", [("orders-0", "orders-1"), ()], ids=["by name", "all"])
def test_an_election_whose_write_result_was_lost_is_reported_as_elected(
    both: Driver, requested: tuple[str, ...]
) -> None:
    """ConnectionLoss after the write (protocol notes, Z103)."""
    both.lose_answer()

    assert elect(both, *requested) == {"orders-0": None, "orders-1": None}
    assert [both.state("orders-0").leader_epoch, both.state("orders-1").leader_epoch] == [2, 2]


def test_an_unclean_election_whose_write_result_was_lost_is_reported_as_elected() -> None:
    """The leader is live when the state is read again, and the caller gets the election's result."""
    driver = cluster_with(THREE, {"orders": [[1, 2, 3]]})
    driver.alter_isr("orders-0", [1])
    driver.kill(1)
    driver.lose_answer()

    assert elect(driver, "orders-0", unclean=True) == {"orders-0": None}
    assert driver.state("orders-0") == State(2, 2, (2,))


def test_a_second_request_does_not_know_the_elections_of_the_first(both: Driver) -> None:
    """A repeated request gets ELECTION_NOT_NEEDED."""
    assert elect(both, "orders-0") == {"orders-0": None}
    assert elect(both, "orders-0") == {"orders-0": ErrorCode.ELECTION_NOT_NEEDED}


def test_another_controllers_election_with_the_same_epoch_is_not_reported_as_elected(both: Driver) -> None:
    """A leader epoch does not identify the controller that elected."""
    row = both.row("orders-0")
    both.submit(events.ElectLeaders((tp("orders-0"),)))
    both.cluster.columns.controller_epoch[row] = both.cluster.controller_epoch + 1
    results = both.submit(events.ElectLeaders((tp("orders-0"),), elected={tp("orders-0"): 2}))

    assert results[tp("orders-0")].code == ErrorCode.ELECTION_NOT_NEEDED


@pytest.mark.parametrize("unclean", [False, True], ids=["preferred", "unclean"])
def test_candidates_are_all_partitions_that_need_an_election(*, unclean: bool) -> None:
    """KIP-460: a request for all partitions covers only the candidates, so none may be missed."""
    driver = cluster_with(THREE, {"orders": [[1, 2, 3], [2, 3, 1]], "alone": [[1], [2]], "returned": [[3, 2]]})
    driver.bounce(3)
    driver.kill(1)
    first = election_candidates(driver.cluster, -1, 1, unclean=unclean)
    candidates = [*first, *election_candidates(driver.cluster, first[-1], 10, unclean=unclean)]
    needed = driver.submit(events.ElectLeaders(None, unclean))

    assert needed
    assert set(needed) <= {driver.cluster.name_of(row) for row in candidates}
    assert tp("orders-1") not in {driver.cluster.name_of(row) for row in candidates}

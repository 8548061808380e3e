"""ElectLeaders: preferred leaders (KIP-183) and unclean ones (KIP-460)."""

import pytest

from controller_core.decisions.leader_elections import election_candidates
from controller_core.model import events
from controller_core.model.ids import NO_LEADER
from kafka_node.errors import Failure
from kafka_wire.errors import ErrorCode
from tests.controller_core.decisions.driver import Driver, State, cluster_with, tp

THREE = [1, 2, 3]


def elect(driver: Driver, *partitions: str, unclean: bool = False) -> dict[str, ErrorCode | None]:
    """Ask for elections, of all partitions if none is named; returns error codes by name."""
    asked = tuple(map(tp, partitions)) or None
    results = driver.submit(events.ElectLeaders(asked, unclean))
    return {f"{name.topic}-{name.partition}": failure and failure.code for name, failure in results.items()}


@pytest.fixture
def driver() -> Driver:
    """Three brokers; broker 1 was away, so that 2 leads orders-0 in its place."""
    driver = cluster_with(THREE, {"orders": [[1, 2, 3], [2, 3, 1]]})
    driver.bounce(1)
    return driver


def test_the_preferred_leader_takes_back_its_place_when_it_is_in_sync(driver: Driver) -> None:
    """Election.leaderForPreferredReplica: the first of the assignment leads, the ISR stays."""
    driver.alter_isr("orders-0", [2, 3, 1])

    assert elect(driver, "orders-0") == {"orders-0": None}
    assert driver.state("orders-0") == State(1, 2, (2, 3, 1))


def test_a_preferred_leader_out_of_sync_is_not_available(driver: Driver) -> None:
    """C14: only live, in-ISR preferred leaders."""
    assert elect(driver, "orders-0") == {"orders-0": ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE}
    assert driver.state("orders-0") == State(2, 1, (2, 3))


def test_a_preferred_leader_on_its_way_out_is_not_available(driver: Driver) -> None:
    """C8: it leads nothing afterwards."""
    driver.alter_isr("orders-0", [2, 3, 1])
    driver.cluster.shutting_down.add(1)

    assert elect(driver, "orders-0") == {"orders-0": ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE}


def test_a_preferred_leader_that_leads_needs_no_election(driver: Driver) -> None:
    """ELECTION_NOT_NEEDED, with Kafka's words."""
    results = driver.submit(events.ElectLeaders((tp("orders-1"),)))

    assert results == {
        tp("orders-1"): Failure(ErrorCode.ELECTION_NOT_NEEDED, "Leader election not needed for topic partition.")
    }


def test_asked_for_all_those_that_need_none_are_left_out(driver: Driver) -> None:
    """KIP-460: the answer to "all" holds what was done and what failed."""
    driver.alter_isr("orders-0", [2, 3, 1])

    assert elect(driver) == {"orders-0": None}


def test_an_unclean_leader_is_elected_for_a_caller_that_accepts_the_loss() -> None:
    """C7, KIP-460: nobody in the ISR lives; the ISR is the leader alone."""
    driver = cluster_with(THREE, {"orders": [[1, 2, 3]]})
    driver.alter_isr("orders-0", [1])
    driver.kill(1)
    assert driver.state("orders-0").leader == NO_LEADER

    assert elect(driver, "orders-0", unclean=True) == {"orders-0": None}
    assert driver.state("orders-0") == State(2, 2, (2,))
    assert any("UNCLEAN" in line for line in driver.lines)


def test_an_unclean_election_is_not_held_while_the_leader_lives(driver: Driver) -> None:
    """C7: there is nothing to mend."""
    assert elect(driver, "orders-0", unclean=True) == {"orders-0": ErrorCode.ELECTION_NOT_NEEDED}


def test_without_any_live_replica_nobody_can_be_elected() -> None:
    """ELIGIBLE_LEADERS_NOT_AVAILABLE."""
    driver = cluster_with(THREE, {"orders": [[1]]})
    driver.kill(1)

    assert elect(driver, "orders-0", unclean=True) == {"orders-0": ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE}
    assert elect(driver, "orders-0") == {"orders-0": ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE}


def test_an_unknown_partition_is_refused(driver: Driver) -> None:
    """UNKNOWN_TOPIC_OR_PARTITION, for this one alone."""
    assert elect(driver, "ghost-0", "orders-1") == {
        "ghost-0": ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        "orders-1": ErrorCode.ELECTION_NOT_NEEDED,
    }


def test_a_topic_that_is_being_deleted_elects_nobody(driver: Driver) -> None:
    """KafkaController.processReplicaLeaderElection: INVALID_TOPIC_EXCEPTION, "The topic is being deleted"."""
    driver.holds_answers = True
    driver.delete("orders")

    assert elect(driver, "orders-0") == {"orders-0": ErrorCode.INVALID_TOPIC_EXCEPTION}


@pytest.mark.parametrize(
    ("unclean", "code"),
    [(False, ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE), (True, ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE)],
)
def test_a_partition_that_never_had_a_leader_has_none_to_elect(unclean: bool, code: ErrorCode) -> None:
    """It exists, and none of its replicas lives: it gets its first leader when one comes."""
    driver = cluster_with([1, 2])
    driver.kill(2)
    driver.find("late", [[2]])

    assert elect(driver, "late-0", unclean=unclean) == {"late-0": code}


@pytest.mark.shows("C4")
def test_a_partition_asked_for_twice_is_elected_once(driver: Driver) -> None:
    """C4: two writes of one row would not know each other's version."""
    driver.alter_isr("orders-0", [2, 3, 1])

    assert elect(driver, "orders-0", "orders-0") == {"orders-0": None}
    assert driver.state("orders-0") == State(1, 2, (2, 3, 1))


@pytest.fixture
def both() -> Driver:
    """Three brokers; broker 2 leads both partitions of orders in the place of broker 1, which is in sync again."""
    driver = cluster_with(THREE, {"orders": [[1, 2, 3], [1, 2, 3]]})
    driver.bounce(1)
    for partition in ("orders-0", "orders-1"):
        driver.alter_isr(partition, [2, 3, 1])
    return driver


@pytest.mark.parametrize("asked", [("orders-0", "orders-1"), ()], ids=["by name", "all"])
def test_what_was_elected_before_another_was_refused_is_answered_as_elected(
    both: Driver, asked: tuple[str, ...]
) -> None:
    """The caller asked once: that our own first attempt did it is no reason to say that it was not needed."""
    both.intrude(lambda: both.write_isr("orders-1", [2, 1]))

    assert elect(both, *asked) == {"orders-0": None, "orders-1": None}
    assert [State(1, 2, (2, 3, 1)), State(1, 2, (2, 1))] == [both.state("orders-0"), both.state("orders-1")]


def test_what_was_refused_and_cannot_be_elected_any_more_is_answered_so(both: Driver) -> None:
    """Each partition on its own: the leader took its follower out of the ISR just before."""
    both.intrude(lambda: both.write_isr("orders-1", [2, 3]))

    assert elect(both, "orders-0", "orders-1") == {
        "orders-0": None,
        "orders-1": ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE,
    }


def test_what_was_refused_again_and_again_is_remembered_from_each_attempt(both: Driver) -> None:
    """The second attempt is refused as well, and knows what the first one elected."""
    both.intrude(lambda: both.write_isr("orders-1", [2, 1]))
    both.intrude(lambda: both.write_isr("orders-1", [2, 1, 3]), commits=1)

    assert elect(both, "orders-0", "orders-1") == {"orders-0": None, "orders-1": None}
    assert both.state("orders-1") == State(1, 2, (2, 1, 3))


@pytest.mark.parametrize("asked", [("orders-0", "orders-1"), ()], ids=["by name", "all"])
def test_an_election_whose_write_was_not_heard_of_is_answered_as_held(both: Driver, asked: tuple[str, ...]) -> None:
    """ConnectionLoss, and the write was done (protocol notes, Z103)."""
    both.lose_answer()

    assert elect(both, *asked) == {"orders-0": None, "orders-1": None}
    assert [both.state("orders-0").leader_epoch, both.state("orders-1").leader_epoch] == [2, 2]


def test_an_unclean_election_whose_write_was_not_heard_of_is_answered_as_held() -> None:
    """The leader lives when it is read again, and the caller hears that it was elected."""
    driver = cluster_with(THREE, {"orders": [[1, 2, 3]]})
    driver.alter_isr("orders-0", [1])
    driver.kill(1)
    driver.lose_answer()

    assert elect(driver, "orders-0", unclean=True) == {"orders-0": None}
    assert driver.state("orders-0") == State(2, 2, (2,))


def test_a_second_request_is_none_of_the_first_ones_attempts(both: Driver) -> None:
    """ELECTION_NOT_NEEDED is for whoever asks again."""
    assert elect(both, "orders-0") == {"orders-0": None}
    assert elect(both, "orders-0") == {"orders-0": ErrorCode.ELECTION_NOT_NEEDED}


def test_another_controllers_election_under_the_same_epoch_is_not_ours(both: Driver) -> None:
    """A leader epoch alone does not tell who elected."""
    row = both.row("orders-0")
    both.submit(events.ElectLeaders((tp("orders-0"),)))
    both.cluster.columns.controller_epoch[row] = both.cluster.controller_epoch + 1
    results = both.submit(events.ElectLeaders((tp("orders-0"),), elected={tp("orders-0"): 2}))

    assert results[tp("orders-0")].code == ErrorCode.ELECTION_NOT_NEEDED


@pytest.mark.parametrize("unclean", [False, True], ids=["preferred", "unclean"])
def test_candidates_are_all_partitions_that_need_an_election(*, unclean: bool) -> None:
    """KIP-460: a request for all partitions answers for these only, so none of them may be missed."""
    driver = cluster_with(THREE, {"orders": [[1, 2, 3], [2, 3, 1]], "alone": [[1], [2]], "returned": [[3, 2]]})
    driver.bounce(3)
    driver.kill(1)
    first = election_candidates(driver.cluster, -1, 1, unclean=unclean)
    candidates = [*first, *election_candidates(driver.cluster, first[-1], 10, unclean=unclean)]
    needed = driver.submit(events.ElectLeaders(None, unclean))

    assert needed
    assert set(needed) <= {driver.cluster.name_of(row) for row in candidates}
    assert tp("orders-1") not in {driver.cluster.name_of(row) for row in candidates}

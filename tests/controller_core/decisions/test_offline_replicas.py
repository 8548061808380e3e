"""Replicas in failed log directories count like those of dead brokers, while their broker lives (KIP-112).

Source: KafkaController.processLeaderAndIsrResponseReceived, ControllerContext.isReplicaOnline.
"""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from controller_core.model import events
from kafka_node.errors import Failure
from tests.controller_core.decisions.driver import Driver, State, cluster_with, tp
from tests.controller_core.decisions.messages import LeaderAndIsr, UpdateMetadata
from tests.controller_core.decisions.render import name

THREE = [1, 2, 3]
BROKERS = range(1, 6)
ASSIGNMENTS = st.lists(st.lists(st.sampled_from(BROKERS), min_size=1, max_size=4, unique=True), min_size=1, max_size=6)


def partitions_of(driver: Driver, broker_id: int) -> list[str]:
    """Partitions that a broker holds a replica of."""
    columns = driver.cluster.columns
    return [
        name(driver.cluster.name_of(row)) for row in columns.used().tolist() if broker_id in columns.replicas_of(row)
    ]


@settings(deadline=None)
@given(
    assignment=ASSIGNMENTS,
    shrunk=st.sets(st.sampled_from(BROKERS)),
    order=st.permutations(BROKERS),
    unclean=st.booleans(),
)
def test_whose_log_directories_all_failed_is_replaced_like_one_that_died(
    assignment: list[list[int]], shrunk: set[int], order: list[int], unclean: bool
) -> None:
    """Law: leaders, epochs and ISRs are the same, one broker after another, whatever is in sync."""
    topics = {f"t{number}": [replicas] for number, replicas in enumerate(assignment)}
    failing, dying = (cluster_with(BROKERS, topics, unclean=[*topics] * unclean) for _ in range(2))
    for driver in (failing, dying):
        for topic, (replicas,) in topics.items():
            driver.alter_isr(f"{topic}-0", [replicas[0], *(each for each in replicas[1:] if each not in shrunk)])
    for broker_id in order:
        failing.fail_dir(broker_id, *partitions_of(failing, broker_id))
        dying.kill(broker_id)

        assert dying.written.states == failing.written.states


def test_replicas_are_online_again_when_an_answer_has_no_error_for_them() -> None:
    """As Kafka has it: the last answer counts."""
    driver = cluster_with(THREE, {"orders": [[1, 2]], "logs": [[1]]})
    driver.fail_dir(1, "orders-0", "logs-0")
    assert [State(-1, 1, (1,)), State(2, 1, (2,))] == [driver.state("logs-0"), driver.state("orders-0")]

    driver.brokers[1].offline.clear()
    driver.submit(events.LeaderAndIsrAnswered(1, driver.brokers[1].epoch, (), (tp("orders-0"), tp("logs-0"))))

    assert driver.state("logs-0") == State(1, 2, (1,))
    assert driver.cluster.offline_replicas == {}
    assert (driver.alter_isr("orders-0", (2, 1)).leader, driver.state("orders-0").isr) == (2, (2, 1))


def test_another_life_of_a_broker_begins_with_whole_log_directories() -> None:
    """Only a restart repairs a directory; if it did not, the next answer says so."""
    driver = cluster_with(THREE, {"orders": [[1, 2]], "logs": [[1]]})
    driver.fail_dir(1, "orders-0", "logs-0")

    driver.bounce(1)

    assert driver.cluster.offline_replicas == {}
    assert driver.state("logs-0") == State(1, 2, (1,))


def test_what_an_earlier_life_answered_says_nothing_of_this_one() -> None:
    """KIP-380: an answer may be taken in after the broker registered anew."""
    driver = cluster_with(THREE, {"orders": [[1, 2]]})

    driver.submit(events.LeaderAndIsrAnswered(1, driver.brokers[1].epoch - 1, (tp("orders-0"),), ()))
    driver.submit(events.LeaderAndIsrAnswered(3, driver.brokers[3].epoch, (tp("orders-0"), tp("never-0")), ()))

    assert driver.state("orders-0") == State(1, 0, (1, 2))
    assert driver.cluster.offline_replicas == {}


def test_a_move_ends_with_a_leader_whose_log_directory_is_whole() -> None:
    """C8, C9: the target is in sync, and its first replica was lost meanwhile."""
    driver = cluster_with([1, 2, 3, 4], {"orders": [[1, 2]]})
    driver.reassign({"orders-0": [3, 4]})
    driver.fail_dir(3, "orders-0")

    assert isinstance(driver.alter_isr("orders-0", [1, 2, 3, 4]), Failure)
    driver.bounce(3)
    driver.alter_isr("orders-0", [1, 2, 3, 4])

    assert (driver.state("orders-0").leader, driver.replicas("orders-0")) == (3, (3, 4))


def test_a_topic_that_is_gone_leaves_no_marks() -> None:
    """Rows are reused: another partition must not take over what was said of this one."""
    driver = cluster_with(THREE, {"orders": [[1, 2]]})
    driver.fail_dir(1, "orders-0")
    driver.submit(events.TopicsRead((), ("orders",)))

    assert driver.cluster.offline_replicas == {}


def test_brokers_without_failed_directories_are_not_told_anything_of_a_notice() -> None:
    """The broker that told of it is asked, and nobody else."""
    driver = cluster_with(THREE, {"orders": [[1, 2], [2, 3]]})
    driver.fail_dir(2)

    (told,) = driver.told(LeaderAndIsr)
    assert driver.told(LeaderAndIsr, broker_id=2) == [told]
    assert {partition: state.leader_epoch for partition, state in told.partitions.items()} == {
        tp("orders-0"): 0,
        tp("orders-1"): 0,
    }


def test_everybody_is_told_of_an_offline_replica_though_no_leader_and_no_isr_changes() -> None:
    """C12: after a take-over it is out of both already (ReplicaStateMachine tells brokers of OfflineReplica all the same)."""
    driver = cluster_with(THREE, {"orders": [[1, 2]]})
    driver.fail_dir(1, "orders-0")
    driver.forget()
    written = driver.state("orders-0")

    driver.take_over()

    assert written == driver.state("orders-0")
    for broker in THREE:
        everything, offline = driver.told(UpdateMetadata, broker_id=broker)
        assert [set(told.partitions) for told in (everything, offline)] == [{tp("orders-0")}, {tp("orders-0")}]


@pytest.mark.shows("C14", "D6")
def test_leaders_are_not_brought_back_to_a_failed_log_directory() -> None:
    """C14: a partition that nobody can lead keeps its ISR, and its preferred replica is in it."""
    driver = cluster_with(THREE, {"logs": [[1]]})
    driver.fail_dir(1, "logs-0")

    driver.submit(events.BalanceLeaders(0))

    assert driver.state("logs-0") == State(-1, 1, (1,))

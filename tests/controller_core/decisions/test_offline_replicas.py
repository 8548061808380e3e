"""Replicas in failed log directories count like those of dead brokers while their broker is live (KIP-112).

Source: KafkaController.processLeaderAndIsrResponseReceived, ControllerContext.isReplicaOnline.
"""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from controller_core.model import events, zookeeper_events
from kafka_wire import Failure
from tests.controller_core.decisions.driver import Driver, State, cluster_with, tp
from tests.controller_core.decisions.messages import LeaderAndIsr, UpdateMetadata
from tests.controller_core.decisions.render import name

THREE = [1, 2, 3]
BROKERS = range(1, 6)
ASSIGNMENTS = st.lists(st.lists(st.sampled_from(BROKERS), min_size=1, max_size=4, unique=True), min_size=1, max_size=6)


def partitions_of(driver: Driver, broker_id: int) -> list[str]:
    """Return the partitions of which a broker has a replica."""
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
def test_a_broker_whose_log_directories_all_failed_is_replaced_like_a_dead_one(
    assignment: list[list[int]], shrunk: set[int], order: list[int], unclean: bool
) -> None:
    """Law: leaders, epochs and ISRs are the same, one broker after another, for any ISR."""
    topics = {f"t{number}": [replicas] for number, replicas in enumerate(assignment)}
    failing, dying = (cluster_with(BROKERS, topics, unclean=[*topics] * unclean) for _ in range(2))
    for driver in (failing, dying):
        for topic, (replicas,) in topics.items():
            driver.alter_isr(
                f"{topic}-0", [replicas[0], *(replica for replica in replicas[1:] if replica not in shrunk)]
            )
    for broker_id in order:
        failing.fail_dir(broker_id, *partitions_of(failing, broker_id))
        dying.kill(broker_id)

        assert dying.written.states == failing.written.states


def test_replicas_are_online_again_when_a_response_has_no_error_for_them() -> None:
    """As in Kafka, the last response is used."""
    driver = cluster_with(THREE, {"orders": [[1, 2]], "logs": [[1]]})
    driver.fail_dir(1, "orders-0", "logs-0")
    assert [State(-1, 1, (1,)), State(2, 1, (2,))] == [driver.state("logs-0"), driver.state("orders-0")]

    driver.brokers[1].offline.clear()
    driver.submit(zookeeper_events.LeaderAndIsrAnswered(1, driver.brokers[1].epoch, (), (tp("orders-0"), tp("logs-0"))))

    assert driver.state("logs-0") == State(1, 2, (1,))
    assert driver.cluster.offline_replicas == {}
    assert (driver.alter_isr("orders-0", (2, 1)).leader, driver.state("orders-0").isr) == (2, (2, 1))


def test_replicas_are_online_after_a_broker_restart() -> None:
    """Only a restart repairs a directory; otherwise the next response reports the error."""
    driver = cluster_with(THREE, {"orders": [[1, 2]], "logs": [[1]]})
    driver.fail_dir(1, "orders-0", "logs-0")

    driver.bounce(1)

    assert driver.cluster.offline_replicas == {}
    assert driver.state("logs-0") == State(1, 2, (1,))


def test_a_response_of_an_earlier_incarnation_is_ignored() -> None:
    """KIP-380: it may be processed after the broker registered again."""
    driver = cluster_with(THREE, {"orders": [[1, 2]]})

    driver.submit(zookeeper_events.LeaderAndIsrAnswered(1, driver.brokers[1].epoch - 1, (tp("orders-0"),), ()))
    driver.submit(
        zookeeper_events.LeaderAndIsrAnswered(3, driver.brokers[3].epoch, (tp("orders-0"), tp("never-0")), ())
    )

    assert driver.state("orders-0") == State(1, 0, (1, 2))
    assert driver.cluster.offline_replicas == {}


def test_a_move_ends_with_a_leader_that_is_online() -> None:
    """C8, C9: the target is in sync, and its first replica went offline."""
    driver = cluster_with([1, 2, 3, 4], {"orders": [[1, 2]]})
    driver.reassign({"orders-0": [3, 4]})
    driver.fail_dir(3, "orders-0")

    assert isinstance(driver.alter_isr("orders-0", [1, 2, 3, 4]), Failure)
    driver.bounce(3)
    driver.alter_isr("orders-0", [1, 2, 3, 4])

    assert (driver.state("orders-0").leader, driver.replicas("orders-0")) == (3, (3, 4))


def test_a_deleted_topic_leaves_no_offline_replicas() -> None:
    """Rows are reused: another partition must not inherit them."""
    driver = cluster_with(THREE, {"orders": [[1, 2]]})
    driver.fail_dir(1, "orders-0")
    driver.submit(zookeeper_events.TopicsRead((), ("orders",)))

    assert driver.cluster.offline_replicas == {}


def test_only_brokers_with_failed_directories_get_requests_after_a_notification() -> None:
    """Only the broker that left the notification is queried."""
    driver = cluster_with(THREE, {"orders": [[1, 2], [2, 3]]})
    driver.fail_dir(2)

    (sent,) = driver.sent(LeaderAndIsr)
    assert driver.sent(LeaderAndIsr, broker_id=2) == [sent]
    assert {partition: state.leader_epoch for partition, state in sent.partitions.items()} == {
        tp("orders-0"): 0,
        tp("orders-1"): 0,
    }


def test_offline_replicas_are_sent_to_all_brokers_without_a_change_of_leader_or_isr() -> None:
    """C12: after a takeover the replica is already out of both (ReplicaStateMachine sends OfflineReplica nevertheless)."""
    driver = cluster_with(THREE, {"orders": [[1, 2]]})
    driver.fail_dir(1, "orders-0")
    driver.forget()
    written = driver.state("orders-0")

    driver.take_over()

    assert written == driver.state("orders-0")
    for broker in THREE:
        everything, offline = driver.sent(UpdateMetadata, broker_id=broker)
        assert [set(sent.partitions) for sent in (everything, offline)] == [{tp("orders-0")}, {tp("orders-0")}]


@pytest.mark.shows("C14", "D6")
def test_no_preferred_leader_is_elected_in_a_failed_log_directory() -> None:
    """C14: a partition without a possible leader keeps its ISR, which contains its preferred replica."""
    driver = cluster_with(THREE, {"logs": [[1]]})
    driver.fail_dir(1, "logs-0")

    driver.submit(events.BalanceLeaders(0))

    assert driver.state("logs-0") == State(-1, 1, (1,))

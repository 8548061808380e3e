"""Automatic preferred leader election (C14): above the percentage, and only to live preferred replicas in the ISR.

Sources: KafkaController.checkAndTriggerAutoLeaderRebalance; protocol notes, Z65. Columns agree with a plain twin.
"""

from collections import defaultdict
from collections.abc import Collection
from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from controller_core.decisions.leader_elections import decide_balance_leaders
from controller_core.model import NO_LEADER, Broker, Cluster, Move, Origin, events
from controller_core.model.changes import PartitionStates, TopicAdded
from controller_core.model.columns import pad
from controller_core.model.zookeeper_changes import BrokersObserved, DeletionQueued, StatesObserved
from controller_core.zookeeper_mode.transitions import apply
from tests.controller_core.decisions.driver import Driver, State, cluster_with

THREE = [1, 2, 3]
TEN = [[1, 2, 3]] * 10
SETTLED = State(1, 0, (1, 2, 3))


def led_by_2(driver: Driver, *partitions: str) -> None:
    """Make broker 2 lead partitions instead of broker 1, which is in the ISR again."""
    for partition in partitions:
        row = driver.row(partition)
        driver.cluster.columns.leader[row] = 2


def ten(lacking: int) -> Driver:
    """Create ten partitions that prefer broker 1; broker 2 leads this number of them."""
    driver = cluster_with(THREE, {"orders": TEN})
    led_by_2(driver, *(f"orders-{partition}" for partition in range(lacking)))
    return driver


def leaders(driver: Driver) -> list[int]:
    """Return the leaders of orders by partition."""
    return [int(driver.cluster.columns.leader[row]) for row in driver.cluster.topics["orders"].rows]


@pytest.mark.shows("F22", "C14")
@pytest.mark.parametrize(
    ("lacking", "percentage", "is_balanced"),
    [(1, 10, False), (2, 10, True), (1, 9, True), (1, 0, True), (1, -1, True), (10, 100, False), (10, 99, True)],
)
def test_preferred_leaders_are_elected_above_the_percentage(lacking: int, percentage: int, is_balanced: bool) -> None:
    """C14: the ratio must exceed the percentage."""
    driver = ten(lacking)
    driver.submit(events.BalanceLeaders(percentage))

    assert leaders(driver) == [1] * 10 if is_balanced else [2] * lacking + [1] * (10 - lacking) == leaders(driver)


def test_the_default_percentage_is_10() -> None:
    """`leader.imbalance.per.broker.percentage`'s default."""
    assert events.BalanceLeaders().imbalance_percentage == 10


def test_the_ratio_is_of_the_partitions_that_prefer_the_broker() -> None:
    """Not of all partitions, and not of those of which the broker has a replica."""
    driver = cluster_with(THREE, {"orders": [[1, 2], *[[2, 1]] * 20]})
    led_by_2(driver, "orders-0")
    driver.submit(events.BalanceLeaders(99))

    assert driver.state("orders-0") == State(1, 1, (1, 2))


def test_a_preferred_leader_keeps_the_isr_with_a_higher_epoch() -> None:
    """C4; Election.leaderForPreferredReplica: the preferred replica leads, the ISR stays."""
    driver = ten(2)
    driver.submit(events.BalanceLeaders())

    assert [driver.state("orders-0"), driver.state("orders-1")] == [State(1, 1, (1, 2, 3))] * 2
    assert driver.state("orders-2") == SETTLED


def test_brokers_are_balanced_independently() -> None:
    """A broker within the percentage gets no leaders while another gets all its leaders."""
    driver = cluster_with(THREE, {"orders": [*TEN, [3, 2, 1]]})
    led_by_2(driver, "orders-0", "orders-10")
    driver.submit(events.BalanceLeaders())

    assert leaders(driver) == [2, *[1] * 9, 3]


@pytest.mark.shows("C14")
def test_only_live_preferred_replicas_in_the_isr_are_elected() -> None:
    """C14, C8: replicas that are offline, out of sync or shutting down wait for the next check."""
    driver = cluster_with(THREE, {"orders": [[1, 2, 3]]})
    driver.bounce(1)
    driver.submit(events.BalanceLeaders())
    assert driver.state("orders-0") == State(2, 1, (2, 3))
    driver.alter_isr("orders-0", [2, 3, 1])
    driver.cluster.shutting_down.add(1)
    driver.submit(events.BalanceLeaders())
    assert driver.state("orders-0") == State(2, 1, (2, 3, 1))
    driver.cluster.shutting_down.clear()
    driver.submit(events.BalanceLeaders())

    assert driver.state("orders-0") == State(1, 2, (2, 3, 1))


def test_a_moving_partition_is_not_elected() -> None:
    """The end of its move elects its leader."""
    driver = cluster_with(THREE, {"orders": [[1, 2], [1, 2]]})
    led_by_2(driver, "orders-0", "orders-1")
    driver.cluster.moves[driver.row("orders-0")] = Move((1, 2, 3), (3,), ())
    driver.submit(events.BalanceLeaders())

    assert leaders(driver) == [2, 1]


def test_a_topic_queued_for_deletion_is_not_elected_and_not_counted() -> None:
    """C10; Kafka filters such topics before it counts."""
    driver = cluster_with(THREE, {"orders": TEN, "old": [[1, 2, 3]] * 90})
    led_by_2(driver, "orders-0", "orders-1", "old-0")
    driver.holds_answers = True
    driver.delete("old")
    driver.submit(events.BalanceLeaders())

    assert leaders(driver) == [1] * 10
    assert driver.cluster.columns.leader[driver.row("old-0")] == 2


def test_a_balanced_cluster_is_not_changed() -> None:
    """A cluster without topics, or with all preferred leaders."""
    for driver in (cluster_with([]), cluster_with(THREE), cluster_with(THREE, {"orders": TEN})):
        driver.submit(events.BalanceLeaders(-1))

        assert driver.changes == []


def test_a_refused_write_is_read_and_decided_again() -> None:
    """C6: the leader removed its follower from the ISR just before, so the follower must not lead."""
    driver = cluster_with(THREE, {"orders": [[1, 2, 3], [1, 2, 3]]})
    driver.bounce(1)
    for partition in ("orders-0", "orders-1"):
        driver.alter_isr(partition, [2, 3, 1])
    driver.intrude(lambda: driver.write_isr("orders-0", [2, 3]))
    driver.submit(events.BalanceLeaders())

    assert [State(2, 1, (2, 3)), State(1, 2, (2, 3, 1))] == [driver.state("orders-0"), driver.state("orders-1")]


@dataclass(frozen=True)
class Partition:
    """One partition, as an object."""

    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    leader: int | None
    """NO_LEADER for none now, None for none ever."""
    is_moving: bool = False
    is_queued: bool = False
    """For deletion."""


def plain_balance(partitions: list[Partition], live: Collection[int], percentage: int) -> dict[int, int]:
    """Plain twin: Kafka's rule over objects. Returns the new leader by position."""
    preferring = defaultdict(list)
    for place, partition in enumerate(partitions):
        if not partition.is_queued:
            preferring[partition.replicas[0]].append(place)
    elected = {}
    for broker, places in preferring.items():
        lacking = [place for place in places if partitions[place].leader not in {broker, None}]
        if len(lacking) / len(places) > percentage / 100:
            for place in lacking:
                if broker in live and broker in partitions[place].isr and not partitions[place].is_moving:
                    elected[place] = broker
    return elected


@st.composite
def partitions_of(draw: st.DrawFn) -> Partition:
    """Generate partitions in any possible state."""
    replicas = draw(st.lists(st.integers(1, 4), min_size=1, max_size=3, unique=True))
    isr = draw(st.lists(st.sampled_from(replicas), min_size=1, unique=True))
    leader = draw(st.one_of(st.sampled_from(isr), st.sampled_from([NO_LEADER, None])))
    return Partition(tuple(replicas), tuple(isr), leader, draw(st.integers(0, 5)) == 0, draw(st.integers(0, 5)) == 0)


def cluster_of(partitions: list[Partition], brokers: Collection[int], leaving: Collection[int]) -> Cluster:
    """Build a cluster with these partitions, each in its own topic, so that each can be queued for deletion."""
    cluster = Cluster(1000, 1)
    apply(cluster, BrokersObserved(tuple(Broker(broker, 1, ()) for broker in sorted(brokers))))
    cluster.shutting_down = set(leaving) & set(brokers)
    for place, partition in enumerate(partitions):
        name = f"t{place}"
        ids = np.zeros(1, dtype=np.int32)
        apply(cluster, TopicAdded(name, None, ids, pad([partition.replicas]), Origin.OBSERVED))
        row = cluster.topics[name].rows
        if partition.leader is not None:
            leader = np.array([partition.leader], dtype=np.int32)
            is_recovering = np.zeros(1, dtype=np.bool_)
            apply(cluster, StatesObserved(row, leader, ids, pad([partition.isr]), ids, ids, is_recovering))
        if partition.is_moving:
            cluster.moves[int(row[0])] = Move(partition.replicas, (), ())
        if partition.is_queued:
            apply(cluster, DeletionQueued((name,), Origin.OBSERVED))
    return cluster


@given(
    st.lists(partitions_of(), max_size=12),
    st.frozensets(st.integers(1, 4)),
    st.frozensets(st.integers(1, 4), max_size=2),
    st.one_of(st.sampled_from([0, 10, 25, 33, 34, 50, 66, 100]), st.integers(-1, 101)),
)
def test_columns_agree_with_the_plain_twin(
    partitions: list[Partition], brokers: frozenset[int], leaving: frozenset[int], percentage: int
) -> None:
    """The fast code and its plain twin have the same results."""
    cluster = cluster_of(partitions, brokers, leaving)
    decided = decide_balance_leaders(cluster, events.BalanceLeaders(percentage))

    elected: dict[int, int] = {}
    for change in decided.changes:
        assert isinstance(change, PartitionStates)
        places = [int(cluster.name_of(row).topic.removeprefix("t")) for row in change.rows.tolist()]
        elected = dict(zip(places, change.leader.tolist(), strict=True))
        assert (pad([partitions[place].isr for place in places], change.isr.shape[1]) == change.isr).all()
        assert change.leader_epoch.tolist() == [1] * len(places)
    assert plain_balance(partitions, brokers - leaving, percentage) == elected

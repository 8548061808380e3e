"""What-if: leaders, offline partitions, min.insync.replicas, racks, copies and disks after brokers have left."""

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from controller_core.views.what_if import (
    Action,
    Rate,
    RateSource,
    Scenario,
    ScenarioError,
    Snapshot,
    WhatIfDocument,
    drain_brokers,
    lose_brokers,
    lose_rack,
    remove_brokers,
    what_if,
)
from controller_core.views.what_if.outage import outage_of
from move_planner import PlanRequest, plan_moves
from tests.controller_core.views.what_if_clusters import Given, cluster
from tests.twins.plain_what_if import PlainPartition, plain_outage

RACKS = {1: "a", 2: "b", 3: "c"}
SIX = {1: "a", 2: "b", 3: "c", 4: "a", 5: "b", 6: "c"}
RATE = Rate(100, RateSource.GIVEN)


def effects(snapshot: Snapshot, scenario: Scenario) -> WhatIfDocument:
    """The document at 100 bytes per second."""
    return what_if(snapshot, scenario, RATE)


def leaders(document: WhatIfDocument) -> dict[int, tuple[int, int]]:
    """Leaders of each broker before and after."""
    return {broker["id"]: (broker["leaders_before"], broker["leaders_after"]) for broker in document["brokers"]}


@st.composite
def snapshots(draw: st.DrawFn) -> tuple[list[Given], list[int], list[int]]:
    """Partitions with any replicas, ISR and leader, offline brokers, and brokers that leave."""
    brokers = [3, 5, 8, 13, 21]
    offline = draw(st.lists(st.sampled_from(brokers), max_size=2, unique=True))
    partitions = []
    for _ in range(draw(st.integers(1, 20))):
        replicas = draw(st.lists(st.sampled_from(brokers), min_size=1, max_size=4, unique=True))
        isr = draw(st.lists(st.sampled_from(replicas), max_size=len(replicas), unique=True))
        leader = draw(st.sampled_from([-1, *(broker for broker in isr if broker not in offline)]))
        partitions.append(Given(replicas, isr, leader, draw(st.integers(1, 3))))
    return partitions, offline, draw(st.lists(st.sampled_from(brokers), min_size=1, unique=True))


@given(snapshots(), st.booleans())
def test_an_outage_is_that_of_each_partition_elected_by_itself(
    drawn: tuple[list[Given], list[int], list[int]], drain: bool
) -> None:
    """The columns agree with the plain twin, which uses the selectors of one partition (C1, C7, C8)."""
    partitions, offline, gone = drawn
    snapshot = cluster(partitions, dict.fromkeys([3, 5, 8, 13, 21]), offline=offline)
    scenario = drain_brokers(snapshot, "n", gone) if drain else lose_brokers(snapshot, gone)
    live = {broker.id for broker in snapshot.brokers if broker.live}

    outage = outage_of(snapshot, scenario, snapshot.columns.replicas)

    ids = np.array([broker.id for broker in snapshot.brokers] + [-1])
    for row, item in enumerate(partitions):
        isr = [broker for broker in item.isr or () if broker in live]
        twin = plain_outage(
            PlainPartition(item.replicas, isr, item.leader or -1, item.min_isr), live, gone, drain=drain
        )
        assert int(ids[outage.leader[row]]) == twin.leader
        assert bool(outage.under_min_isr[row]) == twin.under_min_isr
        assert bool(outage.needs_unclean[row]) == twin.needs_unclean
        assert bool(outage.no_replica_left[row]) == twin.no_replica_left


@pytest.mark.shows("E18")
def test_a_lost_rack_moves_its_leaders_and_its_partitions_fall_under_min_isr() -> None:
    """min.insync.replicas 2: with RF 2 one replica in sync is too few, with RF 3 two are enough."""
    snapshot = cluster([Given([2, 1], min_isr=2), Given([2, 3, 1], min_isr=2), Given([1, 3], min_isr=2)], RACKS)

    document = effects(snapshot, lose_rack(snapshot, "b"))

    assert document["scenario"]["description"] == "loss of rack b, broker 2"
    assert leaders(document) == {1: (1, 2), 2: (2, 0), 3: (0, 1)}
    assert document["leaders_moved"] == 2
    assert document["under_min_isr"]["new"] == {"in_all": 1, "listed": ["a-0"]}
    assert document["offline"]["new"] == {"in_all": 0, "listed": []}


def test_partitions_that_are_under_min_isr_or_offline_before_are_listed_apart() -> None:
    """Partitions that the scenario adds are `new`, the others are `before`."""
    partitions = [
        Given([1, 3], isr=[1], min_isr=2),
        Given([1, 3], isr=[], leader=-1),
        Given([3, 1], min_isr=2),
        Given([3]),
    ]
    snapshot = cluster(partitions, {1: None, 3: None})

    document = effects(snapshot, lose_brokers(snapshot, [3]))

    assert document["under_min_isr"]["before"]["listed"] == ["a-0"]
    assert document["under_min_isr"]["new"]["listed"] == ["a-2"]
    assert document["offline"]["before"]["listed"] == ["a-1"]
    assert document["offline"]["new"]["listed"] == ["a-3"]


def test_an_offline_partition_needs_an_unclean_election_or_has_no_replica_left() -> None:
    """A single replica is lost with its broker; a live replica out of sync could lead with loss of records."""
    snapshot = cluster([Given([1]), Given([1, 2], isr=[1]), Given([1, 2])], {1: None, 2: None})

    document = effects(snapshot, lose_brokers(snapshot, [1]))

    assert document["offline"]["new"]["listed"] == ["a-0", "a-1"]
    assert document["no_replica_left"]["listed"] == ["a-0"]
    assert document["needs_unclean"]["listed"] == ["a-1"]
    repair = document["repair"]
    assert repair["left"]["listed"] == ["a-0", "a-1", "a-2"]


def test_lost_replicas_are_copied_to_the_brokers_that_remain_in_the_time_of_the_busiest_one() -> None:
    """Two replicas of 100 bytes go to the only broker that has neither: 200 bytes at 100 bytes per second."""
    snapshot = cluster([Given([1, 2]), Given([2, 1])], RACKS, free_bytes={3: 150, 1: 500})

    document = effects(snapshot, lose_brokers(snapshot, [2]))

    repair = document["repair"]
    assert (repair["bytes"], repair["replicas"], repair["left"]["in_all"]) == (200, 2, 0)
    assert repair["hours"] == pytest.approx(200 / 100 / 3600)
    assert (repair["rate_bytes_per_second"], repair["rate_source"]) == (100, "given")
    assert document["over_capacity"] == [3]
    assert [broker["over_capacity"] for broker in document["brokers"]] == [False, None, True]
    assert [broker["free_bytes_after"] for broker in document["brokers"]] == [500, None, -50]


def test_racks_that_lose_their_spread_are_counted_before_and_after_the_repair() -> None:
    """With two racks left two of three replicas share one; a lost rack has no brokers."""
    snapshot = cluster([Given([1, 2, 3]), Given([4, 5, 6]), Given([1, 5])], SIX)

    document = effects(snapshot, lose_rack(snapshot, "b"))

    spread = document["spread"]
    assert spread is not None
    assert [(rack["rack"], rack["brokers_before"], rack["brokers_after"]) for rack in spread["racks"]] == [
        ("a", 2, 2),
        ("b", 2, 0),
        ("c", 2, 2),
    ]
    assert spread["fewer_racks"]["listed"] == ["a-0", "a-1", "a-2"]
    assert spread["fewer_racks_after_repair"]["listed"] == ["a-0", "a-1"]


@pytest.mark.shows("E18")
def test_a_removal_has_the_plan_of_a_reassignment_and_takes_nothing_offline() -> None:
    """The copies are those of `goal.removeBrokers`; the leaders of removed brokers move to replicas of the plan."""
    partitions = [Given([broker, broker % 6 + 1, (broker + 1) % 6 + 1], min_isr=2, size=broker * 10) for broker in SIX]
    snapshot = cluster(partitions, SIX)
    plan = plan_moves(
        PlanRequest(
            replicas=np.array([item.replicas for item in partitions], dtype=np.int32),
            brokers=SIX,
            loads=np.array([item.size for item in partitions], dtype=np.int64),
            drained=frozenset({4, 5}),
            level=False,
            racks=False,
        )
    )

    document = effects(snapshot, remove_brokers(snapshot, [4, 5]))

    repair = document["repair"]
    assert (repair["bytes"], repair["replicas"]) == (plan.copied_bytes, plan.copied_replicas)
    assert [broker["replicas_after"] for broker in document["brokers"] if broker["state"] == "removed"] == [0, 0]
    assert sum(after for _, after in leaders(document).values()) == 6
    assert leaders(document)[4] == (1, 0)
    assert document["offline"]["new"]["in_all"] + document["under_min_isr"]["new"]["in_all"] == 0


def test_a_removal_without_enough_brokers_leaves_replicas_where_they_are() -> None:
    """Three replicas need three brokers."""
    snapshot = cluster([Given([1, 2, 3])], RACKS)

    document = effects(snapshot, remove_brokers(snapshot, [3]))

    repair = document["repair"]
    assert repair["left"]["listed"] == ["a-0"]
    assert repair["bytes"] == 0


def test_a_drained_broker_that_returns_with_an_empty_disk_copies_all_of_its_replicas() -> None:
    """No other broker takes a replica; the leaders move before the shutdown."""
    snapshot = cluster([Given([1, 2]), Given([2, 3]), Given([3, 1])], RACKS)

    document = effects(snapshot, drain_brokers(snapshot, "node-1", [1]))

    assert document["scenario"]["description"] == "drain of node node-1, broker 1"
    assert leaders(document) == {1: (1, 0), 2: (1, 2), 3: (1, 1)}
    assert [broker["replicas_after"] for broker in document["brokers"]] == [2, 2, 2]
    repair = document["repair"]
    assert repair["bytes"] == 200
    assert document["spread"] is not None
    assert document["spread"]["fewer_racks_after_repair"]["in_all"] == 0


def test_brokers_without_a_rack_make_the_spread_unknown() -> None:
    """The planner ignores racks, too, when one broker has none."""
    some = cluster([Given([1, 2])], {1: "a", 2: None})
    none = cluster([Given([1, 2])], {1: None, 2: None})

    found = [effects(snapshot, lose_brokers(snapshot, [1])) for snapshot in (some, none)]

    assert [document["spread"] for document in found] == [None, None]
    assert "racks are ignored: brokers 2 have none (broker.rack)" in found[0]["notes"]
    assert "racks are unknown: no broker has one (broker.rack)" in found[1]["notes"]


def test_without_sizes_and_capacities_bytes_hours_and_disks_are_unknown() -> None:
    """DescribeLogDirs may be denied, and brokers before Kafka 3.3 report no capacity (KIP-827)."""
    snapshot = cluster([Given([1, 2])], RACKS, sizes=False)

    document = effects(snapshot, lose_brokers(snapshot, [2]))

    repair = document["repair"]
    assert (repair["bytes"], repair["hours"], repair["replicas"]) == (None, None, 1)
    assert document["over_capacity"] is None
    assert [broker["bytes_after"] for broker in document["brokers"]] == [None, None, None]
    assert "the sizes of logs are unknown: bytes, hours and disks over capacity are unknown" in document["notes"]


def test_a_broker_that_is_offline_already_is_not_repaired_and_receives_nothing() -> None:
    """Only the scenario's own copies count."""
    snapshot = cluster([Given([1, 4]), Given([1, 2])], {1: None, 2: None, 3: None}, offline=[4])

    document = effects(snapshot, lose_brokers(snapshot, [2]))

    assert [broker["state"] for broker in document["brokers"]] == ["stays", "lost", "stays", "offline"]
    repair = document["repair"]
    assert (repair["replicas"], repair["bytes"]) == (1, 100)
    assert document["brokers"][3]["replicas_after"] == 1
    assert "brokers 4 are offline already: their replicas are not copied" in document["notes"]


def test_a_partition_that_is_being_reassigned_is_repaired_at_its_target() -> None:
    """While it moves it has the replicas of before and after; only those that remain are copied again."""
    snapshot = cluster([Given([2, 3, 1], isr=[1, 3], leader=1, target=[2, 3])], {1: None, 2: None, 3: None, 4: None})

    document = effects(snapshot, lose_brokers(snapshot, [1]))

    assert document["cluster"]["reassigning"] == 1
    assert leaders(document)[3] == (0, 1)
    repair = document["repair"]
    assert repair["bytes"] == 0


@pytest.mark.parametrize("racks", [{}, RACKS])
def test_a_cluster_without_partitions_has_no_effects(racks: dict[int, str | None]) -> None:
    """Nothing to elect, nothing to copy."""
    snapshot = cluster([], racks)

    document = effects(snapshot, Scenario(Action.LOSE, (), "loss of no broker"))

    assert document["cluster"]["partitions"] == 0
    assert document["leaders_moved"] == 0
    repair = document["repair"]
    assert (repair["bytes"], repair["hours"]) == (0, 0)


def test_the_loss_of_all_brokers_takes_everything_offline() -> None:
    """No broker remains that could copy."""
    snapshot = cluster([Given([1, 2, 3])], RACKS)

    document = effects(snapshot, lose_brokers(snapshot, [1, 2, 3]))

    assert document["no_replica_left"]["listed"] == ["a-0"]
    assert [rack["brokers_after"] for rack in (document["spread"] or {"racks": []})["racks"]] == [0, 0, 0]


def test_an_unknown_broker_or_rack_is_refused_with_the_known_ones() -> None:
    """The message is what the user needs to correct the command."""
    snapshot = cluster([Given([1, 9])], RACKS)
    without = cluster([Given([1])], {1: None})

    with pytest.raises(ScenarioError) as broker:
        lose_brokers(snapshot, [3, 7])
    with pytest.raises(ScenarioError) as rack:
        lose_rack(snapshot, "z")
    with pytest.raises(ScenarioError) as no_racks:
        lose_rack(without, "z")

    assert str(broker.value) == "The cluster has no broker 7. Known brokers: 1, 2, 3, 9."
    assert str(rack.value) == "No broker is in rack z. Known racks: a, b, c."
    assert str(no_racks.value) == "No broker is in rack z. No broker has a rack (broker.rack)."


def test_listings_have_the_full_number_and_the_document_is_json() -> None:
    """A hundred names at most."""
    snapshot = cluster([Given([1])] * 150, RACKS)

    document = json.loads(json.dumps(effects(snapshot, lose_brokers(snapshot, [1]))))

    assert document["offline"]["new"]["in_all"] == 150
    assert len(document["offline"]["new"]["listed"]) == 100
    assert document["scenario"]["action"] == "lose"

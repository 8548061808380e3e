"""Proposals: planning from measured loads, partitions that are not moved, and the Kubernetes objects."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from balance_analytics.moves.manifests import manifests
from balance_analytics.moves.partition_loads import NEEDED, LoadsError, loads_of
from balance_analytics.moves.planner_request import RESOURCES, PlannerSettings
from balance_analytics.moves.proposal import Proposal, propose
from balance_analytics.moves.proposed_moves import proposed_moves
from controller_core.model.columns import unpad
from kafka_operator.decide.plans.plan_document import digest_of, read_config_maps
from kafka_operator.decide.plans.plan_packing import INLINE_PARTITIONS
from kafka_operator.resources.reassignment import read_reassignment
from kafka_operator.resources.reassignment_terms import Approval
from tests.balance_analytics.arrow_loads import loads_table
from tests.twins.partition_loads import rows_in_order

BROKERS = range(1, 5)
SETTINGS = PlannerSettings(racks=dict.fromkeys(BROKERS))


def columns(partitions: int = 60, **other: list[Any]) -> dict[str, list[Any]]:
    """Loads of partitions that are all on brokers 1 and 2, with leader 1."""
    rows = range(partitions)
    return {
        "topic": [f"topic-{row // 20}" for row in rows],
        "partition": [row % 20 for row in rows],
        "leader": [1] * partitions,
        "replicas": [[1, 2] for _ in rows],
        "bytes_in_p95": [100.0 + row % 7 for row in rows],
        "bytes_out_mean": [50.0 for _ in rows],
        "size_bytes": [10_000 + 10 * (row % 11) for row in rows],
    } | other


def proposal(partitions: int = 60, settings: PlannerSettings = SETTINGS, **other: list[Any]) -> Proposal:
    """A proposal for the loads of `columns`."""
    return propose(loads_of(loads_table(columns(partitions, **other))), settings)


@pytest.mark.shows("F55")
def test_every_resource_is_balanced_and_every_broker_has_figures() -> None:
    """Half the bytes must be copied, as two brokers of four are empty."""
    found = proposal()

    assert found.resources == RESOURCES
    assert tuple(broker.broker for broker in found.brokers) == tuple(BROKERS)
    assert [round(skew.max_over_mean_before, 1) for skew in found.skew if skew.resource == "disk"] == [2.0]
    assert all(skew.max_over_mean_after <= 1.07 for skew in found.skew)
    assert found.lower_bound_bytes <= found.copied_bytes <= 1.2 * found.lower_bound_bytes
    assert found.figures()["brokers"][0]["disk"]["before"] == sum(columns()["size_bytes"])


def test_only_leaders_move_if_that_suffices() -> None:
    """If replicas are evenly distributed, no data is copied."""
    replicas = [[1 + (row + place) % 4 for place in range(4)] for row in range(60)]
    found = proposal(replicas=[[1, *sorted(set(row) - {1})] for row in replicas])

    assert found.copied_bytes == 0
    assert len(found.moves) == found.leaders_only > 0


def test_partitions_of_unknown_load_and_of_excluded_topics_are_not_moved() -> None:
    """A partition with unknown size or rate is counted in `kept_unknown`."""
    sizes: list[Any] = columns()["size_bytes"]
    sizes[3] = None
    settings = replace(SETTINGS, excluded_topics=frozenset({"topic-1"}))
    found = proposal(settings=settings, size_bytes=sizes)

    assert found.kept_unknown == 1
    moved = {str(move.partition) for move in found.moves}
    assert "topic-0-3" not in moved
    assert not any(name.startswith("topic-1-") for name in moved)


def test_offline_brokers_keep_their_replicas() -> None:
    """As in a goal's plan: data is not copied to other brokers because a broker restarts."""
    found = proposal(settings=replace(SETTINGS, offline=frozenset({2})))

    for before, after in zip(found.base, found.moves, strict=True):
        assert (2 in before.replicas) == (2 in after.replicas)


@pytest.mark.shows("E11")
def test_a_proposal_needs_approval_unless_the_user_disabled_it() -> None:
    """The Reassignment has `approval: Required`, or `Automatic` if the user has configured that."""
    waiting = manifests(proposal(), name="b", namespace="n", cluster="main")[-1]
    approved = manifests(proposal(), name="b", namespace="n", cluster="main", approved=True)[-1]

    assert waiting["spec"]["approval"] == "Required"
    assert "approvedDigest" not in waiting["spec"]
    assert approved["spec"]["approval"] == "Automatic"


def test_a_small_plan_is_in_the_reassignment_and_is_read_by_the_operator() -> None:
    """Its figures are in a ConfigMap."""
    found = proposal()
    figures, reassignment = manifests(found, name="b", namespace="n", cluster="main")

    read = read_reassignment(
        reassignment
        | {
            "metadata": reassignment["metadata"]
            | {"uid": "u", "resourceVersion": "1", "creationTimestamp": "2026-01-01T00:00:00Z"}
        }
    )
    assert read.plan == found.moves
    assert read.approval is Approval.REQUIRED
    assert json.loads(figures["data"]["figures.json"])["bytesToMove"] == found.copied_bytes
    assert reassignment["metadata"]["annotations"]["steward.dev/figures"] == figures["metadata"]["name"]


def test_a_large_plan_is_in_config_maps_under_its_digest() -> None:
    """docs/reassignments.md: spec.planFrom contains the names of the ConfigMaps and the digest of their contents."""
    found = proposal(partitions=3 * INLINE_PARTITIONS)
    *parts, _, reassignment = manifests(found, name="b", namespace=None, cluster="main", cluster_id="c")
    spec = reassignment["spec"]

    assert "plan" not in spec
    assert [part["metadata"]["name"] for part in parts] == spec["planFrom"]["configMaps"]
    assert read_config_maps(parts).plan == found.moves
    assert spec["planFrom"]["digest"] == digest_of(found.moves, cluster_id="c")


def test_the_same_loads_give_the_same_manifests_in_any_order_of_rows() -> None:
    """The order of rows in Parquet files is undefined."""
    reversed_rows = {name: column[::-1] for name, column in columns().items()}
    first = manifests(proposal(), name="b", namespace="n", cluster="main")

    assert first == manifests(
        propose(loads_of(loads_table(reversed_rows)), SETTINGS), name="b", namespace="n", cluster="main"
    )
    assert first == yaml.safe_load(yaml.safe_dump(first))


def test_a_balanced_cluster_has_no_manifests() -> None:
    """No moves are proposed."""
    replicas = [[1 + row % 4, 1 + (row + 1) % 4] for row in range(80)]
    even: list[Any] = [100.0] * 80
    found = proposal(80, replicas=replicas, bytes_in_p95=even, bytes_out_mean=even, size_bytes=[10_000] * 80)

    assert manifests(found, name="b", namespace="n", cluster="main") == []


@pytest.mark.parametrize(
    ("other", "message"),
    [
        ({"partition": [0] * 60}, "occurs twice"),
        ({"leader": [None] * 60}, "no value in leader"),
        ({"topic": [None] * 60, "replicas": [None] * 60}, "no value in topic, replicas"),
    ],
)
def test_invalid_loads_are_rejected(other: dict[str, list[Any]], message: str) -> None:
    """LoadsError has the reason."""
    with pytest.raises(LoadsError, match=message):
        loads_of(loads_table(columns(**other)))


def test_a_missing_column_is_named_in_the_error() -> None:
    """For example if another table is used than loads/partition."""
    with pytest.raises(LoadsError, match="size_bytes"):
        loads_of(loads_table(columns()).drop_columns("size_bytes"))


RATES = st.none() | st.floats(-1, 1e15)
ROWS = st.lists(
    st.tuples(
        st.sampled_from(["a", "b", "B", "a.b", "\u00e9", "\U0001f600", "\uffff"]),
        st.integers(0, 40),
        st.integers(-1, 9),
        st.lists(st.integers(0, 9), max_size=4),
        RATES,
        RATES,
        st.none() | st.integers(0, 2**50),
    ),
    max_size=30,
    unique_by=lambda row: row[:2],
)


@given(ROWS)
def test_rows_are_ordered_by_topic_and_partition_and_keep_their_loads(rows: list[tuple[Any, ...]]) -> None:
    """Compared with a simple implementation, row by row."""
    found = loads_of(loads_table({name: [row[at] for row in rows] for at, name in enumerate(NEEDED)}))

    out = found.bytes_out if found.bytes_out is not None else np.zeros(len(found), np.int64)
    numbers = (found.bytes_in, out, found.size_bytes, found.known)
    assert [
        (
            found.topic_of(row),
            found.partition[row],
            found.leader[row],
            unpad(found.replicas[row]),
            *(n[row] for n in numbers),
        )
        for row in range(len(found))
    ] == rows_in_order(rows)
    assert (found.bytes_out is None) == all(row[5] is None for row in rows)


def test_capacities_of_an_unknown_resource_are_rejected() -> None:
    """Otherwise a misspelt resource would have no limit."""
    with pytest.raises(LoadsError, match="disks"):
        proposal(settings=replace(SETTINGS, capacities={"disks": {1: 5}}))


def test_the_report_has_the_figures_of_the_proposal() -> None:
    """Converted to the report's values."""
    found = proposal()
    shown = proposed_moves(found, "b")

    assert shown.copied_bytes == found.copied_bytes
    disk = next(resource for resource in shown.resources if resource.resource == "disk")
    assert disk.brokers == (*BROKERS,)
    assert np.isclose(np.mean(disk.before), disk.mean, rtol=0.01)

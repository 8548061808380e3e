"""Which brokers are cordoned, and what is recorded of it (KIP-1066, ADR 43)."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from kafka_operator.decide.clusters.cordon import (
    NONE_LEAVING,
    AlterCordons,
    CordonView,
    Leaving,
    ReadCordons,
    decide_cordons,
    missing_cordons,
    wanted_cordons,
)
from kafka_operator.decide.kafka.observed import Failure
from kafka_operator.decide.reassignments.reassignment_steps import AlterBroker
from kafka_operator.resources.cluster import Cluster, ClusterStatus, PodGroup, Versions
from kafka_operator.resources.cordon import Cordon
from kafka_operator.resources.reassignment import Reassignment
from reconciler.decide.conditions import condition_of
from reconciler.decide.steps import Done, Wait, WriteStatus
from tests.kafka_operator.makers import NOW, cluster, raw_plan, reassignment

ALIVE = (1, 2, 3, 4)
SETTING = "cordoned.log.dirs"
RESTARTING = Failure(8, "BROKER_NOT_AVAILABLE", "Broker 4 does not respond.")
NOT_ALLOWED = Failure(31, "CLUSTER_AUTHORIZATION_FAILED", "Cluster authorization failed.")


def kafka_4_3(*cordons: Cordon, **fields: Any) -> Cluster:
    """A Cluster of Kafka 4.3 with four live brokers and these records."""
    status = ClusterStatus(versions=Versions(metadata_version="4.3-IV0"), broker_ids=ALIVE, cordons=cordons)
    return replace(cluster(), status=status, **fields)


def removal(state: str, *, goal: dict[str, Any] | None = None, **spec: Any) -> Reassignment:
    """A Reassignment that removes broker 4, with a recorded plan."""
    plan = raw_plan(p0=[1, 2])
    status = {"state": state, "plan": plan, "base": raw_plan(p0=[1, 4])}
    return reassignment(goal=goal or {"removeBrokers": [4]}, status=status, **spec)


def wanted(*items: Reassignment, known: Cluster | None = None, leaving: Leaving = NONE_LEAVING) -> set[int]:
    """The brokers that are to be cordoned."""
    return set(wanted_cordons(known or kafka_4_3(), items, leaving))


def view(seen: dict[int, str | Failure | None] | None = None, *brokers: int, **fields: Any) -> CordonView:
    """A view in which these brokers are to be cordoned."""
    return CordonView(NOW, frozenset(ALIVE), dict.fromkeys(brokers, "it is removed"), seen or {}, **fields)


@pytest.mark.parametrize("state", ["Pending", "Running", "Completed"])
def test_a_removal_cordons_its_brokers_from_its_approval_until_it_is_deleted(state: str) -> None:
    """A proposal has no effect on Kafka."""
    assert wanted(removal(state)) == {4}
    assert wanted(removal("Proposed")) == set()


@pytest.mark.parametrize("state", ["Failed", "Cancelled", "RolledBack"])
def test_any_other_end_ends_the_cordon(state: str) -> None:
    """So does a request for one of them."""
    assert wanted(removal(state)) == set()
    assert wanted(removal("Running", action="Cancel"), removal("Completed", action="Rollback")) == set()


def test_a_goal_for_some_topics_cordons_nothing() -> None:
    """The broker keeps the replicas of the others."""
    assert wanted(removal("Running", goal={"removeBrokers": [4], "topics": ["orders"]})) == set()


def test_a_completed_removal_ends_its_cordon_where_the_broker_stays() -> None:
    """Its pod is declared, or another Reassignment moves replicas to it."""
    declared = kafka_4_3(brokers=PodGroup("main-broker", 1, 4))
    adding = removal("Running", goal={"addBrokers": [4]}, uid="uid-2")

    assert wanted(removal("Completed"), known=declared) == set()
    assert wanted(removal("Running"), known=declared) == {4}
    assert wanted(removal("Completed"), adding) == set()


def test_pods_that_go_are_cordoned_while_the_other_brokers_can_hold_every_topic() -> None:
    """Kafka refuses a topic with more replicas than brokers without a cordon."""
    assert wanted(leaving=Leaving(scaled_in=frozenset({4}), draining=frozenset({2}), replication_factor=2)) == {2, 4}
    assert wanted(leaving=Leaving(draining=frozenset({2}), replication_factor=4)) == set()


def test_a_cluster_without_the_feature_has_no_cordons() -> None:
    """metadata.version 4.3-IV0 is the first with it."""
    older = replace(kafka_4_3(), status=ClusterStatus(versions=Versions(metadata_version="4.2-IV1"), broker_ids=ALIVE))

    assert wanted(removal("Running"), known=older) == set()
    assert missing_cordons(removal("Running"), older) == frozenset()
    unknown = replace(kafka_4_3(Cordon(4)), status=replace(kafka_4_3(Cordon(4)).status, versions=Versions()))
    assert wanted(removal("Running"), known=unknown) == {4}, "no cordon ends because no broker reported its version"
    assert missing_cordons(removal("Running"), kafka_4_3()) == {4}
    assert missing_cordons(removal("Running"), kafka_4_3(Cordon(4, None, in_force=True))) == frozenset()


@pytest.mark.shows("F43")
def test_a_cordon_is_recorded_with_the_previous_value_before_it_is_made() -> None:
    """Read, record, alter, read, confirm (ADR 43)."""
    known = kafka_4_3()
    assert decide_cordons(known, view(None, 4)) == ReadCordons((4,))

    step = decide_cordons(known, view({4: "/data/1"}, 4))
    assert isinstance(step, WriteStatus)
    assert step.status.cordons == (Cordon(4, "/data/1"),)

    known = replace(known, status=step.status)
    change = AlterBroker(4, ((SETTING, "*"),))
    assert decide_cordons(known, view({4: "/data/1"}, 4)) == AlterCordons((change,))

    step = decide_cordons(known, view({4: "*"}, 4))
    assert isinstance(step, WriteStatus)
    assert step.status.cordons == (Cordon(4, "/data/1", in_force=True),)
    assert isinstance(decide_cordons(replace(known, status=step.status), view({4: "*"}, 4)), Wait)


@pytest.mark.shows("F43")
@pytest.mark.parametrize(
    ("before", "current", "restored"),
    [(None, "*", True), ("/data/1", "*", True), (None, "/data/2", False), ("*", "*", False)],
    ids=["not set", "set by another client", "changed in the meantime", "cordoned by another client"],
)
def test_the_previous_value_is_restored_unless_another_client_changed_it(
    before: str | None, current: str, restored: bool
) -> None:
    """The record is removed when Kafka was seen without the cordon."""
    known = kafka_4_3(Cordon(4, before, in_force=True))

    step = decide_cordons(known, view({4: current}))

    if restored:
        assert step == AlterCordons((AlterBroker(4, ((SETTING, before),)),))
        step = decide_cordons(known, view({4: before}))
    assert isinstance(step, WriteStatus)
    assert step.status.cordons == ()
    assert decide_cordons(replace(known, status=step.status), view()) == Done()


def test_a_second_cluster_of_the_same_kafka_records_what_was_set_before_the_first() -> None:
    """Otherwise it would restore the cordon of the first."""
    step = decide_cordons(kafka_4_3(), view({4: "*"}, 4, others={4: Cordon(4, "/data/1", in_force=True)}))

    assert isinstance(step, WriteStatus)
    assert step.status.cordons == (Cordon(4, "/data/1"),)


def shown(known: Cluster, seen: CordonView) -> tuple[str, str]:
    """Status and reason of the condition after a step."""
    step = decide_cordons(known, seen)
    status = step.status if isinstance(step, WriteStatus) else known.status
    found = condition_of(status.conditions, "Cordoned")
    return ("", "") if found is None else (found.status, found.reason)


@pytest.mark.shows("F43")
def test_a_cordon_that_is_refused_or_cannot_be_removed_is_reported() -> None:
    """A broker that restarts is not: it is tried again."""
    record = Cordon(4, None, in_force=True)

    assert shown(kafka_4_3(), view({4: NOT_ALLOWED}, 4)) == ("False", "CordonRefused")
    assert shown(kafka_4_3(record), view({4: "*"}, refused={4: NOT_ALLOWED})) == ("False", "CordonLeft")
    assert shown(kafka_4_3(), view({4: RESTARTING}, 4)) == ("", "")
    refused = decide_cordons(kafka_4_3(record), view({4: "*"}, refused={4: NOT_ALLOWED}))
    assert isinstance(refused, WriteStatus)
    assert refused.status.cordons == (record,)
    assert refused.event is not None
    assert refused.event.warning

"""Rights of other namespaces on a Cluster: names, numbers, order of rules."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafka_operator import kinds
from kafka_operator.decide.tenants.quota import quota_refusals
from kafka_operator.decide.tenants.tenancy import Refusal, refusal_of_topic, refusal_of_whole_cluster
from kafka_operator.resources.allowed import read_allowed
from kafka_operator.resources.cluster import Cluster
from kafka_operator.resources.topic import Topic, TopicStatus
from reconciler.names import Key
from tests.kafka_operator.makers import cluster, topic

TEAM = "team-a"


def allowing(*rules: dict[str, Any]) -> Cluster:
    """Cluster `shop/main` with these rules."""
    made: Cluster = cluster()
    return replace(made, allowed_namespaces=read_allowed(rules))


def reason(refusal: Refusal | None) -> str:
    """The reason of a refusal, empty for none."""
    return "" if refusal is None else refusal.reason


@pytest.mark.parametrize(
    ("rules", "namespace", "name", "expected"),
    [
        ([], "shop", "anything", ""),
        ([], TEAM, "orders", "NotAllowed"),
        ([{"namespaces": ["team-b"]}], TEAM, "orders", "NotAllowed"),
        ([{"namespaces": ["team-*"]}], TEAM, "orders", ""),
        ([{"namespaces": ["team-*"]}], "my-team-a", "orders", "NotAllowed"),
        ([{"namespaces": ["*"]}], TEAM, "__consumer_offsets", "NameNotAllowed"),
        ([{"namespaces": ["*"], "topicNames": ["*"]}], TEAM, "__consumer_offsets", "NameNotAllowed"),
        ([{"namespaces": ["*"], "topicNames": ["__amazon*"]}], TEAM, "__amazon_canary", ""),
        ([{"namespaces": ["*"], "topicNames": ["${namespace}.*"]}], TEAM, "team-a.orders", ""),
        ([{"namespaces": ["*"], "topicNames": ["${namespace}.*"]}], TEAM, "team-b.orders", "NameNotAllowed"),
        ([{"namespaces": ["*"], "topicNames": ["${namespace}.*"]}], TEAM, "team-aXorders", "NameNotAllowed"),
        ([{"namespaces": ["*"], "topicNames": ["x", "y-*"]}], TEAM, "y-1", ""),
        ([{"namespaces": [TEAM], "topicNames": ["a"]}, {"namespaces": ["*"]}], TEAM, "b", "NameNotAllowed"),
    ],
)
def test_the_first_rule_that_names_a_namespace_defines_its_topics(
    rules: list[dict[str, Any]], namespace: str, name: str, expected: str
) -> None:
    """A tenant cannot change another's cluster; the pattern * does not include Kafka's internal topics."""
    assert reason(refusal_of_topic(allowing(*rules), namespace, name)) == expected


def test_a_refusal_names_the_rule() -> None:
    """So that its reader knows what to change, or whom to ask."""
    refusal = refusal_of_topic(allowing({"namespaces": ["*"], "topicNames": ["${namespace}.*"]}), TEAM, "orders")

    assert refusal is not None
    assert (
        refusal.message
        == "Cluster shop/main allows namespace team-a topics team-a.* (spec.allowedNamespaces[0].topicNames); "
        "orders is not one of them."
    )


def test_what_concerns_all_topics_is_for_the_clusters_own_namespace() -> None:
    """Brokers that are emptied are everybody's affair."""
    rule = {"namespaces": ["*"], "topicNames": ["*"]}

    assert reason(refusal_of_whole_cluster(allowing(rule), "shop")) == ""
    assert reason(refusal_of_whole_cluster(allowing(rule), TEAM)) == "NotAllowed"
    assert reason(refusal_of_whole_cluster(allowing(), TEAM)) == "NotAllowed"


def tenants(name: str, *, minute: int, has: int = 0, namespace: str = TEAM, **spec: Any) -> Topic:
    """A Topic of another namespace, created in that minute, that has so many partitions in Kafka."""
    made: Topic = topic(
        name,
        namespace=namespace,
        uid=name,
        held=has > 0,
        created=f"2026-01-01T11:{minute:02}:00Z",
        clusterRef={"name": "main", "namespace": "shop"},
        **spec,
    )
    return replace(made, status=TopicStatus(partitions=has or None))


def refused(found: Cluster, *topics: Topic) -> set[str]:
    """The names of the Topics without room."""
    return {key.name for key in quota_refusals(found, topics)}


def test_the_oldest_topics_have_the_room() -> None:
    """In whatever order they are seen."""
    found = allowing({"namespaces": ["*"], "maxTopics": 2})
    first, second, third = (tenants(name, minute=minute) for name, minute in (("a", 1), ("b", 2), ("c", 3)))

    assert {"c"} == refused(found, third, first, second) == refused(found, second, third, first)
    refusal = quota_refusals(found, [first, second, third])[third.key]
    assert "spec.allowedNamespaces[0].maxTopics" in refusal.message


def test_what_is_there_is_never_taken_away() -> None:
    """The one that grows finds no room; those that have what they declare stay, also where a quota was lowered."""
    found = allowing({"namespaces": ["*"], "maxPartitions": 10, "maxTopics": 1})
    grown = tenants("old", minute=1, has=6, partitions=7)
    young = tenants("young", minute=2, has=4, partitions=4)

    assert refused(found, grown, young) == {"old"}
    assert "10 are in use, 1 more are requested" in quota_refusals(found, [grown, young])[grown.key].message


def test_each_namespace_has_the_numbers_for_itself() -> None:
    """And the Cluster's own has none."""
    found = allowing({"namespaces": ["team-*"], "maxTopics": 1})

    assert (
        refused(
            found,
            tenants("a", minute=1),
            tenants("b", minute=2, namespace="team-b"),
            tenants("c", minute=3, namespace="shop"),
            tenants("d", minute=4, namespace="shop"),
        )
        == set()
    )


def test_a_topic_whose_name_is_refused_takes_no_room() -> None:
    """However old it is."""
    found = allowing({"namespaces": ["*"], "topicNames": ["a*"], "maxTopics": 1})

    assert refused(found, tenants("b", minute=1), tenants("a", minute=2)) == set()


def test_what_only_observes_takes_no_room() -> None:
    """It creates nothing."""
    found = allowing({"namespaces": ["*"], "maxTopics": 1})

    assert refused(found, tenants("a", minute=1, policy="Observe"), tenants("b", minute=2)) == set()


@pytest.mark.shows("E14")
@given(
    st.lists(st.tuples(st.integers(0, 5), st.integers(1, 8)), max_size=6),
    st.integers(0, 4),
    st.integers(0, 20),
    st.randoms(),
)
def test_a_quota_is_never_exceeded_in_any_order_of_events(
    wishes: list[tuple[int, int]], max_topics: int, max_partitions: int, rng: Any
) -> None:
    """A grant fits in addition to what exists, unless that alone does not fit."""
    found = allowing({"namespaces": ["*"], "maxTopics": max_topics, "maxPartitions": max_partitions})
    topics = [
        tenants(f"t{index}", minute=index, has=has, partitions=max(has, wants))
        for index, (has, wants) in enumerate(wishes)
    ]
    refusals = quota_refusals(found, topics)
    shuffled = list(topics)
    rng.shuffle(shuffled)

    assert refusals.keys() == quota_refusals(found, shuffled).keys()
    current = [has for has, _ in wishes if has]
    granted = [
        (item.status.partitions or 0) if item.key in refusals else item.partitions
        for item in topics
        if item.key not in refusals or item.status.partitions
    ]
    assert len(granted) <= max(max_topics, len(current))
    assert sum(granted) <= max(max_partitions, sum(current))
    assert Key(kinds.TOPIC, TEAM, "t0") not in refusals or wishes[0][0] == 0 or wishes[0][1] > wishes[0][0]

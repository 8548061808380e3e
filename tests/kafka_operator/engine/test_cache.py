"""Resources as last read."""

from __future__ import annotations

from dataclasses import replace

import pytest

from kafka_operator import kinds
from kafka_operator.engine.cache import Cache
from kafka_operator.resources.cluster import Cluster, ClusterStatus
from kafka_operator.resources.cluster_ref import ClusterRef
from kafka_operator.resources.topic import Topic
from tests.kafka_operator.makers import cluster, reassignment, topic

MAIN = ClusterRef("shop", "main")


def at_version(resource: Topic, version: str) -> Topic:
    """The same resource at another version."""
    return replace(resource, metadata=replace(resource.metadata, resource_version=version))


def test_the_newest_version_wins_from_any_source() -> None:
    """A late watch event never hides what we wrote after it."""
    cache = Cache()
    new = at_version(topic(partitions=9), "12")

    assert cache.store(at_version(topic(), "10"))
    assert cache.store(new)
    assert not cache.store(at_version(topic(), "11"))
    assert not cache.store(at_version(topic(), "12"))
    assert new is cache.topic(new.key)


def test_only_the_object_that_went_is_forgotten() -> None:
    """Another one of the same name may be there already."""
    cache = Cache()
    cache.store(topic(uid="new"))

    assert not cache.delete(topic().key, "old")
    assert cache.delete(topic().key, "new")
    assert not cache.delete(topic().key)
    assert cache.keys(kinds.TOPIC) == []
    assert list(cache.dependents(MAIN)) == []
    assert cache.named("orders") == []


def test_dependents_and_claims_are_found() -> None:
    """By cluster, and by the name of the Kafka topic."""
    cache = Cache()
    first, second = topic("orders"), topic("again", topicName="orders")
    elsewhere = topic("third", topicName="orders", cluster="other")
    for resource in (first, second, elsewhere, reassignment(plan=[]), cluster()):
        cache.store(resource)

    assert {item.key.name for item in cache.dependents(MAIN)} == {"orders", "again", "move"}
    assert {item.key.name for item in cache.claims(first)} == {"orders", "again"}
    assert {key.name for key in cache.named("orders")} == {"orders", "again", "third"}


def test_clusters_of_one_kafka_id_are_one() -> None:
    """Once Kafka's own id of both was seen."""
    cache = Cache()
    main = replace(cluster(), status=ClusterStatus(cluster_id="abc"))
    alias_key = replace(main.key, name="alias")
    alias: Cluster = replace(main, metadata=replace(main.metadata, key=alias_key))
    unseen_key = replace(main.key, name="unseen")
    unseen = replace(cluster(), metadata=replace(main.metadata, key=unseen_key))
    for resource in (main, alias, unseen):
        cache.store(resource)

    assert {ref.name for ref in cache.same_cluster(MAIN)} == {"main", "alias"}
    assert cache.same_cluster(ClusterRef("shop", "unseen")) == [ClusterRef("shop", "unseen")]
    assert cache.same_cluster(ClusterRef("shop", "gone")) == [ClusterRef("shop", "gone")]


@pytest.mark.shows("D7")
def test_a_late_event_does_not_restore_a_deleted_resource() -> None:
    """Otherwise a late event of a deleted Topic would recreate its Kafka topic. A new resource of the same name is another one."""
    cache = Cache()
    first = topic(uid="first")
    cache.store(first)
    cache.delete(first.key)

    assert not cache.store(at_version(topic(uid="first"), "9"))
    assert cache.topic(first.key) is None
    assert cache.store(at_version(topic(uid="second"), "8"))
    cache.delete(first.key, "third")
    assert not cache.store(at_version(topic(uid="third"), "11"))

"""The broker's view of a metadata image."""

from dataclasses import replace
from uuid import UUID

from kafka_metadata.directory_ids import LOST_DIRECTORY, UNASSIGNED_DIRECTORY
from kafka_metadata.metadata_log import MetadataLog, apply_records
from kafka_metadata.records import (
    BrokerRegistrationChangeRecord,
    ConfigRecord,
    EndPoint,
    FeatureLevelRecord,
    MetadataRecord,
    NoOpRecord,
    PartitionRecord,
    RegisterBrokerRecord,
    ResourceType,
    TopicRecord,
)
from kafka_node.configs.resource_types import ConfigResourceType
from light_broker.control.kraft.views import Views
from light_broker.core.metadata_view import BrokerView, ConfigResource, Endpoint, PartitionView

OWN, OTHER = 2, 1
ORDERS = UUID(int=1000)
GOOD, BAD = UUID(int=2000), UUID(int=2001)


def broker(broker_id: int, *directories: UUID) -> RegisterBrokerRecord:
    """Return a registration."""
    endpoints = (EndPoint("CLIENT", "host", 9000 + broker_id, 0),)
    return RegisterBrokerRecord(broker_id, UUID(int=broker_id), 10 + broker_id, endpoints, log_dirs=directories)


def partition(number: int, directory: UUID) -> PartitionRecord:
    """Return a partition with one replica on this broker."""
    return PartitionRecord(number, ORDERS, (OWN,), (OWN,), OWN, 3, 4, directories=(directory,))


def after(log: MetadataLog, *found: MetadataRecord) -> MetadataLog:
    """Return a log after records."""
    return apply_records(log, log.end_offset, found)


FIRST = after(
    MetadataLog(),
    FeatureLevelRecord("metadata.version", 30),
    broker(OWN, GOOD),
    broker(OTHER),
    TopicRecord("orders", ORDERS),
    partition(0, GOOD),
    TopicRecord("__consumer_offsets", UUID(int=1001)),
)


def test_a_view_has_brokers_topics_and_features() -> None:
    """Any broker is given as the controller (KIP-590); the epoch of features is an offset of the log."""
    views = Views("cluster", OWN)
    view = views.follow(FIRST, 1)

    assert view.brokers[OWN] == BrokerView(
        OWN, 12, None, {"CLIENT": Endpoint("host", 9002)}, is_fenced=True, is_shutting_down=False
    )
    assert view.topics["orders"].partitions == (PartitionView((OWN,), (OWN,), OWN, 3, 4),)
    assert [topic.is_internal for topic in view.topics.values()] == [False, True]
    assert (view.topic_names_by_id[ORDERS], view.controller_id) == ("orders", OWN)
    assert view.features.levels == {"metadata.version": 30, "kraft.version": 1}
    assert view.features.epoch == FIRST.end_offset - 1


def test_what_did_not_change_is_shared_and_the_epoch_of_features_stays() -> None:
    """A cluster of many topics changes one at a time."""
    views = Views("cluster", OWN)
    before = views.follow(FIRST, 0)
    view = views.follow(after(FIRST, TopicRecord("more", UUID(int=1002)), NoOpRecord()), 0)

    assert view.topics["orders"] is before.topics["orders"]
    assert set(view.topics) - set(before.topics) == {"more"}
    assert view.features is before.features


def test_a_replica_on_a_failed_directory_is_offline() -> None:
    """BrokerRegistration.hasOnlineDir: lost, or not among the directories of the broker."""
    log = after(FIRST, partition(1, BAD), partition(2, LOST_DIRECTORY), partition(3, UNASSIGNED_DIRECTORY))
    views = Views("cluster", OWN)
    offline = [partition.offline_replicas for partition in views.follow(log, 0).topics["orders"].partitions]
    assert offline == [(), (OWN,), (OWN,), ()]

    recovered = after(log, BrokerRegistrationChangeRecord(OWN, 12, log_dirs=(GOOD, BAD)))
    offline = [partition.offline_replicas for partition in views.follow(recovered, 0).topics["orders"].partitions]
    assert offline == [(), (), (OWN,), ()]


def test_configs_that_the_broker_cannot_use_are_left_out() -> None:
    """As with configs in ZooKeeper: they are logged, and the default applies."""
    log = after(
        FIRST,
        ConfigRecord(ResourceType.TOPIC, "orders", "retention.ms", "60000"),
        ConfigRecord(ResourceType.TOPIC, "orders", "segment.bytes", "many"),
        ConfigRecord(ResourceType.BROKER, "", "node.id", "7"),
        ConfigRecord(99, "future", "a", "b"),
    )
    view = Views("cluster", OWN).follow(log, 0)

    assert view.configs == {
        ConfigResource(ConfigResourceType.TOPIC, "orders"): {"retention.ms": "60000"},
        ConfigResource(ConfigResourceType.BROKER, ""): {},
    }


def test_a_broker_that_shuts_down_is_alive_and_joins_no_isr() -> None:
    """Kafka's metadata cache lists it until it is fenced."""
    log = after(FIRST, BrokerRegistrationChangeRecord(OTHER, 11, fenced=-1, in_controlled_shutdown=1))
    view = Views("cluster", OWN).follow(log, 0)

    assert (view.is_alive(OTHER), view.brokers[OTHER].is_shutting_down) == (True, True)
    assert view.is_alive(OWN) is False


def test_a_new_log_without_a_topic_removes_it() -> None:
    """A snapshot may replace the whole image."""
    views = Views("cluster", OWN)
    views.follow(FIRST, 0)
    smaller = after(MetadataLog(), FeatureLevelRecord("metadata.version", 30))

    view = views.follow(replace(smaller, end_offset=99), 0)

    assert (dict(view.topics), dict(view.brokers)) == ({}, {})

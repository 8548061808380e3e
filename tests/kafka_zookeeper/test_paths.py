"""Paths of znodes."""

import pytest

from kafka_zookeeper import paths


def test_paths_equal_kafkas():
    """As on a ZooKeeper of Kafka 3.9.2."""
    expected = [
        "/brokers/ids/7",
        "/brokers/topics/orders",
        "/brokers/topics/orders/partitions",
        "/brokers/topics/orders/partitions/3",
        "/brokers/topics/orders/partitions/3/state",
        "/config/topics/orders",
        "/config/brokers/7",
        "/config/brokers/<default>",
        "/admin/delete_topics/orders",
        "/kafka-acl/Topic/orders",
        "/kafka-acl-extended/prefixed/TransactionalId/or",
        "/kafka-acl-changes",
        "/kafka-acl-extended-changes",
    ]

    assert [
        paths.broker(7),
        paths.topic("orders"),
        paths.partitions("orders"),
        paths.partition("orders", 3),
        paths.partition_state("orders", 3),
        paths.topic_config("orders"),
        paths.config("brokers", "7"),
        paths.config("brokers", "<default>"),
        paths.delete_topic("orders"),
        paths.acls("Topic", "orders"),
        paths.acls("TransactionalId", "or", prefixed=True),
        paths.acl_changes(),
        paths.acl_changes(prefixed=True),
    ] == expected


def test_paths_of_many_states_equal_those_of_single_ones():
    """partition_states and partition_state agree."""
    expected = [paths.partition_state("t", index) for index in (2, 0, 11)]

    assert paths.partition_states("t", [2, 0, 11]) == expected


@pytest.mark.parametrize("name", ["", ".", "..", "a/b", "/", "../controller"])
def test_a_name_must_be_one_path_component(name: str):
    """A topic's name comes from clients; it must not change the path."""
    with pytest.raises(ValueError, match="cannot name a znode"):
        paths.topic(name)
    with pytest.raises(ValueError, match="cannot name a znode"):
        paths.delete_topic(name)

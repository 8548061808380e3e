"""Paths of znodes."""

import pytest

from kafka_zookeeper import paths


def test_paths_are_kafkas():
    """Seen on a ZooKeeper that Kafka 3.9.2 used."""
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


def test_many_states_are_named_as_one_is():
    """The bulk function and the single one agree."""
    expected = [paths.partition_state("t", index) for index in (2, 0, 11)]

    assert paths.partition_states("t", [2, 0, 11]) == expected


@pytest.mark.parametrize("name", ["", ".", "..", "a/b", "/", "../controller"])
def test_a_name_cannot_leave_its_place_in_the_tree(name: str):
    """A topic's name comes from strangers; it must stay one component of the path."""
    with pytest.raises(ValueError, match="cannot name a znode"):
        paths.topic(name)
    with pytest.raises(ValueError, match="cannot name a znode"):
        paths.delete_topic(name)

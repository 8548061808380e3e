"""Znode paths of Kafka's ZooKeeper mode.

Paths are relative to the chroot, which the session adds. The paths of delegation tokens, which only brokers use, are missing.
Source: kafka.zk.ZkData of Kafka 3.9, wire-checked on 3.9.2.
"""

from collections.abc import Iterable

CONTROLLER = "/controller"
CONTROLLER_EPOCH = "/controller_epoch"
FEATURE = "/feature"
CLUSTER_ID = "/cluster/id"
PRODUCER_ID_BLOCK = "/latest_producer_id_block"

BROKER_IDS = "/brokers/ids"
TOPICS = "/brokers/topics"

CONFIG = "/config"
CONFIG_CHANGES = "/config/changes"
CONFIG_CHANGE_PREFIX = "/config/changes/config_change_"
"""Prefix of the sequential znodes that notify every broker of a changed entity configuration."""

DELETE_TOPICS = "/admin/delete_topics"
REASSIGN_PARTITIONS = "/admin/reassign_partitions"
PREFERRED_REPLICA_ELECTION = "/admin/preferred_replica_election"

ISR_CHANGE_NOTIFICATION = "/isr_change_notification"
ISR_CHANGE_PREFIX = "/isr_change_notification/isr_change_"
LOG_DIR_EVENT_NOTIFICATION = "/log_dir_event_notification"
LOG_DIR_EVENT_PREFIX = "/log_dir_event_notification/log_dir_event_"

ACLS = "/kafka-acl"
PREFIXED_ACLS = "/kafka-acl-extended/prefixed"
ACL_CHANGES = "/kafka-acl-changes"
EXTENDED_ACL_CHANGES = "/kafka-acl-extended-changes"
ACL_CHANGE_NAME = "acl_changes_"
"""Prefix of the names of ACL change notifications."""


def child(parent: str, name: str) -> str:
    """Return the path of `parent`'s child; raises ValueError for a name that is not a single path component."""
    if not name or "/" in name or name in {".", ".."}:
        raise ValueError(f"{name!r} cannot name a znode under {parent}: one non-empty path component is needed")
    return f"{'' if parent == '/' else parent}/{name}"


def broker(broker_id: int) -> str:
    """Return the path of a broker's registration; its czxid is the broker's epoch."""
    return f"{BROKER_IDS}/{broker_id}"


def topic(name: str) -> str:
    """Return the path of a topic's assignment."""
    return child(TOPICS, name)


def partitions(topic_name: str) -> str:
    """Return the parent of a topic's partitions; the controller creates it before the state of the first partition."""
    return f"{topic(topic_name)}/partitions"


def partition(topic_name: str, index: int) -> str:
    """Return the parent of a partition's state."""
    return f"{partitions(topic_name)}/{index}"


def partition_state(topic_name: str, index: int) -> str:
    """Return the path of a partition's leader and ISR; its znode version is the partition's epoch."""
    return f"{partitions(topic_name)}/{index}/state"


def partition_states(topic_name: str, indexes: Iterable[int]) -> list[str]:
    """Return the paths of many partitions' states of one topic, in the order given."""
    parent = partitions(topic_name)
    return [f"{parent}/{index}/state" for index in indexes]


def config(entity_type: str, entity_name: str) -> str:
    """Return the path of an entity's configuration; types and names as in `kafka_zookeeper.formats.configs`."""
    return child(child(CONFIG, entity_type), entity_name)


def entity_config(entity: str) -> str:
    """Return the path of a configuration by the entity's path, as in change notifications: `users/alice/clients/c`.

    Raises ValueError if a part of it cannot name a znode.
    """
    path = CONFIG
    for name in entity.split("/"):
        path = child(path, name)
    return path


def topic_config(name: str) -> str:
    """Return the path of a topic's configuration overrides."""
    return config("topics", name)


def delete_topic(name: str) -> str:
    """Return the path whose existence requests the deletion of a topic."""
    return child(DELETE_TOPICS, name)


def acls_of_type(resource_type: str, *, prefixed: bool = False) -> str:
    """Return the parent of all ACLs of a resource type (`Topic`, `TransactionalId`)."""
    return child(PREFIXED_ACLS if prefixed else ACLS, resource_type)


def acls(resource_type: str, name: str, *, prefixed: bool = False) -> str:
    """Return the path of the ACLs of a resource or, with `prefixed`, of a prefix."""
    return child(acls_of_type(resource_type, prefixed=prefixed), name)


def acl_changes(*, prefixed: bool = False) -> str:
    """Return the parent of the ACL change notifications."""
    return EXTENDED_ACL_CHANGES if prefixed else ACL_CHANGES

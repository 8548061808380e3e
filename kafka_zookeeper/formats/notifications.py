"""Notifications of brokers to the controller: sequential znodes for changed ISRs and failed log directories.

`/isr_change_notification/isr_change_N` is created by brokers whose inter.broker.protocol.version is below 2.7 (later ones send
AlterPartition), `/log_dir_event_notification/log_dir_event_N` by all. The controller deletes them after reading. Kafka treats an
unreadable one as empty. Source: kafka.zk.ZkData, KIP-112.
"""

from kafka_zookeeper import paths
from kafka_zookeeper.formats import documents
from kafka_zookeeper.formats.documents import TopicPartition

LOG_DIR_FAILURE_EVENT = 1
"""The only event type."""


def encode_isr_change(partitions: tuple[TopicPartition, ...]) -> bytes:
    """Return the notification that the ISRs of these partitions were changed in their znodes."""
    return f'{{"version":1,"partitions":{documents.write_topic_partitions(partitions)}}}'.encode()


def decode_isr_change(name: str, data: bytes | None) -> tuple[TopicPartition, ...]:
    """Decode the partitions whose states must be read again; `name` is the name of the znode."""
    path = paths.child(paths.ISR_CHANGE_NOTIFICATION, name)
    return documents.read_topic_partitions(path, documents.read_object(path, data))


def encode_log_dir_event(broker_id: int) -> bytes:
    """Return the notification that a log directory of this broker failed."""
    return f'{{"version":1,"broker":{broker_id},"event":{LOG_DIR_FAILURE_EVENT}}}'.encode()


def decode_log_dir_event(name: str, data: bytes | None) -> int:
    """Return the id of the broker whose replicas must be checked; `name` is the name of the znode. The event type is ignored."""
    path = paths.child(paths.LOG_DIR_EVENT_NOTIFICATION, name)
    return documents.int_field(path, documents.read_object(path, data), "broker")

"""What brokers tell the controller through sequential znodes: an ISR that they changed, a log directory that failed.

`/isr_change_notification/isr_change_N` comes from brokers whose inter.broker.protocol.version is below 2.7 (later ones send
AlterPartition), `/log_dir_event_notification/log_dir_event_N` from all. The controller deletes what it has read. Kafka takes
one that it cannot read for empty. Source: kafka.zk.ZkData, KIP-112.
"""

from kafka_zookeeper import paths
from kafka_zookeeper.formats import documents
from kafka_zookeeper.formats.documents import TopicPartition

LOG_DIR_FAILURE_EVENT = 1
"""The one event there is."""


def encode_isr_change(partitions: tuple[TopicPartition, ...]) -> bytes:
    """Return the notice that these partitions' ISRs were changed in their znodes."""
    return f'{{"version":1,"partitions":{documents.write_topic_partitions(partitions)}}}'.encode()


def decode_isr_change(name: str, data: bytes | None) -> tuple[TopicPartition, ...]:
    """Read which partitions' states are to be read again; `name` is the notice's own."""
    path = paths.child(paths.ISR_CHANGE_NOTIFICATION, name)
    return documents.read_topic_partitions(path, documents.read_object(path, data))


def encode_log_dir_event(broker_id: int) -> bytes:
    """Return the notice that a log directory of this broker failed."""
    return f'{{"version":1,"broker":{broker_id},"event":{LOG_DIR_FAILURE_EVENT}}}'.encode()


def decode_log_dir_event(name: str, data: bytes | None) -> int:
    """Return the id of the broker to ask about its replicas; `name` is the notice's own. The event itself is not looked at."""
    path = paths.child(paths.LOG_DIR_EVENT_NOTIFICATION, name)
    return documents.int_field(path, documents.read_object(path, data), "broker")

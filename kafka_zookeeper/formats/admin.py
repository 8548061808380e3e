"""`/admin/reassign_partitions` and `/admin/preferred_replica_election`: requests of old tools.

The controller reads such a znode, executes the request and deletes the znode. Kafka treats an unreadable one as empty and
deletes it. `/admin/delete_topics/T` has no data. Source: kafka.zk.ZkData.
"""

from collections.abc import Mapping
from collections.abc import Set as AbstractSet

from kafka_zookeeper import paths
from kafka_zookeeper.formats import documents
from kafka_zookeeper.formats.documents import Document, FormatError, TopicPartition, quote

REASSIGNMENT_FIELDS = frozenset({"version", "partitions"})
REPLICAS_FIELDS = frozenset({"topic", "partition", "replicas"})


def encode_reassignment(replicas: Mapping[TopicPartition, tuple[int, ...]]) -> bytes:
    """Return the document that requests these replicas."""
    entries = (
        f'{{"topic":{quote(topic)},"partition":{partition},"replicas":[{",".join(map(str, brokers))}]}}'
        for (topic, partition), brokers in replicas.items()
    )
    return f'{{"version":1,"partitions":[{",".join(entries)}]}}'.encode()


def decode_reassignment(data: bytes | None) -> dict[TopicPartition, tuple[int, ...]]:
    """Decode the requested replicas. As in Kafka, an unknown field makes the whole document invalid."""
    path = paths.REASSIGN_PARTITIONS
    document = documents.read_object(path, data)
    _refuse_unknown(path, "the document", document, REASSIGNMENT_FIELDS)
    documents.as_int(path, "'version'", document.get("version", 1))
    found = {}
    for entry in documents.as_list(path, "'partitions'", documents.field(path, document, "partitions")):
        place = documents.as_object(path, "an entry of 'partitions'", entry)
        _refuse_unknown(path, "an entry of 'partitions'", place, REPLICAS_FIELDS)
        brokers = documents.as_list(path, "'replicas'", documents.field(path, place, "replicas"))
        partition = documents.int_field(path, place, "partition", lowest=0)
        key = TopicPartition(documents.text_field(path, place, "topic"), partition)
        found[key] = tuple(documents.as_int(path, "a broker of 'replicas'", broker, lowest=0) for broker in brokers)
    return found


def _refuse_unknown(path: str, name: str, document: Document, known: AbstractSet[str]) -> None:
    unknown = sorted(document.keys() - known)
    if unknown:
        raise FormatError(path, f"{name} has the unknown field {documents.shown(unknown[0])}")


def encode_preferred_replica_election(partitions: tuple[TopicPartition, ...]) -> bytes:
    """Return the document that requests preferred leader elections for these partitions."""
    return f'{{"version":1,"partitions":{documents.write_topic_partitions(partitions)}}}'.encode()


def decode_preferred_replica_election(data: bytes | None) -> tuple[TopicPartition, ...]:
    """Decode the partitions with a requested preferred leader election."""
    path = paths.PREFERRED_REPLICA_ELECTION
    return documents.read_topic_partitions(path, documents.read_object(path, data))

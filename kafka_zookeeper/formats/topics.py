"""`/brokers/topics/T`: topic id and replica assignment of a topic.

JSON version 1 has only the partitions, 2 (Kafka 2.4) adds the adding and removing replicas of a reassignment, 3 (Kafka 2.8) the
topic id. Kafka 3.9 reads all three by their fields and writes version 3, without the id if there is none.
Source: TopicZNode in kafka.zk.ZkData, KIP-455, KIP-516.
"""

import base64
import re
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import chain
from operator import itemgetter

from kafka_zookeeper import paths
from kafka_zookeeper.formats import documents
from kafka_zookeeper.formats.documents import INT32_MAX, Document, FormatError, shown
from kafka_zookeeper.formats.key_order import scala_order

Replicas = Mapping[int, tuple[int, ...]]
"""Partition -> broker ids, preferred replica first."""

_PARTITION = re.compile("[0-9]{1,10}")
_TOPIC_ID = re.compile("[A-Za-z0-9_-]{22}(?:==)?")


@dataclass(frozen=True, slots=True)
class TopicAssignment:
    """Content of a topic's znode. A decoded mapping is in the order of the partition numbers."""

    replicas: Replicas
    """All replicas of each partition; during a reassignment the union of the old and the new ones."""
    adding: Replicas = field(default_factory=dict)
    """Only partitions under reassignment."""
    removing: Replicas = field(default_factory=dict)
    """Only partitions under reassignment."""
    topic_id: uuid.UUID | None = None
    """None if the brokers' inter.broker.protocol.version is below 2.8."""


def encode_topic(assignment: TopicAssignment) -> bytes:
    """Return the document of JSON version 3; empty adding and removing lists are omitted, as Kafka does."""
    topic_id = "" if assignment.topic_id is None else f'"topic_id":"{encode_topic_id(assignment.topic_id)}",'
    return (
        f'{{"partitions":{_write_replicas(assignment.replicas)},{topic_id}'
        f'"adding_replicas":{_write_replicas(_only(assignment.adding, assignment.replicas))},'
        f'"removing_replicas":{_write_replicas(_only(assignment.removing, assignment.replicas))},"version":3}}'
    ).encode()


def decode_topic(topic: str, data: bytes | None) -> TopicAssignment:
    """Decode a topic's znode.

    Kafka treats a topic whose data is not JSON (FormatError.not_json here) as a topic without partitions.
    """
    path = paths.topic(topic)
    document = documents.read_object(path, data)
    topic_id = None
    if "topic_id" in document:
        topic_id = decode_topic_id(path, documents.text_field(path, document, "topic_id"))
    replicas = _read_replicas(path, document, "partitions")
    adding, removing = (_read_replicas(path, document, key) for key in ("adding_replicas", "removing_replicas"))
    return TopicAssignment(replicas, _only(adding, replicas), _only(removing, replicas), topic_id)


def encode_topic_id(topic_id: uuid.UUID) -> str:
    """Return a topic id as Kafka writes it: URL-safe base64 without padding.

    >>> encode_topic_id(uuid.UUID(int=2**64 + 2))
    'AAAAAAAAAAEAAAAAAAAAAg'
    """
    return base64.urlsafe_b64encode(topic_id.bytes).rstrip(b"=").decode()


def decode_topic_id(path: str, text: str) -> uuid.UUID:
    """Decode a topic id of 16 bytes, with or without the padding."""
    if not _TOPIC_ID.fullmatch(text):
        raise FormatError(path, f"the topic id must be 16 bytes in URL-safe base64, found {shown(text)}")
    return uuid.UUID(bytes=base64.urlsafe_b64decode(text[:22] + "=="))


def _only(changing: Replicas, replicas: Replicas) -> Replicas:
    """Remove partitions with empty lists, and those that the topic does not have."""
    return {partition: brokers for partition, brokers in changing.items() if brokers and partition in replicas}


def _write_replicas(replicas: Replicas) -> str:
    texts = {str(partition): ",".join(map(str, brokers)) for partition, brokers in replicas.items()}
    return "{" + ",".join(f'"{partition}":[{texts[partition]}]' for partition in scala_order(texts)) + "}"


def _read_replicas(path: str, document: Document, key: str) -> Replicas:
    """Decode one map of replicas; checked in bulk, because a failover reads an entry for every partition."""
    found = documents.as_object(path, repr(key), document.get(key, {}))
    for partition, brokers in found.items():
        if not _PARTITION.fullmatch(partition) or int(partition) > INT32_MAX:
            raise FormatError(path, f"a partition in {key} must be a number from 0, found {shown(partition)}")
        if not isinstance(brokers, list):
            raise FormatError(path, f"{key} of partition {partition} must be a JSON array, found {shown(brokers)}")
    ids = list(chain.from_iterable(found.values()))
    if not set(map(type, ids)) <= {int} or (ids and not 0 <= min(ids) <= max(ids) <= INT32_MAX):
        raise FormatError(path, f"the broker ids in {key} must be integers from 0 to {INT32_MAX}, found {shown(found)}")
    numbered = sorted(((int(partition), brokers) for partition, brokers in found.items()), key=itemgetter(0))
    return {partition: tuple(brokers) for partition, brokers in numbered}

"""Contents of the small text files next to a log, as Kafka writes them.

leader-epoch-checkpoint: version 0, the number of entries, then an epoch and a start offset on each line
partition.metadata:      version: 0, topic_id: the id in URL-safe Base64
meta.properties:         a Java properties file (java_properties.py)
"""

import re
import uuid
from dataclasses import dataclass

from kafka_log.errors import UnreadableFileError
from kafka_log.format.epochs import EpochStart, LeaderEpochs
from kafka_log.format.java_properties import parse_properties, write_property
from kafka_wire.uuids import decode_uuid, encode_uuid

CHECKPOINT_VERSION = 0
PARTITION_METADATA_VERSION = 0
META_PROPERTIES_VERSION = 1
"""Version 0 is that of brokers in ZooKeeper mode: `broker.id`, which may be missing, as may the cluster's id."""

_INTEGER = re.compile(r"[+-]?[0-9]{1,10}")


@dataclass(frozen=True, slots=True)
class MetaProperties:
    """Contents of meta.properties: the cluster and the node that a data folder belongs to. Source: Kafka's MetaProperties."""

    cluster_id: str | None
    node_id: int | None
    directory_id: uuid.UUID | None = None
    version: int = META_PROPERTIES_VERSION


def encode_leader_epochs(epochs: LeaderEpochs) -> bytes:
    """Return the content of leader-epoch-checkpoint."""
    lines = [
        CHECKPOINT_VERSION,
        len(epochs.entries),
        *(f"{entry.epoch} {entry.start_offset}" for entry in epochs.entries),
    ]
    return "".join(f"{line}\n" for line in lines).encode()


def decode_leader_epochs(content: bytes) -> LeaderEpochs:
    """Return the epochs in leader-epoch-checkpoint; an empty file, which Kafka creates first, has none.

    Raises UnreadableFileError.
    """
    lines = content.decode(errors="replace").splitlines()
    if len(lines) < 2:
        return LeaderEpochs()
    try:
        version, count = int(lines[0]), int(lines[1])
        entries = [EpochStart(*map(int, line.split())) for line in lines[2:]]
    except (ValueError, TypeError):
        raise UnreadableFileError("a line is malformed") from None
    if version != CHECKPOINT_VERSION:
        raise UnreadableFileError(f"version {version} is not supported, only {CHECKPOINT_VERSION}")
    if count != len(entries):
        raise UnreadableFileError(f"it announces {count} entries and has {len(entries)}")
    epochs = LeaderEpochs()
    for entry in entries:
        epochs = epochs.assign(*entry)
    return epochs


def encode_partition_metadata(topic_id: uuid.UUID) -> bytes:
    """Return the content of partition.metadata."""
    return f"version: {PARTITION_METADATA_VERSION}\ntopic_id: {encode_uuid(topic_id)}".encode()


def decode_partition_metadata(content: bytes) -> uuid.UUID:
    """Return the topic's id in partition.metadata; raises UnreadableFileError."""
    found = re.match(r"version:\s+(\d+)\s*\ntopic_id:\s+(\S+)", content.decode(errors="replace"))
    if found is None:
        raise UnreadableFileError("a line is malformed")
    try:
        topic_id = decode_uuid(found[2])
    except ValueError as error:
        raise UnreadableFileError(str(error)) from None
    if topic_id.int == 0:
        raise UnreadableFileError("the topic id is zero")
    return topic_id


def encode_meta_properties(properties: MetaProperties, *, date: str) -> bytes:
    """Return the content of meta.properties: Kafka's bytes, in the order of its map; `date` is a comment.

    Raises UnicodeEncodeError for a cluster id that is not Latin-1, as which Kafka reads the file.
    """
    values = {
        "node.id" if properties.version else "broker.id": None
        if properties.node_id is None
        else str(properties.node_id),
        "directory.id": None if properties.directory_id is None else encode_uuid(properties.directory_id),
        "version": str(properties.version),
        "cluster.id": properties.cluster_id,
    }
    lines = [write_property(name, value) for name, value in values.items() if value is not None]
    return "".join(("#\n", f"#{date}\n", *lines)).encode("latin-1")


def decode_meta_properties(content: bytes) -> MetaProperties:
    """Return the contents of meta.properties; raises UnreadableFileError."""
    try:
        values = parse_properties(content)
    except ValueError as error:
        raise UnreadableFileError(str(error)) from None
    version = values.get("version", "0").strip()
    if version not in {"0", "1"}:
        raise UnreadableFileError(f"version {version} is not supported, only 0 and 1")
    name = "node.id" if version == "1" else "broker.id"
    missing = [required for required in ("cluster.id", name) if version == "1" and required not in values]
    if missing:
        raise UnreadableFileError(f"{missing[0]} is missing")
    node, directory = values.get(name), values.get("directory.id")
    if node is not None and not _INTEGER.fullmatch(node):
        raise UnreadableFileError(f"{name} {node!r} is not a number")
    try:
        directory_id = None if directory is None else decode_uuid(directory)
    except ValueError as error:
        raise UnreadableFileError(f"directory.id {error}") from None
    return MetaProperties(values.get("cluster.id"), None if node is None else int(node), directory_id, int(version))

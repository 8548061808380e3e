"""The small text files next to a log: leader-epoch-checkpoint, partition.metadata, meta.properties."""

import uuid
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from kafka_log.errors import UnreadableFileError
from kafka_log.files.durable import replace_file
from kafka_log.format.epochs import LeaderEpochs
from kafka_log.format.names import LEADER_EPOCHS, META_PROPERTIES, PARTITION_METADATA
from kafka_log.format.text_files import (
    decode_leader_epochs,
    decode_partition_metadata,
    decode_properties,
    decode_uuid,
    encode_leader_epochs,
    encode_partition_metadata,
    encode_properties,
    encode_uuid,
)

META_PROPERTIES_VERSION = 1
"""Version 0 is that of brokers in ZooKeeper mode: `broker.id`, which may be missing, as may the cluster's id."""

Value = TypeVar("Value")


@dataclass(frozen=True, slots=True)
class MetaProperties:
    """Contents of meta.properties: to whom a data folder belongs. Source: Kafka's MetaProperties."""

    cluster_id: str | None
    node_id: int | None
    directory_id: uuid.UUID | None = None
    version: int = META_PROPERTIES_VERSION


def read_leader_epochs(folder: Path) -> LeaderEpochs:
    """Return the epochs of the log in `folder`; none without the file. Raises UnreadableFileError."""
    return _read(folder / LEADER_EPOCHS, decode_leader_epochs) or LeaderEpochs()


def write_leader_epochs(folder: Path, epochs: LeaderEpochs) -> None:
    """Replace the epochs of the log in `folder`."""
    replace_file(folder / LEADER_EPOCHS, encode_leader_epochs(epochs))


def read_topic_id(folder: Path) -> uuid.UUID | None:
    """Return the id of the log's topic in partition.metadata, None without the file. Raises UnreadableFileError."""
    return _read(folder / PARTITION_METADATA, decode_partition_metadata)


def write_topic_id(folder: Path, topic_id: uuid.UUID) -> None:
    """Write partition.metadata."""
    replace_file(folder / PARTITION_METADATA, encode_partition_metadata(topic_id))


def read_meta_properties(data_folder: Path) -> MetaProperties | None:
    """Return the contents of meta.properties, None when the folder is not formatted. Raises UnreadableFileError."""
    return _read(data_folder / META_PROPERTIES, _meta_properties)


def write_meta_properties(data_folder: Path, properties: MetaProperties) -> None:
    """Write meta.properties. Written last, it marks a formatted folder."""
    fields = {
        "version": str(properties.version),
        "cluster.id": properties.cluster_id,
        "node.id" if properties.version else "broker.id": None
        if properties.node_id is None
        else str(properties.node_id),
        "directory.id": None if properties.directory_id is None else encode_uuid(properties.directory_id),
    }
    replace_file(
        data_folder / META_PROPERTIES,
        encode_properties({name: value for name, value in fields.items() if value is not None}),
    )


def _meta_properties(content: bytes) -> MetaProperties:
    values = decode_properties(content)
    version = values.get("version", "0")
    if version not in {"0", "1"}:
        raise UnreadableFileError(f"version {version} is not supported, only 0 and 1")
    try:
        node = values.get("node.id" if version == "1" else "broker.id")
        directory = values.get("directory.id")
        properties = MetaProperties(
            cluster_id=values.get("cluster.id"),
            node_id=None if node is None else int(node),
            directory_id=None if directory is None else decode_uuid(directory),
            version=int(version),
        )
    except ValueError as error:
        raise UnreadableFileError(str(error)) from None
    if properties.version and (properties.cluster_id is None or properties.node_id is None):
        raise UnreadableFileError(f"{'cluster.id' if properties.cluster_id is None else 'node.id'} is missing")
    return properties


def _read(path: Path, decode: Callable[[bytes], Value]) -> Value | None:
    try:
        return decode(path.read_bytes())
    except FileNotFoundError:
        return None
    except (OSError, UnreadableFileError) as error:
        raise UnreadableFileError(f"Failed to read {path}: {error}") from None

"""The small text files next to a log: leader-epoch-checkpoint, partition.metadata, meta.properties."""

import time
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from kafka_log.errors import UnreadableFileError
from kafka_log.files.durable import replace_file
from kafka_log.format.epochs import LeaderEpochs
from kafka_log.format.names import LEADER_EPOCHS, META_PROPERTIES, PARTITION_METADATA
from kafka_log.format.text_files import (
    MetaProperties,
    decode_leader_epochs,
    decode_meta_properties,
    decode_partition_metadata,
    encode_leader_epochs,
    encode_meta_properties,
    encode_partition_metadata,
)
from kafka_wire.uuids import encode_uuid

MAX_META_PROPERTIES_BYTES = 65_536
"""Kafka writes about 150 bytes."""

DATE_FORMAT = "%a %b %d %H:%M:%S %Z %Y"
"""Of the comment in meta.properties: Java's Date.toString."""

RESERVED_IDS = 100
"""Kafka reserves the directory ids below (DirectoryId)."""

Value = TypeVar("Value")


def read_leader_epochs(folder: Path) -> LeaderEpochs:
    """Return the epochs of the log in `folder`; none without the file. Raises UnreadableFileError."""
    return read_decoded(folder / LEADER_EPOCHS, decode_leader_epochs) or LeaderEpochs()


def write_leader_epochs(folder: Path, epochs: LeaderEpochs) -> None:
    """Replace the epochs of the log in `folder`."""
    replace_file(folder / LEADER_EPOCHS, encode_leader_epochs(epochs))


def read_topic_id(folder: Path) -> uuid.UUID | None:
    """Return the id of the log's topic in partition.metadata, None without the file. Raises UnreadableFileError."""
    return read_decoded(folder / PARTITION_METADATA, decode_partition_metadata)


def write_topic_id(folder: Path, topic_id: uuid.UUID) -> None:
    """Write partition.metadata."""
    replace_file(folder / PARTITION_METADATA, encode_partition_metadata(topic_id))


def read_meta_properties(data_folder: Path) -> MetaProperties | None:
    """Return the contents of meta.properties, None when the folder is not formatted. Raises UnreadableFileError."""
    return read_decoded(data_folder / META_PROPERTIES, decode_meta_properties, MAX_META_PROPERTIES_BYTES)


def write_meta_properties(
    data_folder: Path, properties: MetaProperties, *, clock: Callable[[], float] = time.time
) -> None:
    """Write meta.properties. Written last, it marks a formatted folder. Raises LogWriteError and FlushFailedError."""
    date = time.strftime(DATE_FORMAT, time.localtime(clock()))
    replace_file(data_folder / META_PROPERTIES, encode_meta_properties(properties, date=date))


def draw_directory_id() -> uuid.UUID:
    """Draw a directory id: not a reserved one, and none that begins with a dash, which would be an option on a command line."""
    while True:
        drawn = uuid.uuid4()
        if drawn.int >= RESERVED_IDS and not encode_uuid(drawn).startswith("-"):
            return drawn


def read_decoded(path: Path, decode: Callable[[bytes], Value], max_bytes: int | None = None) -> Value | None:
    """Return what `decode` makes of a small file, None without the file. Raises UnreadableFileError, which names the file."""
    try:
        return decode(_content(path, max_bytes))
    except FileNotFoundError:
        return None
    except OSError as error:
        raise UnreadableFileError(f"Failed to read {path}: {error.strerror}") from error
    except UnreadableFileError as error:
        raise UnreadableFileError(f"Failed to read {path}: {error}") from None


def _content(path: Path, max_bytes: int | None) -> bytes:
    if max_bytes is None:
        return path.read_bytes()
    with path.open("rb") as file:
        content = file.read(max_bytes + 1)
    if len(content) > max_bytes:
        raise UnreadableFileError(f"it has over {max_bytes} bytes")
    return content

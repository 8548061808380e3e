"""Files of a formatted directory: meta.properties and checkpoints, written so that a crash leaves the old or the new file.

A file is written under a temporary name, flushed to the disk and renamed, and then its folder is flushed. meta.properties comes last:
a directory without it is not formatted, and is formatted again after a crash.
Source: PropertiesUtils, MetaProperties, MetaPropertiesEnsemble, BootstrapDirectory, FileRawSnapshotWriter of Kafka.
"""

import os
import re
import uuid
from dataclasses import dataclass
from pathlib import Path

from controller_core.shell.quorum.endpoints import format_uuid, parse_uuid
from controller_core.shell.quorum.java_properties import parse_properties, write_property
from controller_core.shell.quorum.setting_rules import SettingError

META_PROPERTIES = "meta.properties"
BOOTSTRAP_CHECKPOINT = "bootstrap.checkpoint"
METADATA_LOG = "__cluster_metadata-0"
QUORUM_CHECKPOINT = "00000000000000000000-0000000000.checkpoint"

TEMPORARY = ".tmp"
PART = ".part"
"""Suffix of a snapshot that is being written, as in Kafka."""

MAX_META_PROPERTIES_BYTES = 65_536
"""Kafka writes about 150 bytes."""

_READ_ONLY = 0o400
"""Mode of a snapshot, as in Kafka."""
_VERSION = "1"
_LOG_FOLDER = re.compile(r".+-\d+")


class DirectoryError(ValueError):
    """A directory cannot be formatted; the message names it."""


@dataclass(frozen=True, slots=True)
class MetaProperties:
    """The identity of a formatted directory."""

    cluster_id: str | None
    node_id: int | None
    directory_id: uuid.UUID | None


def read_meta_properties(directory: Path) -> MetaProperties | None:
    """Return the identity of a directory; None: it is not formatted. Raises DirectoryError."""
    path = directory / META_PROPERTIES
    try:
        with path.open("rb") as file:
            values = parse_properties(file.read(MAX_META_PROPERTIES_BYTES))
    except FileNotFoundError:
        return None
    except OSError as error:
        raise DirectoryError(f"{path} cannot be read: {error.strerror}.") from error
    except ValueError as error:
        raise DirectoryError(f"{path} is not a properties file: {error}") from error
    version = values.get("version", "0").strip()
    if version not in {"0", _VERSION}:
        raise DirectoryError(f"{path} has the unknown version {version}.")
    number = values.get("node.id" if version == _VERSION else "broker.id")
    if version == _VERSION and (number is None or "cluster.id" not in values):
        raise DirectoryError(f"{path} lacks {'node.id' if number is None else 'cluster.id'}.")
    if number is not None and not re.fullmatch(r"[+-]?[0-9]{1,10}", number):
        raise DirectoryError(f"{path} has the node id {number!r}, which is not a number.")
    try:
        directory_id = parse_uuid(values["directory.id"]) if "directory.id" in values else None
    except SettingError as error:
        raise DirectoryError(f"{path} has a malformed directory.id: {error}") from error
    return MetaProperties(values.get("cluster.id"), None if number is None else int(number), directory_id)


def data_in(directory: Path) -> str | None:
    """Return the name of a log in a directory that is not formatted; None: there is none. Raises DirectoryError.

    The files of a format that did not end are no data.
    """
    try:
        folders = sorted(one for one in directory.iterdir() if _LOG_FOLDER.fullmatch(one.name) and one.is_dir())
        for folder in folders:
            names = {one.name for one in folder.iterdir()}
            if folder.name != METADATA_LOG or names - {QUORUM_CHECKPOINT, QUORUM_CHECKPOINT + PART}:
                return folder.name
    except FileNotFoundError:
        return None
    except OSError as error:
        raise DirectoryError(f"{directory} cannot be read: {error.strerror}.") from error
    return None


def write_directory(
    directory: Path, meta_properties: bytes, bootstrap_checkpoint: bytes, quorum_checkpoint: bytes | None
) -> None:
    """Write the files of a directory, which is created when it is missing. Raises DirectoryError."""
    try:
        _make_folder(directory)
        write_whole(directory / BOOTSTRAP_CHECKPOINT, bootstrap_checkpoint, suffix=TEMPORARY)
        if quorum_checkpoint is not None:
            _make_folder(directory / METADATA_LOG)
            write_whole(directory / METADATA_LOG / QUORUM_CHECKPOINT, quorum_checkpoint, suffix=PART, is_read_only=True)
        write_whole(directory / META_PROPERTIES, meta_properties, suffix=TEMPORARY)
    except OSError as error:
        raise DirectoryError(f"Failed to write {error.filename or directory}: {error.strerror}.") from error


def write_whole(path: Path, data: bytes, *, suffix: str, is_read_only: bool = False) -> None:
    """Replace a file by `data`, so that it has all or nothing of it after a crash. Raises OSError."""
    temporary = path.with_name(path.name + suffix)
    temporary.unlink(missing_ok=True)
    try:
        with temporary.open("xb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
            if is_read_only:
                os.fchmod(file.fileno(), _READ_ONLY)
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    _flush_folder(path.parent)


def _make_folder(folder: Path) -> None:
    """Create a folder with its parents, and flush the entry of each."""
    missing = [one for one in (folder, *folder.parents) if not one.exists()]
    folder.mkdir(parents=True, exist_ok=True)
    for one in missing:
        _flush_folder(one.parent)


def _flush_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def encode_meta_properties(cluster_id: str, node_id: int, directory_id: uuid.UUID, *, date: str) -> bytes:
    """Return the bytes of meta.properties as Kafka writes them, in the order of its map; `date` is a comment."""
    values = {
        "node.id": str(node_id),
        "directory.id": format_uuid(directory_id),
        "version": _VERSION,
        "cluster.id": cluster_id,
    }
    return "".join(("#\n", f"#{date}\n", *(write_property(*value) for value in values.items()))).encode()

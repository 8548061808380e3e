"""Directories of a running node: their locks, whether they belong to this node, and their ids.

Source: Kafka's MetaPropertiesEnsemble, KafkaRaftServer and LogManager.
"""

import logging
from collections.abc import Iterable, Mapping
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

from controller_core.shell.quorum.settings import QuorumSettings
from kafka_log.errors import LogError
from kafka_log.files.lock import FolderLock
from kafka_log.files.text_files import draw_directory_id, read_meta_properties, write_meta_properties
from kafka_log.format.names import META_PROPERTIES
from kafka_log.format.text_files import MetaProperties
from kafka_wire.uuids import encode_uuid

log = logging.getLogger(__name__)


class StartError(Exception):
    """A node that cannot start; the text has what happened, to what, and what to do."""


def lock_directories(stack: ExitStack, directories: Iterable[Path]) -> None:
    """Lock directories until the stack ends. Raises StartError."""
    for directory in directories:
        try:
            stack.enter_context(FolderLock(directory))
        except LogError as error:
            raise StartError(f"{error} Stop that process, or give this node another directory in log.dirs.") from error
        except FileNotFoundError:
            raise _not_formatted(directory) from None
        except OSError as error:
            raise StartError(
                f"Failed to lock {directory}: {error.strerror}. Check the owner of the directory."
            ) from error


def check_directories(settings: QuorumSettings) -> dict[Path, MetaProperties]:
    """Return the identities in all directories. Raises StartError."""
    try:
        found = {directory: read_meta_properties(directory) for directory in settings.all_directories}
    except LogError as error:
        raise StartError(
            f"{error} Restore the file from a backup, or remove this voter from the quorum and format an empty directory."
        ) from error
    metas = {directory: _formatted(directory, meta, settings.node_id) for directory, meta in found.items()}
    _check_same_cluster(metas)
    return metas


def complete_directory_ids(settings: QuorumSettings) -> MetaProperties:
    """Write an id into each meta.properties that has none, and return the identity in the directory of the metadata log.

    Kafka's format writes directory ids since 3.7, and each start since then adds missing ones. The directories must be locked. Raises
    StartError.
    """
    metas = check_directories(settings)
    taken = {meta.directory_id for meta in metas.values()}
    for directory, meta in metas.items():
        if meta.directory_id is None:
            drawn = draw_directory_id()
            while drawn in taken:
                drawn = draw_directory_id()
            metas[directory] = replace(meta, directory_id=drawn)
            taken.add(drawn)
            try:
                write_meta_properties(directory, metas[directory])
            except LogError as error:
                raise StartError(f"{error} Check the disk and the owner of the directory.") from error
            log.info("Added an id to a directory", extra={"path": str(directory), "directory_id": encode_uuid(drawn)})
    return metas[settings.metadata_log_directory]


def _not_formatted(directory: Path) -> StartError:
    return StartError(f"{directory} is not formatted. Run `steward format` with the properties file of this node.")


def _formatted(directory: Path, meta: MetaProperties | None, node_id: int) -> MetaProperties:
    if meta is None:
        raise _not_formatted(directory)
    path = directory / META_PROPERTIES
    if meta.node_id not in {None, node_id}:
        raise StartError(
            f"{path} belongs to node {meta.node_id}, but node.id is {node_id}. Correct node.id, or log.dirs if this is the "
            "directory of another node."
        )
    if meta.cluster_id is None:
        raise StartError(f"{path} has no cluster.id. Format the directory again, or restore the file from a backup.")
    return meta


def _check_same_cluster(metas: Mapping[Path, MetaProperties]) -> None:
    (first, expected), *others = metas.items()
    for directory, meta in others:
        if meta.cluster_id != expected.cluster_id:
            raise StartError(
                f"{first} belongs to cluster {expected.cluster_id}, but {directory} to cluster {meta.cluster_id}. Remove the "
                "directory of the other cluster from log.dirs."
            )

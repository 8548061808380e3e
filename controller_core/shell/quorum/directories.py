"""Directories of a running node: their locks, and whether they belong to this node.

Source: Kafka's MetaPropertiesEnsemble and LogManager.
"""

from collections.abc import Iterable, Mapping
from contextlib import ExitStack
from pathlib import Path

from controller_core.shell.quorum.settings import QuorumSettings
from kafka_log.errors import LogError
from kafka_log.files.lock import FolderLock
from kafka_log.files.text_files import read_meta_properties
from kafka_log.format.names import META_PROPERTIES
from kafka_log.format.text_files import MetaProperties


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


def check_directories(settings: QuorumSettings) -> MetaProperties:
    """Return the identity in the directory of the metadata log. Raises StartError."""
    try:
        found = {directory: read_meta_properties(directory) for directory in settings.all_directories}
    except LogError as error:
        raise StartError(
            f"{error} Restore the file from a backup, or remove this voter from the quorum and format an empty directory."
        ) from error
    metas = {directory: _formatted(directory, meta, settings.node_id) for directory, meta in found.items()}
    _check_same_cluster(metas)
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

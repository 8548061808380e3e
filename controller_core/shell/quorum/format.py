"""Formatting of a controller's directories, as kafka-storage format does it.

All directories are checked before the first one is written. Differences from Kafka's tool: only controllers are formatted, an
unreadable directory is an error, and a directory with a log but without meta.properties is refused.
Source: StorageTool and Formatter of Kafka.
"""

import secrets
import time
import uuid
from collections.abc import Callable, Collection, Iterable
from contextlib import ExitStack
from pathlib import Path

from controller_core.shell.quorum import format_checkpoints, format_files
from controller_core.shell.quorum.format_plan import FormatError, FormatOptions, FormatPlan, plan_format
from controller_core.shell.quorum.settings import QuorumSettings
from kafka_log.errors import LogError, UnreadableFileError
from kafka_log.files.lock import FolderLock
from kafka_log.files.text_files import draw_directory_id, read_meta_properties
from kafka_log.format.names import LOCK, META_PROPERTIES
from kafka_log.format.text_files import MetaProperties
from kafka_metadata.metadata_versions import KRAFT_VERSION
from kafka_wire.uuids import encode_uuid

SALT_BYTES = 26
"""As many as Kafka's salts have."""

_Report = Callable[[str], None]


def format_storage(settings: QuorumSettings, options: FormatOptions, report: _Report) -> None:
    """Format the directories of a controller that are not formatted, and report each as a sentence. Raises FormatError."""
    plan = plan_format(settings, options, draw_id=draw_directory_id, draw_salt=lambda: secrets.token_bytes(SALT_BYTES))
    with ExitStack() as locks:
        _format_all(settings, plan, options, report, locks)


def _format_all(
    settings: QuorumSettings, plan: FormatPlan, options: FormatOptions, report: _Report, locks: ExitStack
) -> None:
    try:
        formatted = {directory: read_meta_properties(directory) for directory in settings.all_directories}
        _check_identity(plan, {path: meta for path, meta in formatted.items() if meta is not None})
        empty = [directory for directory, meta in formatted.items() if meta is None]
        _check_empty(formatted, empty, ignore_formatted=options.ignore_formatted)
        _lock(empty, locks)
        taken = {meta.directory_id for meta in formatted.values() if meta is not None and meta.directory_id}
        for directory in empty:
            taken.add(
                _format(directory, plan, report, taken, has_metadata=directory == settings.metadata_log_directory)
            )
    except LogError as error:
        raise FormatError(f"{str(error).removesuffix('.')}.") from error
    if not empty:
        report("All of the log directories are already formatted.")


def _check_identity(plan: FormatPlan, formatted: dict[Path, MetaProperties]) -> None:
    seen: dict[uuid.UUID, Path] = {}
    for directory, meta in formatted.items():
        path = directory / META_PROPERTIES
        if meta.cluster_id not in {None, plan.cluster_id}:
            raise FormatError(
                f"Invalid cluster.id in {path}: expected {plan.cluster_id}, but read {meta.cluster_id}. The directory belongs "
                "to another cluster."
            )
        if meta.node_id not in {None, plan.node_id}:
            raise FormatError(
                f"Invalid node.id in {path}: expected {plan.node_id}, but read {meta.node_id}. The directory belongs to "
                "another node."
            )
        if meta.directory_id is None:
            continue
        if meta.directory_id in seen:
            raise FormatError(f"{directory} and {seen[meta.directory_id]} have the same directory.id: one is a copy.")
        seen[meta.directory_id] = directory


def _check_empty(formatted: Collection[Path], empty: list[Path], *, ignore_formatted: bool) -> None:
    first = next((directory for directory in formatted if directory not in empty), None)
    if first is not None and not ignore_formatted:
        raise FormatError(
            f"Log directory {first} is already formatted. Use --ignore-formatted to ignore this directory and format the others."
        )
    for directory in empty:
        name = format_files.data_in(directory)
        if name is not None:
            raise FormatError(
                f"Log directory {directory} has no {META_PROPERTIES} but has data in {name}: restore {META_PROPERTIES}, or "
                "empty the directory if its data is not needed. A voter that is formatted after it has voted may vote twice."
            )


def _lock(directories: Iterable[Path], locks: ExitStack) -> None:
    """Lock the directories that a process has used. A process may still use one that has lost its meta.properties.

    Others have no lock file, and get none: Kafka's tool writes none either. Raises FolderLockedError and UnreadableFileError.
    """
    for directory in directories:
        if (directory / LOCK).exists():
            try:
                locks.enter_context(FolderLock(directory))
            except OSError as error:
                raise UnreadableFileError(f"Failed to lock {directory}: {error.strerror}") from error


def _format(
    directory: Path, plan: FormatPlan, report: _Report, taken: Collection[uuid.UUID], *, has_metadata: bool
) -> uuid.UUID:
    """Write one directory and return its id."""
    now_ms = time.time_ns() // 1_000_000
    directory_id = plan.own_directory_id if has_metadata else None
    if directory_id is not None and directory_id in taken:
        raise FormatError(f"The directory.id {encode_uuid(directory_id)} of {directory} is that of another directory.")
    while directory_id is None or directory_id in taken:
        directory_id = draw_directory_id()
    snapshot = None
    if has_metadata and plan.voters:
        kraft_version = plan.levels[KRAFT_VERSION]
        snapshot = format_checkpoints.quorum_checkpoint(
            plan.voters, kraft_version=kraft_version, listener=plan.listener, now_ms=now_ms
        )
    format_files.write_directory(
        directory,
        MetaProperties(plan.cluster_id, plan.node_id, directory_id),
        format_checkpoints.bootstrap_checkpoint(plan.records, now_ms=now_ms),
        snapshot,
    )
    kind = "data" if not has_metadata else "metadata" if snapshot is None else "dynamic metadata"
    report(
        f"Formatted {kind} directory {directory} with metadata.version {plan.metadata_version}, directory.id "
        f"{encode_uuid(directory_id)}."
    )
    return directory_id

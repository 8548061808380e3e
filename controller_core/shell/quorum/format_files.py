"""Files of a formatted directory: in an order in which a crash leaves a directory that is not formatted, or one that is.

meta.properties comes last: a directory without it is not formatted, and is formatted again after a crash.
Source: MetaPropertiesEnsemble, BootstrapDirectory and Formatter of Kafka.
"""

import re
from collections.abc import Iterable
from pathlib import Path

from kafka_log.errors import UnreadableFileError
from kafka_log.files.durable import make_folder, replace_file
from kafka_log.files.snapshots import delete_unneeded_snapshots, write_snapshot
from kafka_log.files.text_files import write_meta_properties
from kafka_log.format.names import BOOTSTRAP_CHECKPOINT, BOOTSTRAP_SNAPSHOT, CLUSTER_METADATA_FOLDER, snapshot_of
from kafka_log.format.text_files import MetaProperties

_LOG_FOLDER = re.compile(r".+-\d+")


def data_in(directory: Path) -> str | None:
    """Return the name of a log in a directory that is not formatted; None: there is none. Raises UnreadableFileError.

    The files of a format that did not end are no data.
    """
    try:
        folders = sorted(
            folder for folder in directory.iterdir() if _LOG_FOLDER.fullmatch(folder.name) and folder.is_dir()
        )
        for folder in folders:
            if folder.name != CLUSTER_METADATA_FOLDER or not all(map(_is_of_format, folder.iterdir())):
                return folder.name
    except FileNotFoundError:
        return None
    except OSError as error:
        raise UnreadableFileError(f"Failed to read {directory}: {error.strerror}") from error
    return None


def _is_of_format(path: Path) -> bool:
    """Whether a file is the snapshot that formatting writes, whole or in part."""
    found = snapshot_of(path.name)
    return found is not None and found[0] == BOOTSTRAP_SNAPSHOT


def write_directory(
    directory: Path,
    meta_properties: MetaProperties,
    bootstrap_checkpoint: bytes,
    quorum_checkpoint: Iterable[bytes] | None,
) -> None:
    """Write the files of a directory, which is created when it is missing. Raises LogWriteError and FlushFailedError."""
    make_folder(directory)
    replace_file(directory / BOOTSTRAP_CHECKPOINT, bootstrap_checkpoint)
    if quorum_checkpoint is not None:
        folder = directory / CLUSTER_METADATA_FOLDER
        make_folder(folder)
        delete_unneeded_snapshots(folder, 0)
        write_snapshot(folder, BOOTSTRAP_SNAPSHOT, quorum_checkpoint)
    write_meta_properties(directory, meta_properties)

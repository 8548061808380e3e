"""Formatting of a broker's log directories for a KRaft cluster, as kafka-storage format does it: each gets a meta.properties.

All directories are checked before the first one is written. Source: StorageTool and Formatter of Kafka.
"""

import re
from collections.abc import Callable
from pathlib import Path

from kafka_log.errors import LogError
from kafka_log.files.durable import make_folder
from kafka_log.files.text_files import draw_directory_id, read_meta_properties, write_meta_properties
from kafka_log.format.names import META_PROPERTIES
from kafka_log.format.text_files import MetaProperties
from kafka_wire.uuids import encode_uuid
from light_broker.shell.settings_reading import BrokerSettings

_LOG_FOLDER = re.compile(r".+-\d+")


class FormatError(ValueError):
    """The directories cannot be formatted; the message is a sentence."""


def format_broker(
    settings: BrokerSettings, cluster_id: str, *, ignore_formatted: bool, report: Callable[[str], None]
) -> None:
    """Format the directories of a broker that are not formatted, and report each as a sentence. Raises FormatError."""
    if not cluster_id or not cluster_id.isascii():
        raise FormatError("The cluster id must be ASCII, and not empty.")
    node_id = settings.values.node_id
    try:
        empty = [path for path in settings.log_directories if not _is_formatted(path, cluster_id, node_id)]
        first = next((path for path in settings.log_directories if path not in empty), None)
        if first is not None and not ignore_formatted:
            raise FormatError(
                f"Log directory {first} is already formatted. Use --ignore-formatted to ignore this directory and format the "
                "others."
            )
        for path in empty:
            _check_empty(path)
        for path in empty:
            properties = MetaProperties(cluster_id, node_id, draw_directory_id())
            make_folder(path)
            write_meta_properties(path, properties)
            assert properties.directory_id is not None
            report(f"Formatted data directory {path} with directory.id {encode_uuid(properties.directory_id)}.")
    except (LogError, OSError) as error:
        raise FormatError(f"{str(error).removesuffix('.')}.") from error
    if not empty:
        report("All of the log directories are already formatted.")


def _is_formatted(path: Path, cluster_id: str, node_id: int) -> bool:
    """Return whether a directory is formatted for this broker. Raises FormatError for one of another cluster or node."""
    properties = read_meta_properties(path)
    if properties is None:
        return False
    for name, expected, found in (
        ("cluster.id", cluster_id, properties.cluster_id),
        ("node.id", node_id, properties.node_id),
    ):
        if found not in {None, expected}:
            raise FormatError(f"Invalid {name} in {path / META_PROPERTIES}: expected {expected}, but read {found}.")
    return True


def _check_empty(path: Path) -> None:
    if not path.is_dir():
        return
    for folder in sorted(path.iterdir()):
        if folder.is_dir() and _LOG_FOLDER.fullmatch(folder.name):
            raise FormatError(
                f"Log directory {path} has no {META_PROPERTIES} but has data in {folder.name}: restore {META_PROPERTIES}, or "
                "empty the directory if its data is not needed."
            )

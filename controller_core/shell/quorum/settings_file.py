"""The properties file of a controller: reading it, and logging the names in it that have no effect."""

import logging
from pathlib import Path

from controller_core.shell.quorum.settings_reading import ReadSettings, read_settings
from kafka_log.format.java_properties import parse_properties
from kafka_node.configs.setting_rules import SettingError

log = logging.getLogger(__name__)

MAX_FILE_BYTES = 1_048_576
"""Kafka's largest example has 20 kB; a larger file is a wrong path."""

MAX_UNKNOWN_LOGGED = 20
"""Unknown names with a line each; a file with more is of another program, and one line has the number of the others."""


def read_settings_file(path: Path) -> ReadSettings:
    """Read and check the settings in a file. Raises SettingError."""
    try:
        with path.open("rb") as file:
            data = file.read(MAX_FILE_BYTES + 1)
    except OSError as error:
        raise SettingError(f"{path} cannot be read: {error.strerror}") from error
    if len(data) > MAX_FILE_BYTES:
        raise SettingError(f"{path} has over {MAX_FILE_BYTES} bytes")
    try:
        values = parse_properties(data)
    except ValueError as error:
        raise SettingError(f"{path} is not a properties file: {error}") from error
    return read_settings(values)


def log_ignored(read: ReadSettings) -> None:
    """Log the names without effect: a line for each unknown name, and one line for all that only Kafka uses."""
    for name in read.unknown[:MAX_UNKNOWN_LOGGED]:
        log.warning("Ignoring unknown setting", extra={"setting": name})
    if len(read.unknown) > MAX_UNKNOWN_LOGGED:
        log.warning("Ignoring more unknown settings", extra={"count": len(read.unknown) - MAX_UNKNOWN_LOGGED})
    if read.unused:
        log.warning("Ignoring settings of Kafka that Steward does not use", extra={"settings": list(read.unused)})


def ignored_lines(read: ReadSettings) -> list[str]:
    """Return the same as sentences, for a command."""
    lines = [f"Ignoring the unknown setting {name}." for name in read.unknown[:MAX_UNKNOWN_LOGGED]]
    if len(read.unknown) > MAX_UNKNOWN_LOGGED:
        lines.append(f"Ignoring {len(read.unknown) - MAX_UNKNOWN_LOGGED} more unknown settings.")
    if read.unused:
        lines.append(f"Ignoring settings of Kafka that Steward does not use: {', '.join(read.unused)}.")
    return lines

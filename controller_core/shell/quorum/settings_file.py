"""The properties file of a controller."""

from pathlib import Path

from controller_core.shell.quorum.settings_reading import ReadSettings, read_settings
from kafka_log.files.properties_file import read_properties_file
from kafka_node.configs.setting_rules import SettingError


def read_settings_file(path: Path) -> ReadSettings:
    """Read and check the settings in a file. Raises SettingError."""
    try:
        values = read_properties_file(path)
    except ValueError as error:
        raise SettingError(str(error)) from error
    return read_settings(values)

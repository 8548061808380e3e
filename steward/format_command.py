"""`steward format`: formats the directories of a controller or of a broker in a KRaft cluster, as kafka-storage format does."""

import sys

from controller_core.shell.quorum.format import format_storage
from controller_core.shell.quorum.format_plan import FormatError, FormatOptions
from controller_core.shell.quorum.settings_file import read_settings_file
from kafka_log.files.properties_file import read_properties_file
from kafka_node.configs.setting_rules import SettingError
from kafka_node.ignored_settings import ignored_lines
from light_broker.shell.format import FormatError as BrokerFormatError
from light_broker.shell.format import format_broker
from light_broker.shell.settings_reading import read_settings
from steward.options.formatting import StorageOptions, VoterOptions

EXIT_OK, EXIT_FAILED = 0, 1

BROKER = "broker"
"""process.roles of a broker; a controller has another value, or none."""


def run_format(storage: StorageOptions, voters: VoterOptions) -> int:
    """Format the directories, print a line for each, and return the exit code."""
    try:
        values = _values(storage)
        if values.get("process.roles", "").strip() == BROKER:
            _format_broker(storage, values)
        else:
            _format_controller(storage, voters)
    except (SettingError, FormatError, BrokerFormatError) as error:
        sys.stderr.write(f"steward format: {error}\n")
        return EXIT_FAILED
    return EXIT_OK


def _values(storage: StorageOptions) -> dict[str, str]:
    try:
        return dict(read_properties_file(storage.config))
    except ValueError as error:
        raise SettingError(str(error)) from error


def _format_broker(storage: StorageOptions, values: dict[str, str]) -> None:
    """Format a broker's directories: the first metadata of a cluster is written by its controllers."""
    read = read_settings(values)
    for line in ignored_lines(read):
        sys.stderr.write(f"steward format: {line}\n")
    if storage.feature or storage.release_version or storage.add_scram:
        sys.stderr.write(
            "steward format: features and users are formatted with the controllers; ignored for a broker\n"
        )
    format_broker(read.settings, storage.cluster_id, ignore_formatted=storage.ignore_formatted, report=print)


def _format_controller(storage: StorageOptions, voters: VoterOptions) -> None:
    options = FormatOptions(
        cluster_id=storage.cluster_id,
        is_standalone=voters.standalone,
        initial_controllers=voters.initial_controllers,
        has_no_initial_controllers=voters.no_initial_controllers,
        features=tuple(storage.feature or ()),
        release_version=storage.release_version,
        scram=tuple(storage.add_scram or ()),
        ignore_formatted=storage.ignore_formatted,
    )
    read = read_settings_file(storage.config)
    for line in ignored_lines(read):
        sys.stderr.write(f"steward format: {line}\n")
    format_storage(read.settings, options, print)

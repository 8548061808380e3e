"""`steward format`: formats the directories of a controller in a KRaft quorum, as kafka-storage format does."""

import sys

from controller_core.shell.quorum.format import format_storage
from controller_core.shell.quorum.format_plan import FormatError, FormatOptions
from controller_core.shell.quorum.settings_file import read_settings_file
from kafka_node.configs.setting_rules import SettingError
from kafka_node.ignored_settings import ignored_lines
from steward.options.formatting import StorageOptions, VoterOptions

EXIT_OK, EXIT_FAILED = 0, 1


def run_format(storage: StorageOptions, voters: VoterOptions) -> int:
    """Format the directories, print a line for each, and return the exit code."""
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
    try:
        read = read_settings_file(storage.config)
        for line in ignored_lines(read):
            sys.stderr.write(f"steward format: {line}\n")
        format_storage(read.settings, options, print)
    except (SettingError, FormatError) as error:
        sys.stderr.write(f"steward format: {error}\n")
        return EXIT_FAILED
    return EXIT_OK

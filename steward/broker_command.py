"""`steward broker`: runs a light broker until a signal or an error, and returns its exit code."""

import asyncio
import logging
import signal
import sys
from collections.abc import Mapping

from kafka_log.errors import LogError
from kafka_node.configs.setting_rules import SettingError
from kafka_node.freed_memory import MAX_KEPT_BLOCK_BYTES, keep_freed_memory
from kafka_node.ignored_settings import log_ignored
from light_broker.control.port import ControlPlaneError
from light_broker.control.standalone.state_file import StateFileError
from light_broker.shell.binding import BindError
from light_broker.shell.logs.errors import NoLogDirectoryError, WrongFolderError
from light_broker.shell.process import BrokerProcess, ProcessOptions
from light_broker.shell.settings_reading import BrokerSettings, read_settings_file
from steward.options.broker import BrokerOptions

log = logging.getLogger(__name__)

EXIT_WRONG_SETTINGS = 2
"""The same as typer's exit code for wrong options."""
EXIT_FAILED = 1

START_ERRORS = (StateFileError, BindError, ControlPlaneError, WrongFolderError, NoLogDirectoryError, LogError, OSError)
"""Errors whose messages have what to do; all others are defects of this program."""

QUICKSTART: Mapping[str, str] = {
    "node.id": "1",
    "listeners": "PLAINTEXT://127.0.0.1:9092",
    "log.dirs": "steward-broker",
}
"""Settings of a standalone broker without a file: only this machine reaches it."""

KEPT_BLOCK_BYTES = MAX_KEPT_BLOCK_BYTES
"""62 MiB at the end of the heap stay: two responses to a follower (replica.fetch.response.max.bytes, 10 MiB) and as many Produce requests of 1 MiB
in flight, with the copies of their records. With half of it a fifth of the time of replication is page faults (ADR 51)."""


def run_broker(options: BrokerOptions) -> int:
    """Run until SIGTERM or SIGINT; returns the exit code."""
    try:
        overrides = _overrides(options.override or [])
        values = overrides if options.config else {**QUICKSTART, **overrides}
        read = read_settings_file(options.config, values, is_standalone=options.standalone)
    except SettingError as error:
        return _failed(error, EXIT_WRONG_SETTINGS)
    if not options.standalone and read.settings.zookeeper is None and read.settings.kraft is None:
        message = (
            "the settings name no controllers: set process.roles=broker and controller.quorum.bootstrap.servers, or "
            "zookeeper.connect, or add --standalone"
        )
        return _failed(SettingError(message), EXIT_WRONG_SETTINGS)
    log_ignored(read)
    keep_freed_memory(KEPT_BLOCK_BYTES)
    process_options = ProcessOptions(metrics_host=options.metrics_host, metrics_port=options.metrics_port)
    return asyncio.run(_run(read.settings, process_options))


def _overrides(given: list[str]) -> dict[str, str]:
    found = {}
    for entry in given:
        name, sign, value = entry.partition("=")
        if not sign or not name.strip():
            raise SettingError(f"--override {entry!r} is not NAME=VALUE")
        found[name.strip()] = value.strip()
    return found


async def _run(settings: BrokerSettings, options: ProcessOptions) -> int:
    try:
        process = BrokerProcess(settings, options)
    except ValueError as error:  # wrong TLS files: the message names the file and shows nothing of its contents
        return _failed(error, EXIT_WRONG_SETTINGS)
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, process.stop)
    try:
        await process.run()
    except START_ERRORS as error:
        return _failed(error, EXIT_FAILED)
    except Exception:
        log.exception("Broker ended after an error")
        return EXIT_FAILED
    return 0


def _failed(error: Exception, code: int) -> int:
    log.error("Broker cannot run", extra={"error": str(error)})
    sys.stderr.write(f"steward broker: {error}\n")
    return code

"""`steward quorum`: runs a node of a KRaft quorum until a signal or an error, and returns its exit code."""

import asyncio
import gc
import logging
import signal
import sys
from uuid import UUID

from controller_core.shell.kraft.state_machine import KRaftStateMachine
from controller_core.shell.quorum.directories import StartError
from controller_core.shell.quorum.endpoints import parse_uuid
from controller_core.shell.quorum.process import METADATA_TOPIC, NodeOptions, QuorumProcess
from controller_core.shell.quorum.settings import QuorumSettings
from controller_core.shell.quorum.settings_file import read_settings_file
from controller_core.shell.quorum.wire_requests import LogTopic
from kafka_log.errors import LogError
from kafka_node.configs.setting_rules import SettingError
from kafka_node.ignored_settings import log_ignored
from steward.options.quorum import QuorumOptions

log = logging.getLogger(__name__)

EXIT_WRONG_SETTINGS = 2
"""The same as typer's exit code for wrong options."""
EXIT_FAILED = 1


def run_quorum(options: QuorumOptions) -> int:
    """Run until SIGTERM or SIGINT; returns the exit code."""
    try:
        read = read_settings_file(options.config)
        node_options = NodeOptions(
            topic=LogTopic(options.topic, _topic_id(options.topic_id)),
            metrics_host=options.metrics_host,
            metrics_port=options.metrics_port,
        )
    except SettingError as error:
        return _failed(error, EXIT_WRONG_SETTINGS)
    log_ignored(read)
    return asyncio.run(_run(read.settings, node_options))


def _topic_id(text: str | None) -> UUID:
    return METADATA_TOPIC.id if text is None else parse_uuid(text)


async def _run(settings: QuorumSettings, options: NodeOptions) -> int:
    try:
        process = QuorumProcess(settings, options, KRaftStateMachine if options.topic == METADATA_TOPIC else None)
    except (
        StartError,
        ValueError,
    ) as error:  # wrong TLS files: the message names the file and shows nothing of its contents
        return _failed(error, EXIT_WRONG_SETTINGS)
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, process.stop)
    # All modules are loaded and stay in memory; a garbage collection over them would block the event loop for 40 ms.
    gc.freeze()
    try:
        await process.run()
    except (StartError, LogError, OSError) as error:
        return _failed(error, EXIT_FAILED)
    except Exception:  # a defect, of which the driver has logged the traceback
        log.exception("Node of the quorum ended after an error")
        return EXIT_FAILED
    return 0


def _failed(error: Exception, code: int) -> int:
    log.error("Node of the quorum cannot run", extra={"error": str(error)})
    sys.stderr.write(f"steward quorum: {error}\n")
    return code

"""`steward controller`: runs a controller process until a signal or an error, and returns its exit code."""

import asyncio
import gc
import logging
import signal
import sys

from controller_core.shell.process import ControllerProcess
from controller_core.shell.settings import ControllerSettings
from controller_core.shell.startup_checks import IdentityError, PolicyError
from kafka_zookeeper.errors import ZooKeeperError

log = logging.getLogger(__name__)

EXIT_WRONG_SETTINGS = 2
"""The same as typer's exit code for wrong options."""
EXIT_FAILED = 1


def run_controller(settings: ControllerSettings) -> int:
    """Run until SIGTERM or SIGINT; returns the exit code."""
    return asyncio.run(_run(settings))


async def _run(settings: ControllerSettings) -> int:
    try:
        process = ControllerProcess(settings)
    except ValueError as error:  # wrong TLS or SASL files; the message names the file and shows nothing of its contents
        return _failed(error, EXIT_WRONG_SETTINGS)
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, process.stop)
    # All modules are loaded and stay in memory; a garbage collection over them would block the event loop for 40 ms.
    gc.freeze()
    try:
        await process.run()
    except (IdentityError, PolicyError) as error:
        return _failed(error, EXIT_WRONG_SETTINGS)
    except (ZooKeeperError, OSError) as error:
        return _failed(error, EXIT_FAILED)
    return 0


def _failed(error: Exception, code: int) -> int:
    log.error("Controller cannot run", extra={"error": str(error)})
    sys.stderr.write(f"steward controller: {error}\n")
    return code

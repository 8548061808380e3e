"""`steward controller`: from options to a running controller process. Leaves out what that process does."""

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
"""As typer's own exit code for options that cannot be."""
EXIT_FAILED = 1


def run_controller(settings: ControllerSettings) -> int:
    """Run until SIGTERM or SIGINT; returns the exit code."""
    return asyncio.run(_run(settings))


async def _run(settings: ControllerSettings) -> int:
    try:
        process = ControllerProcess(settings)
    except ValueError as error:  # files of security; a message names the file, and nothing of what is in it
        return _failed(error, EXIT_WRONG_SETTINGS)
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, process.stop)
    # What is loaded by now stays: a pass of the garbage collector over it would hold the event loop for 40 ms.
    gc.freeze()
    try:
        await process.run()
    except (IdentityError, PolicyError) as error:
        return _failed(error, EXIT_WRONG_SETTINGS)
    except (ZooKeeperError, OSError) as error:
        return _failed(error, EXIT_FAILED)
    return 0


def _failed(error: Exception, code: int) -> int:
    log.error("the controller cannot run", extra={"why": str(error)})
    sys.stderr.write(f"steward controller: {error}\n")
    return code

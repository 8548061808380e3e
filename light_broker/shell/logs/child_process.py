"""Work that computes, in a child process, so that it does not delay the event loop of the broker.

    parent -> child   a pickled function with its argument, behind its length
    child -> parent   a pickled result, or an exception with the OSError that caused it, and the log records

The child ends when its standard input is closed, so that none survives a broker that was killed. The parent's memory is not copied: the child
is a new Python.
"""

import asyncio
import logging
import os
import pickle
import struct
import sys
import threading
from collections.abc import Callable
from typing import TypeVar

Argument = TypeVar("Argument")
Result = TypeVar("Result")

_LENGTH = struct.Struct(">Q")

NICENESS = 10
"""Below the broker, which answers clients."""


class ChildFailedError(Exception):
    """A child process that ended without a result, such as one that the system killed for its memory."""


async def run_in_child(function: Callable[[Argument], Result], argument: Argument, *, what: str) -> Result:
    """Return what a module's function returns for an argument in a child process; both are pickled.

    Raises what it raises, and ChildFailedError. When the call is cancelled, the child is killed and awaited. `what` is for the error.
    """
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", __name__, stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE
    )
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        task = pickle.dumps((function, argument))
        process.stdin.write(_LENGTH.pack(len(task)) + task)
        await process.stdin.drain()
        answer = await process.stdout.read()
        status = await process.wait()
    except (BrokenPipeError, ConnectionResetError):
        answer, status = b"", await process.wait()
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    if status != 0 or not answer:
        raise ChildFailedError(f"The process that runs {what} ended with status {status} without a result.")
    result, error, cause, records = pickle.loads(answer)  # noqa: S301 - from a process of the same program
    for record in records:
        logging.getLogger(record.name).handle(record)
    if error is not None:
        raise error from cause
    returned: Result = result
    return returned


class _Records(logging.Handler):
    """Collects log records, which the parent logs."""

    def __init__(self) -> None:
        super().__init__()
        self.records: list[logging.LogRecord] = []

    def emit(self, record: logging.LogRecord) -> None:
        record.msg, record.args, record.exc_info = record.getMessage(), None, None
        self.records.append(record)


def main() -> None:
    """Run one task of the parent."""
    os.nice(NICENESS)
    (length,) = _LENGTH.unpack(sys.stdin.buffer.read(_LENGTH.size))
    function, argument = pickle.loads(sys.stdin.buffer.read(length))  # noqa: S301 - from the parent
    threading.Thread(target=_exit_with_the_parent, daemon=True).start()
    collected = _Records()
    logging.basicConfig(level=logging.INFO, handlers=[collected])
    result: object = None
    failure: Exception | None = None
    try:
        result = function(argument)
    except Exception as error:  # noqa: BLE001 - the parent raises it
        failure = error
    # Pickling an exception loses its cause, by which the parent recognizes a failed disk.
    cause = failure.__cause__ if failure is not None and isinstance(failure.__cause__, OSError) else None
    sys.stdout.buffer.write(pickle.dumps((result, failure, cause, collected.records)))
    sys.stdout.buffer.flush()
    # Without the shutdown of the interpreter, which does not go with a thread that reads
    os._exit(0)


def _exit_with_the_parent() -> None:
    os.read(sys.stdin.fileno(), 1)
    os._exit(1)


if __name__ == "__main__":
    main()

"""Work in a child process."""

from __future__ import annotations

import asyncio
import errno
import logging
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from kafka_log.errors import CorruptLogError
from lab.processes.waiting import wait_until
from light_broker.shell.logs.child_process import ChildFailedError, run_in_child
from light_broker.shell.logs.errors import is_disk_error
from tests.waiting import TIMEOUT_S, until

TOO_LONG_S = 600


def write_and_exit(part: bytes) -> None:
    """End the process at once, after a part of its answer."""
    sys.stdout.buffer.write(part)
    sys.stdout.buffer.flush()
    os._exit(3)


def fail_to_read(path: str) -> None:
    """Fail as a log on a failed disk does."""
    raise CorruptLogError(f"Failed to read {path}") from OSError(errno.EIO, "Input/output error")


def fail(reason: str) -> None:
    """Fail as a damaged log does."""
    raise CorruptLogError(reason)


def warn(path: str) -> str:
    """Log a warning with a field."""
    logging.getLogger("kafka_log").warning("Cut the log", extra={"path": path})
    return path


def hang(path: Path) -> None:
    """Note the process, and go on for a long time."""
    path.write_text(str(os.getpid()))
    time.sleep(TOO_LONG_S)


@pytest.mark.parametrize("part", [b"", b"\x80"])
async def test_a_child_that_ends_without_a_whole_result_is_an_error(part: bytes) -> None:
    """Such as one that the system killed because of its memory."""
    with pytest.raises(ChildFailedError, match="that runs a test ended with status 3 without a result"):
        await run_in_child(write_and_exit, part, what="a test")


async def test_an_error_in_a_child_is_raised_here() -> None:
    """With its text."""
    with pytest.raises(CorruptLogError, match="damaged"):
        await run_in_child(fail, "damaged", what="a test")


async def test_a_failed_disk_is_recognized_when_a_child_reads_it() -> None:
    """Its log directory goes offline, not only one log (LogDirFailureChannel)."""
    with pytest.raises(CorruptLogError) as raised:
        await run_in_child(fail_to_read, "t-0", what="a test")

    assert is_disk_error(raised.value)


async def test_what_a_child_logs_is_logged_here(caplog: pytest.LogCaptureFixture) -> None:
    """With its fields."""
    assert await run_in_child(warn, "t-0", what="a test") == "t-0"
    assert [(record.message, record.__dict__["path"]) for record in caplog.records] == [("Cut the log", "t-0")]


async def test_a_child_is_killed_when_its_work_is_not_wanted_any_more(tmp_path: Path) -> None:
    """The compaction of a log that is deleted."""
    running = asyncio.ensure_future(run_in_child(hang, tmp_path / "pid", what="a test"))
    await until(lambda: is_written(tmp_path / "pid"))
    running.cancel()
    await asyncio.wait([running])

    assert running.cancelled()
    assert not is_running(int((tmp_path / "pid").read_text()))


def test_a_child_ends_with_a_broker_that_is_killed(tmp_path: Path) -> None:
    """It must not write into the folder of the next one."""
    program = (
        "import asyncio, pathlib\n"
        "from light_broker.shell.logs.child_process import run_in_child\n"
        "from tests.light_broker.shell.logs.test_child_process import hang\n"
        f"asyncio.run(run_in_child(hang, pathlib.Path({str(tmp_path / 'pid')!r}), what='a test'))\n"
    )
    parent = subprocess.Popen([sys.executable, "-c", program])
    wait_until(lambda: is_written(tmp_path / "pid"), timeout_s=TIMEOUT_S, what="the child does not run")
    parent.kill()
    parent.wait()

    pid = int((tmp_path / "pid").read_text())
    wait_until(lambda: not is_running(pid), timeout_s=TIMEOUT_S, what="the child goes on without its parent")


def is_written(path: Path) -> bool:
    """Return whether the child has noted itself."""
    return path.exists() and path.read_text() != ""


def is_running(pid: int) -> bool:
    """Return whether a process exists that is no zombie."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False

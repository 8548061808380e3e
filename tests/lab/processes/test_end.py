"""Everything that the lab starts ends with it, however it ends."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from lab.processes.spawn import wrapped
from lab.processes.waiting import wait_until

ENDED = "ZX"

HEAR_CTRL_C = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)"
"""As in a terminal: processes that a shell starts in the background ignore Ctrl-C, and so do their children."""


def has_ended(pid: int) -> bool:
    """Whether a process has ended; a zombie counts as ended."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except FileNotFoundError:
        return True
    return stat.rpartition(")")[2].split()[0] in ENDED


def run_until_it_names_its_processes(program: str) -> tuple[subprocess.Popen[str], list[int]]:
    """Start a lab in another process; it prints the ids of the processes that it started."""
    command = [sys.executable, "-c", HEAR_CTRL_C + program]
    owner = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert owner.stdout is not None
    return owner, [int(pid) for pid in owner.stdout.readline().split()]


def assert_ends_with(owner: subprocess.Popen[str], number: signal.Signals, pids: list[int]) -> None:
    """Send the owner a signal and wait until it and all processes that it started have ended."""
    assert pids
    assert not any(has_ended(pid) for pid in pids)
    owner.send_signal(number)
    owner.communicate()
    for pid in pids:
        wait_until(lambda pid=pid: has_ended(pid), timeout_s=30, what=f"the end of process {pid}")


SLEEPERS = """
import sys, tempfile, time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from lab.processes.process import Process

folder = Path(tempfile.mkdtemp())
sleepers = [Process(str(i), [sys.executable, "-c", "import time; time.sleep(600)"], folder) for i in range(3)]
with ThreadPoolExecutor(3) as pool:
    list(pool.map(Process.launch, sleepers))
sleepers[0].pause()
print(*(sleeper.pid for sleeper in sleepers), flush=True)
time.sleep(600)
"""


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_children_end_with_their_owner(number: signal.Signals) -> None:
    """Kill -9, SIGTERM and Ctrl-C of the owner; one of the children is frozen."""
    owner, pids = run_until_it_names_its_processes(SLEEPERS)

    assert_ends_with(owner, number, pids)


def test_a_child_does_not_start_when_its_owner_has_ended() -> None:
    """The owner may die between the fork and the child's request to die with it."""
    reading, report = os.pipe()
    command = wrapped([sys.executable, "-c", "print('ran')"], os.getpid() + 1, report)
    done = subprocess.run(command, capture_output=True, check=False, pass_fds=[report])
    os.close(report)

    with os.fdopen(reading) as reasons:
        assert (done.stdout, reasons.read()) == (b"", "the parent has ended")


def test_a_failed_start_leaves_no_process_behind(tmp_path: Path) -> None:
    """The second of two fails: the first ends with the interpreter."""
    program = f"""
import sys
from pathlib import Path
from lab.processes.process import Process
one = Process("one", [sys.executable, "-c", "import time; time.sleep(600)"], Path({str(tmp_path)!r}))
one.launch()
print(one.pid, flush=True)
two = Process("two", [sys.executable, "-c", "raise SystemExit(1)"], Path({str(tmp_path)!r}))
two.launch()
two.wait_until_ready(lambda: False)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)

    assert "two ended with exit code 1 before it was ready" in done.stderr
    wait_until(lambda: has_ended(int(done.stdout)), timeout_s=30, what="the end of the first process")

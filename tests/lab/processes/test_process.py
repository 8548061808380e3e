"""One process of the lab: start, faults, end."""

import sys
import threading
from pathlib import Path

import pytest

from lab.errors import LabError
from lab.processes.process import Process, processes
from lab.processes.waiting import wait_until


def python(name: str, folder: Path, program: str) -> Process:
    """A process that runs a Python program."""
    return Process(name, [sys.executable, "-u", "-c", program], folder)


def state(pid: int) -> str:
    """The kernel's letter for a process: S sleeping, T stopped, Z ended."""
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]


SLEEP = "import time; print('up'); time.sleep(600)"


def test_a_process_is_ready_when_its_predicate_holds_and_its_output_is_in_its_log(tmp_path: Path) -> None:
    """Both outputs go to one file in the lab's folder."""
    process = python("sleeper", tmp_path, SLEEP)
    process.launch()
    process.wait_until_ready(lambda: "up" in process.log_text())

    assert process.running
    assert process.exit_code is None
    assert (tmp_path / "sleeper.log").read_text() == "up\n"
    process.kill()


def test_python_writes_bytecode_also_where_this_process_must_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As for users: without it a start takes half as long again."""
    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "1")
    process = python("flags", tmp_path, "import sys; print(sys.dont_write_bytecode)")
    process.launch()
    process.wait()

    assert process.log_text() == "False\n"


def test_a_process_that_ends_before_it_is_ready_is_an_error_with_the_end_of_its_log(tmp_path: Path) -> None:
    """The log has the reason, so the error includes it."""
    process = python("broken", tmp_path, "import sys; print('no such setting'); sys.exit(3)")
    process.launch()

    with pytest.raises(LabError, match=r"broken ended with exit code 3 before it was ready(?s:.*)no such setting"):
        process.wait_until_ready(lambda: False)


def test_a_process_that_is_not_ready_in_time_is_an_error_with_the_end_of_its_log(tmp_path: Path) -> None:
    """Bounded waits everywhere."""
    process = python("slow", tmp_path, SLEEP)
    process.launch()
    wait_until(lambda: "up" in process.log_text(), timeout_s=30, what="output")

    with pytest.raises(LabError, match=r"timed out after 0.1 s: slow ready(?s:.*)up"):
        process.wait_until_ready(lambda: False, timeout_s=0.1)
    process.kill()


def test_terminate_sends_sigterm_and_kill_sends_sigkill(tmp_path: Path) -> None:
    """SIGTERM gives the exit code of the process's own end, SIGKILL minus nine; the log continues over restarts."""
    program = "import signal, sys, time; signal.signal(15, lambda *_: sys.exit(7)); print('up'); time.sleep(600)"
    process = python("polite", tmp_path, program)
    process.launch()
    process.wait_until_ready(lambda: "up" in process.log_text())

    assert process.terminate() == 7

    process.launch()
    process.wait_until_ready(lambda: process.log_text().count("up") == 2)
    process.kill()

    assert process.exit_code == -9


def test_a_process_that_ignores_sigterm_is_killed_and_reported(tmp_path: Path) -> None:
    """A lab ends in any case."""
    stubborn = python(
        "stubborn", tmp_path, "import signal, time; signal.signal(15, signal.SIG_IGN); print('up'); time.sleep(600)"
    )
    stubborn.launch()
    stubborn.wait_until_ready(lambda: "up" in stubborn.log_text())

    with pytest.raises(LabError, match=r"stubborn .* did not end within 0.2 s"):
        stubborn.terminate(timeout_s=0.2)
    assert stubborn.exit_code == -9


def test_a_paused_process_is_stopped_until_it_is_resumed_and_can_be_killed(tmp_path: Path) -> None:
    """SIGSTOP is the fault of a long garbage collection or a frozen machine."""
    process = python("frozen", tmp_path, SLEEP)
    process.launch()
    process.wait_until_ready(lambda: "up" in process.log_text())

    process.pause()
    wait_until(lambda: state(process.pid) == "T", timeout_s=30, what="stopped")
    process.resume()
    wait_until(lambda: state(process.pid) == "S", timeout_s=30, what="running again")
    process.pause()
    process.kill()

    assert process.exit_code == -9


def test_a_process_outlives_the_thread_that_started_it(tmp_path: Path) -> None:
    """Linux sends the parent's death signal when the *thread* that forked ends; brokers are started from pools of threads."""
    process = python("child", tmp_path, SLEEP)
    thread = threading.Thread(target=process.launch)
    thread.start()
    thread.join()
    process.wait_until_ready(lambda: "up" in process.log_text())

    assert process.running
    assert process in processes()
    process.kill()


def test_a_command_that_cannot_be_run_is_an_error_that_names_it(tmp_path: Path) -> None:
    """A wrong path is reported at once, not after the wait for readiness."""
    with pytest.raises(LabError, match=r"none cannot be run: .*No such file"):
        Process("none", [str(tmp_path / "none")], tmp_path).launch()


def test_a_running_process_is_not_started_twice(tmp_path: Path) -> None:
    """The first one would be lost to the lab."""
    process = python("one", tmp_path, SLEEP)
    process.launch()

    with pytest.raises(LabError, match="one is already running"):
        process.launch()
    process.kill()


def test_memory_in_use_is_known_while_it_runs(tmp_path: Path) -> None:
    """Benchmarks report it."""
    process = python("big", tmp_path, "x = b'x' * 50_000_000; print('up'); import time; time.sleep(600)")
    process.launch()
    process.wait_until_ready(lambda: "up" in process.log_text())

    assert process.resident_bytes > 50_000_000
    process.kill()
    assert process.resident_bytes == 0

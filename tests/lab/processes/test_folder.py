"""The lab's folders."""

import subprocess
import sys
from pathlib import Path

import pytest

from lab.processes.folder import LINE_CHARACTERS, LOG_LINES, LabFolder, lab_folder


@pytest.fixture(autouse=True)
def _own_temporary_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.delenv("KAFKA_STEWARD_KEEP", raising=False)


def test_a_folder_is_deleted_with_its_block_also_after_an_exception(tmp_path: Path) -> None:
    """Everything that the lab starts ends with it, also after a failed test."""

    def fail() -> None:
        with lab_folder() as folder:
            (folder / "data").write_text("x")
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()

    assert list(tmp_path.iterdir()) == []


def test_an_error_has_the_ends_of_the_logs_of_its_folder() -> None:
    """A failed test on a cluster of its own is reported when the folder is already deleted."""
    lines = [f"line {number} {'x' * LINE_CHARACTERS}" for number in range(2 * LOG_LINES)]

    def fail() -> None:
        with lab_folder() as folder:
            (folder / "broker-1.log").write_text("\n".join(lines))
            (folder / "data").write_text("no log")
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError) as caught:
        fail()

    shown = "\n".join(line[:LINE_CHARACTERS] for line in lines[-LOG_LINES:])
    assert caught.value.__notes__ == [f"--- end of broker-1.log\n{shown}"]


def test_a_given_folder_is_kept(tmp_path: Path) -> None:
    """A test that reads logs afterwards passes its own folder."""
    with lab_folder(tmp_path / "given") as folder:
        (folder / "log").write_text("x")

    assert (tmp_path / "given" / "log").read_text() == "x"


def test_the_folder_of_a_killed_process_is_deleted_and_that_of_a_running_one_is_kept(tmp_path: Path) -> None:
    """A killed process cannot clean up; the next lab does."""
    program = "import os, lab.processes.folder; print(lab.processes.folder.LabFolder().path, flush=True); os.kill(os.getpid(), 9)"
    dead = Path(
        subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False).stdout.strip()
    )
    assert dead.is_dir()

    living = LabFolder()
    other = LabFolder()

    assert not dead.exists()
    assert living.path.is_dir()
    living.remove()
    other.remove()
    assert list(tmp_path.iterdir()) == []


def test_folders_are_kept_when_the_environment_demands_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """KAFKA_STEWARD_KEEP=1."""
    monkeypatch.setenv("KAFKA_STEWARD_KEEP", "1")
    with lab_folder() as folder:
        (folder / "log").write_text("x")

    assert (folder / "log").read_text() == "x"

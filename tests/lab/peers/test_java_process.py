"""Commands of small JVMs for programs that are one source file."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from lab.errors import LabError
from lab.peers import java_process
from lab.peers.java_process import java_command

pytestmark = pytest.mark.java

PROGRAM = 'class Program { public static void main(String[] names) { System.out.print("hello " + names[0]); } }'


@pytest.fixture
def built(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The entries of a cache for this test alone, in the order in which they were built."""
    entries: list[str] = []

    def cached(name: str, build: Callable[[Path], None]) -> Path:
        if name not in entries:
            (tmp_path / name).mkdir()
            build(tmp_path / name)
            entries.append(name)
        return tmp_path / name

    monkeypatch.setattr(java_process, "cached", cached)
    return entries


def test_a_source_file_is_compiled_once_and_run(tmp_path: Path, built: list[str]) -> None:
    """The second command has the same classes."""
    source = tmp_path / "Program.java"
    source.write_text(PROGRAM)

    command = java_command(str(source), "world", heap="16m")
    done = subprocess.run(command, check=True, capture_output=True, text=True)

    assert done.stdout == "hello world"
    assert java_command(str(source), "world", heap="16m") == command
    assert len(built) == 1


def test_a_source_file_that_javac_refuses_is_reported(tmp_path: Path, built: list[str]) -> None:
    """With javac's own message; nothing is kept of it."""
    source = tmp_path / "Program.java"
    source.write_text("class Program {")

    with pytest.raises(LabError, match=r"javac refuses .*Program\.java: .*reached end of file"):
        java_command(str(source), heap="16m")

    assert built == []

"""The user's cache: complete entries, built once."""

import subprocess
import sys
from pathlib import Path

import pytest

from lab.downloads.cache import cache_folder, cached


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))


def test_the_cache_is_in_the_users_cache_folder(tmp_path: Path) -> None:
    """XDG base directories: XDG_CACHE_HOME first."""
    assert cache_folder() == tmp_path / "kafka-steward"


def test_an_entry_is_built_at_its_first_use_only() -> None:
    """A second call returns what the first one built."""
    built: list[Path] = []

    def build(folder: Path) -> None:
        built.append(folder)
        (folder / "content").write_text("whole")

    entry = cached("entry", build)

    assert entry == cached("entry", build)
    assert len(built) == 1
    assert (entry / "content").read_text() == "whole"


def test_a_failed_build_leaves_nothing_behind() -> None:
    """A partial entry would be used as a complete one."""

    def build(folder: Path) -> None:
        (folder / "content").write_text("half")
        raise RuntimeError

    with pytest.raises(RuntimeError):
        cached("entry", build)

    assert [path.name for path in cache_folder().iterdir()] == ["entry.lock"]


def test_processes_that_need_the_same_entry_build_it_once(tmp_path: Path) -> None:
    """Four runs start together on a fresh machine."""
    program = f"""
import time
from pathlib import Path
from lab.downloads.cache import cached
def build(folder):
    with Path({str(tmp_path / "builds")!r}).open("a") as log:
        log.write("built\\n")
    (folder / "content").write_text("whole")
print((cached("entry", build) / "content").read_text())
"""
    runs = [subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True) for _ in range(4)]

    assert [run.communicate()[0] for run in runs] == ["whole\n"] * 4
    assert (tmp_path / "builds").read_text() == "built\n"

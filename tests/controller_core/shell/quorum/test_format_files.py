"""Files of a formatted directory: each is on the disk before the next one, and meta.properties is the last."""

import os
import re
import stat
from pathlib import Path

import pytest

from controller_core.shell.quorum.format_files import data_in, write_directory
from kafka_log.format.text_files import MetaProperties

LOG = "data/__cluster_metadata-0"
CHECKPOINT = "00000000000000000000-0000000000.checkpoint"


def test_files_and_folders_are_flushed_in_the_order_that_a_crash_needs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The content before the rename, the rename before the next file."""
    events: list[str] = []
    rename = Path.replace

    def record_flush(descriptor: int) -> None:
        path = Path(f"/proc/self/fd/{descriptor}").readlink().relative_to(tmp_path)
        events.append(re.sub(r"-\w+\.checkpoint\.part", "-RANDOM.checkpoint.part", f"flush {path}"))

    def record_rename(path: Path, target: Path) -> Path:
        events.append(f"rename {target.relative_to(tmp_path)}")
        return rename(path, target)

    monkeypatch.setattr(os, "fsync", record_flush)
    monkeypatch.setattr(os, "fdatasync", record_flush)
    monkeypatch.setattr(Path, "replace", record_rename)

    write_directory(tmp_path / "data", MetaProperties("a cluster", 1), b"metadata", [b"voters"])

    assert events == [
        "flush .",
        "flush data/bootstrap.checkpoint.tmp",
        "rename data/bootstrap.checkpoint",
        "flush data",
        "flush data",
        f"flush {LOG}/00000000000000000000-0000000000-RANDOM.checkpoint.part",
        f"rename {LOG}/{CHECKPOINT}",
        f"flush {LOG}",
        "flush data/meta.properties.tmp",
        "rename data/meta.properties",
        "flush data",
    ]
    assert stat.filemode((tmp_path / LOG / CHECKPOINT).stat().st_mode) == "-r--------"


def test_what_an_interrupted_format_has_left_is_no_data_and_is_removed(tmp_path: Path) -> None:
    """A whole snapshot of formatting, and one of which a part was written."""
    (tmp_path / LOG).mkdir(parents=True)
    for name in (CHECKPOINT, "00000000000000000000-0000000000-a1b2.checkpoint.part"):
        (tmp_path / LOG / name).write_bytes(b"cut")
    assert data_in(tmp_path / "data") is None

    write_directory(tmp_path / "data", MetaProperties("a cluster", 1), b"metadata", [b"voters"])

    assert {path.name: path.read_bytes() for path in (tmp_path / LOG).iterdir()} == {CHECKPOINT: b"voters"}


@pytest.mark.parametrize(
    "name", ["quorum-state", "00000000000000000000.log", "00000000000000000000-0000000001.checkpoint"]
)
def test_a_log_is_data(tmp_path: Path, name: str) -> None:
    """Such as a vote, records, and a snapshot that formatting did not write."""
    (tmp_path / LOG).mkdir(parents=True)
    (tmp_path / LOG / name).touch()

    assert data_in(tmp_path / "data") == "__cluster_metadata-0"

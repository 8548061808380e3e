"""Files of a formatted directory: each is on the disk before the next one, and meta.properties is the last."""

import os
import stat
import uuid
from pathlib import Path

import pytest

from controller_core.shell.quorum.format_files import (
    MetaProperties,
    encode_meta_properties,
    read_meta_properties,
    write_directory,
)

DIRECTORY_ID = uuid.UUID(int=1 << 100)


def test_files_and_folders_are_flushed_in_the_order_that_a_crash_needs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The content before the rename, the rename before the next file."""
    events: list[str] = []
    flush, rename = os.fsync, Path.replace

    def record_flush(descriptor: int) -> None:
        events.append(f"flush {Path(f'/proc/self/fd/{descriptor}').readlink().relative_to(tmp_path)}")
        flush(descriptor)

    def record_rename(path: Path, target: Path) -> Path:
        events.append(f"rename {target.relative_to(tmp_path)}")
        return rename(path, target)

    monkeypatch.setattr(os, "fsync", record_flush)
    monkeypatch.setattr(Path, "replace", record_rename)

    write_directory(tmp_path / "data", b"identity", b"metadata", b"voters")

    log, checkpoint = "data/__cluster_metadata-0", "00000000000000000000-0000000000.checkpoint"
    assert events == [
        "flush .",
        "flush data/bootstrap.checkpoint.tmp",
        "rename data/bootstrap.checkpoint",
        "flush data",
        "flush data",
        f"flush {log}/{checkpoint}.part",
        f"rename {log}/{checkpoint}",
        f"flush {log}",
        "flush data/meta.properties.tmp",
        "rename data/meta.properties",
        "flush data",
    ]
    assert stat.filemode((tmp_path / log / checkpoint).stat().st_mode) == "-r--------"


def test_the_identity_is_read_as_it_is_written(tmp_path: Path) -> None:
    """Signs in a cluster id are escaped."""
    (tmp_path / "meta.properties").write_bytes(encode_meta_properties("a=b: c\\", 7, DIRECTORY_ID, date="now"))

    assert read_meta_properties(tmp_path) == MetaProperties("a=b: c\\", 7, DIRECTORY_ID)


def test_a_directory_that_is_missing_or_empty_has_no_identity(tmp_path: Path) -> None:
    """It is formatted."""
    assert read_meta_properties(tmp_path) is None
    assert read_meta_properties(tmp_path / "missing") is None


def test_version_0_has_a_broker_id_and_may_lack_the_rest(tmp_path: Path) -> None:
    """Kafka in ZooKeeper mode wrote it."""
    (tmp_path / "meta.properties").write_text("broker.id=3\n")

    assert read_meta_properties(tmp_path) == MetaProperties(None, 3, None)

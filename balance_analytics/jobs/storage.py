"""Small files on any storage that Hadoop has a file system for: a local disk, HDFS, object stores (s3a).

A file that is written appears whole or not at all, and replaces the one before in one step, on each of them by its own means. Tables
are in `files.py`.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from pyspark.sql import SparkSession

from balance_analytics.model.manifest import FoundFile

LISTING_THREADS = 16
"""Folders and files that are looked up at the same time; an object store takes some 50 ms for each."""

OBJECT_STORES = frozenset({"s3a", "s3", "s3n", "gs", "oss"})
"""Schemes whose files appear with the end of their upload, which replaces a file of the same name; they have no rename in one step."""


def exists(spark: SparkSession, path: str) -> bool:
    """Return whether a file or folder exists."""
    place, system = _place(spark, path)
    return bool(system.exists(place))


def size_of(spark: SparkSession, path: str) -> int | None:
    """Return the size of a file in bytes, or None if it is not there. A store that lists files late knows them by name at once."""
    place, system = _place(spark, path)
    return int(system.getFileStatus(place).getLen()) if system.exists(place) else None


def files_below(spark: SparkSession, folder: str) -> list[FoundFile]:
    """Return all files below a folder, their paths relative to it; none where there is no folder."""
    place, system = _place(spark, folder)
    if not system.exists(place):
        return []
    root = str(system.getFileStatus(place).getPath().toUri().getPath()).rstrip("/") + "/"
    listed = system.listFiles(place, True)
    found = []
    while listed.hasNext():
        status = listed.next()
        path = str(status.getPath().toUri().getPath()).removeprefix(root)
        found.append(FoundFile(path, int(status.getLen()), int(status.getModificationTime())))
    return found


def files_in_each(spark: SparkSession, folders: Sequence[str]) -> list[dict[str, int]]:
    """Return the sizes in bytes of the files directly in each folder, by name; several folders are listed at the same time.

    Names that begin with a dot or an underscore are skipped, as Spark's readers skip them. No job of Spark is needed, whose first one
    takes two seconds.
    """

    def sizes_in(folder: str) -> dict[str, int]:
        place, system = _place(spark, folder)
        found = ((status.getPath(), status) for status in system.listStatus(place) if status.isFile())
        sizes = {str(path.getName()): int(status.getLen()) for path, status in found}
        return {name: size for name, size in sizes.items() if not name.startswith((".", "_"))}

    with ThreadPoolExecutor(LISTING_THREADS) as threads:
        return list(threads.map(sizes_in, folders))


def folders_in(spark: SparkSession, folder: str) -> list[str]:
    """Return the names of the folders directly in a folder, in order; none where there is no folder."""
    place, system = _place(spark, folder)
    if not system.exists(place):
        return []
    return sorted(str(status.getPath().getName()) for status in system.listStatus(place) if status.isDirectory())


def read_text(spark: SparkSession, path: str) -> str:
    """Return a file that `write_text` has written, without a job of Spark, which would take a second for a few bytes."""
    place, system = _place(spark, path)
    jvm = spark._jvm  # noqa: SLF001 - see `_place`
    assert jvm is not None
    stream = system.open(place)
    try:
        return str(jvm.org.apache.commons.io.IOUtils.toString(stream, "UTF-8"))
    finally:
        stream.close()


def write_text(spark: SparkSession, path: str, text: str) -> None:
    """Write a file, or replace it, in one step."""
    write_bytes(spark, path, text.encode())


def write_bytes(spark: SparkSession, path: str, data: bytes) -> None:
    """Write a file, or replace it, in one step: a reader gets the old or the new one, whole.

    A local file is written next to its place and renamed; on HDFS and the like FileContext's rename replaces in one step, which
    FileSystem's does not; an object appears when its upload is complete.
    """
    place, system = _place(spark, path)
    scheme = str(system.getUri().getScheme())
    if scheme == "file":
        _write_local(Path(unquote(str(place.toUri().getPath()))), data)
    elif scheme in OBJECT_STORES:
        _write(system, place, data)
    else:
        temporary = _temporary(spark, place)
        _write(system, temporary, data)
        _replace(spark, temporary, place)


def remove(spark: SparkSession, path: str) -> None:
    """Delete a file if it exists."""
    place, system = _place(spark, path)
    system.delete(place, False)


def remove_folder(spark: SparkSession, path: str) -> None:
    """Delete a folder with all that is in it."""
    place, system = _place(spark, path)
    system.delete(place, True)


def _write_local(path: Path, data: bytes) -> None:
    """Write by Python: Hadoop's local file system keeps checksums in a second file, so that it cannot replace a file in one step."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.new")
    with temporary.open("wb") as stream:
        stream.write(data)
        stream.flush()
        os.fsync(stream.fileno())
    path.with_name(f".{path.name}.crc").unlink(missing_ok=True)  # of a file that an earlier version wrote
    temporary.replace(path)


def _write(system: Any, place: Any, data: bytes) -> None:
    stream = system.create(place, True)
    stream.write(bytearray(data))
    stream.close()


def _temporary(spark: SparkSession, place: Any) -> Any:
    jvm = spark._jvm  # noqa: SLF001 - see `_place`
    assert jvm is not None
    return jvm.org.apache.hadoop.fs.Path(place.getParent(), f".{place.getName()}.new")


def _replace(spark: SparkSession, source: Any, target: Any) -> None:
    jvm, context = spark._jvm, spark._jsc  # noqa: SLF001 - see `_place`
    assert jvm is not None
    rename = jvm.org.apache.hadoop.fs.Options.Rename
    options = spark.sparkContext._gateway.new_array(rename, 1)  # type: ignore[union-attr] # noqa: SLF001 - see `_place`
    options[0] = rename.OVERWRITE
    files = jvm.org.apache.hadoop.fs.FileContext.getFileContext(target.toUri(), context.hadoopConfiguration())
    files.rename(source, target, options)


def _place(spark: SparkSession, path: str) -> tuple[Any, Any]:
    """Return a path and its file system, Hadoop's: Python has no other way to them."""
    jvm, context = spark._jvm, spark._jsc  # noqa: SLF001 - see above
    assert jvm is not None
    place = jvm.org.apache.hadoop.fs.Path(path)
    return place, place.getFileSystem(context.hadoopConfiguration())

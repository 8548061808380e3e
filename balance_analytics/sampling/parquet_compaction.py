"""Compaction of a complete day: the many small files of its samples become few large ones.

Rows are in the order of `round_ms`, topic and partition, so that readers skip row groups by time. Readers read every file of a day, and
count a sample that is in two files once. So no row is lost or counted twice, whenever the process ends:

1. The rows are written into a hidden file, which readers skip, and synced to the disk.
2. The hidden file is renamed. From here on its rows are in two places. Its footer names the small files that it replaces.
3. These small files are deleted, if they are still the ones that were read.

A later run deletes what step 3 left, by the footers, and hidden files that are no longer written to. Two samplers may compact the same
day: each deletes only what it has read and published.
"""

import json
import logging
import os
import secrets
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import groupby
from operator import attrgetter
from pathlib import Path
from typing import Any

from balance_analytics.model.sample_rows import SAMPLE_ROWS
from balance_analytics.sampling.parquet_days import (
    DRAFT_MAX_AGE_S,
    MIN_FILES,
    SampleFile,
    compacted_name,
    is_compacted,
    is_draft,
    sample_file,
)
from balance_analytics.sampling.parquet_writer import COMPRESSION, schema_of

log = logging.getLogger(__name__)

MAX_ROWS = 72_000_000
"""Rows of one file, after which the next one begins: 50,000 partitions, once a minute for a day; 1 to 2 GB."""

ROW_GROUP_ROWS = 100_000
"""Rows that are collected before they are written: 100 MB while they are encoded, and a part of a day that readers can skip."""

MAX_REASON_CHARACTERS = 200
"""Limit of a library's error message in the log, as it may quote the file."""

OVERTAKEN = "another process has changed or compacted these files"

SOURCES_KEY = b"steward.compacted"
"""In a footer: names, sizes and times of modification of the files that this one replaces, as JSON."""


class CompactionStopped(Exception):  # noqa: N818 - an event, not an error
    """The sampler is shutting down, or another process has compacted these files."""


class CompactionFailed(Exception):  # noqa: N818 - named like the other failures of the sampler
    """A compacted file does not contain the rows that were written to it."""


@dataclass(frozen=True, slots=True)
class Compacted:
    """Result for one day: files read and deleted, files written, and their rows and bytes."""

    sources: int = 0
    files: int = 0
    rows: int = 0
    size_bytes: int = 0

    def __add__(self, other: "Compacted") -> "Compacted":
        return Compacted(
            self.sources + other.sources,
            self.files + other.files,
            self.rows + other.rows,
            self.size_bytes + other.size_bytes,
        )


@dataclass
class Compactor:
    """Compacts days; remembers files that cannot be read, so that each is logged and tried once. `stopping` is called between files."""

    stopping: Callable[[], bool] = lambda: False
    _unreadable: dict[Path, set[str]] = field(default_factory=dict)
    _token: str = field(default_factory=lambda: secrets.token_hex(8))

    def compact(self, folder: Path) -> Compacted:
        """Compact a day's folder, after finishing what an earlier run has left. Raises OSError, CompactionFailed, CompactionStopped."""
        _delete_old_drafts(folder)
        samples = [file for file in self._finish(folder) if file.name not in self._unreadable.get(folder, ())]
        result = Compacted()
        for _, files in groupby(sorted(samples), key=attrgetter("cluster")):
            remaining = list(files)
            while len(remaining) >= MIN_FILES:
                remaining, written = self._write_one(folder, remaining)
                result += written
        return result

    def _finish(self, folder: Path) -> list[SampleFile]:
        """Delete files of samples that compacted files replace, and return the others."""
        samples, compacted = _list(folder)
        if not samples or not compacted:
            return samples
        replaced = {source for name in compacted for source in self._sources(folder, name)}
        done = {sample for sample in samples if (sample.name, sample.size_bytes, sample.modified_ns) in replaced}
        if done:
            _sync(folder)  # the process that renamed the compacted file may have ended before its own sync
            _delete(folder, sorted(done), self._token)
        return [sample for sample in samples if sample not in done]

    def _sources(self, folder: Path, name: str) -> list[tuple[str, int, int]]:
        """Return what a compacted file replaces: nothing if its footer cannot be read, or does not name them."""
        import pyarrow as pa  # noqa: PLC0415 - as in parquet_writer
        from pyarrow import parquet  # noqa: PLC0415

        try:
            found = json.loads((parquet.read_metadata(folder / name).metadata or {}).get(SOURCES_KEY, b"[]"))
            return [(str(source), int(size_bytes), int(modified_ns)) for source, size_bytes, modified_ns in found]
        except (OSError, ValueError, TypeError, pa.ArrowException) as error:
            self._note_unreadable(folder, name, error)
            return []

    def _note_unreadable(self, folder: Path, name: str, error: Exception) -> None:
        """Log a file that cannot be read, the first time."""
        known = self._unreadable.setdefault(folder, set())
        if name not in known:
            known.add(name)
            log.warning(
                "Failed to read a file of samples; it is left as it is",
                extra={"file": str(folder / name), "reason": str(error)[:MAX_REASON_CHARACTERS]},
            )

    def _write_one(self, folder: Path, files: list[SampleFile]) -> tuple[list[SampleFile], Compacted]:
        """Write one file from the first of these files in order; return the others, and what was written."""
        from pyarrow import parquet  # noqa: PLC0415 - as in parquet_writer

        draft = folder / f".day-{files[0].cluster}-{files[0].round_ms}.parquet.{self._token}"
        taken: list[SampleFile] = []
        try:
            with draft.open("wb") as output:
                rows, seen = self._copy(folder, files, output, taken)
                output.flush()
                os.fsync(output.fileno())
            if len(taken) < MIN_FILES:
                return files[seen:], Compacted()
            if parquet.read_metadata(draft).num_rows != rows:
                raise CompactionFailed(f"{draft} does not contain the {rows} rows that were written; it is discarded")
            if any(_now(folder, file) != file for file in taken):
                raise CompactionStopped(OVERTAKEN)
            size_bytes = draft.stat().st_size
            os.replace(draft, folder / compacted_name(taken))  # noqa: PTH105 - as in _delete
        finally:
            with suppress(FileNotFoundError):
                os.unlink(draft)  # noqa: PTH108 - as in _delete
        _sync(folder)
        _delete(folder, taken, self._token)
        return files[seen:], Compacted(len(taken), 1, rows, size_bytes)

    def _copy(self, folder: Path, files: list[SampleFile], output: Any, taken: list[SampleFile]) -> tuple[int, int]:
        """Copy rows until there are MAX_ROWS; append the files that were read to `taken`, and return the rows and how many files were tried."""
        import pyarrow as pa  # noqa: PLC0415 - as in parquet_writer
        from pyarrow import parquet  # noqa: PLC0415

        schema = schema_of(pa, SAMPLE_ROWS)
        rows = seen = waiting_rows = 0
        waiting: list[Any] = []
        with parquet.ParquetWriter(output, schema, compression=COMPRESSION) as writer:
            for seen, file in enumerate(files, start=1):  # noqa: B007 - returned
                table = self._read(folder, file, schema)
                if table is None:
                    continue
                taken.append(file)
                waiting.append(table)
                rows += len(table)
                waiting_rows += len(table)
                if waiting_rows >= ROW_GROUP_ROWS:
                    writer.write_table(pa.concat_tables(waiting))
                    del table
                    waiting, waiting_rows = [], 0
                    pa.default_memory_pool().release_unused()  # Arrow would keep it: a third of the peak
                if rows >= MAX_ROWS:
                    break
            if waiting_rows:
                writer.write_table(pa.concat_tables(waiting))
            sources = [(file.name, file.size_bytes, file.modified_ns) for file in taken]
            writer.add_key_value_metadata({SOURCES_KEY: json.dumps(sources)})
        return rows, seen

    def _read(self, folder: Path, file: SampleFile, schema: Any) -> Any:
        """Return a file's rows; None if it cannot be read, which is logged. Raises CompactionStopped if it has changed since it was listed."""
        import pyarrow as pa  # noqa: PLC0415 - as in parquet_writer

        if self.stopping():
            raise CompactionStopped("the sampler is shutting down")
        try:
            if _now(folder, file) != file:
                raise CompactionStopped(OVERTAKEN)
            return _rows_of((folder / file.name).read_bytes(), schema)
        except FileNotFoundError as error:
            raise CompactionStopped(OVERTAKEN) from error
        except (OSError, ValueError, pa.ArrowException) as error:
            self._note_unreadable(folder, file.name, error)
            return None


def _rows_of(content: bytes, schema: Any) -> Any:
    """Return a file's rows as a table. Raises ValueError where the columns differ, pyarrow's exceptions and OSError."""
    import pyarrow as pa  # noqa: PLC0415 - as in parquet_writer
    from pyarrow import parquet  # noqa: PLC0415

    table = parquet.ParquetFile(pa.BufferReader(content)).read(use_threads=False)
    if not table.schema.equals(schema):
        raise ValueError("its columns are not those of samples of this version")
    return table


def _list(folder: Path) -> tuple[list[SampleFile], list[str]]:
    """Return files of samples, and names of compacted files. Links and folders are skipped."""
    samples, compacted = [], []
    with os.scandir(folder) as entries:
        for entry in entries:
            with suppress(FileNotFoundError):  # deleted by another process in the meantime
                if not entry.is_file(follow_symlinks=False):
                    continue
                status = entry.stat(follow_symlinks=False)
                sample = sample_file(entry.name, status.st_size, status.st_mtime_ns)
                if sample is not None:
                    samples.append(sample)
                elif is_compacted(entry.name):
                    compacted.append(entry.name)
    return samples, compacted


def _now(folder: Path, file: SampleFile, name: str | None = None) -> SampleFile | None:
    """Return the file with its current size and time of modification, under its own name or another one; None if it does not exist."""
    try:
        status = os.lstat(folder / (name or file.name))
    except FileNotFoundError:
        return None
    return file._replace(size_bytes=status.st_size, modified_ns=status.st_mtime_ns)


def _delete(folder: Path, files: list[SampleFile], token: str) -> None:
    """Delete files that have not changed since they were read.

    Another sampler may store a sample again between a check and the deletion, so each file is first moved to a hidden name, where
    nothing replaces it. If the process ends in between, the hidden file is deleted as an old draft: its rows are already in the compacted file.
    """
    for file in files:
        if _now(folder, file) != file:
            continue
        hidden = folder / f".{file.name}.{token}"
        with suppress(FileNotFoundError):  # another process deletes the same files
            os.replace(folder / file.name, hidden)  # noqa: PTH105 - as below
            if _now(folder, file, hidden.name) == file:
                os.unlink(hidden)  # noqa: PTH108 - so is every step that a test interrupts
            else:
                os.replace(hidden, folder / file.name)  # noqa: PTH105


def _delete_old_drafts(folder: Path) -> None:
    now_s = time.time()
    with os.scandir(folder) as entries:
        drafts = [entry for entry in entries if is_draft(entry.name) and entry.is_file(follow_symlinks=False)]
    for draft in drafts:
        with suppress(FileNotFoundError):
            if now_s - draft.stat(follow_symlinks=False).st_mtime > DRAFT_MAX_AGE_S:
                os.unlink(draft.path)  # noqa: PTH108 - as in _delete


def _sync(folder: Path) -> None:
    """Write the folder's entries to the disk, before any of its files is deleted."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)

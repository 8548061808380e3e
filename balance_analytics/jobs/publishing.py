"""Tables that change by publishing a manifest (`model/manifest.py`).

    published = Published(spark, path, "facts")
    base = published.newest(left_out)              what readers see, and what the next manifest follows
    rows = published.write(frame, run, by=DATE)    files that readers do not see yet
    published.publish(base, run, rows, now_ms)     one file, and they do

Facts that an earlier version wrote, `date=DAY/….parquet` without a manifest, count as published.
"""

from __future__ import annotations

import re
import secrets
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import Column as SparkColumn
from pyspark.sql import DataFrame, Observation, SparkSession
from pyspark.sql import functions as sf

from balance_analytics.jobs import storage
from balance_analytics.jobs.files import Table
from balance_analytics.jobs.problems import AnalyticsError, LeftOuts, errors_about
from balance_analytics.model.column import Column
from balance_analytics.model.facts import DAY_FOLDER
from balance_analytics.model.manifest import (
    EMPTY,
    FOLDER,
    DataFile,
    FoundFile,
    Manifest,
    ManifestError,
    Position,
    Source,
    decode,
    encode,
    expired,
    lost,
    name_of,
    newest_first,
)
from balance_analytics.model.sample_rows import DATE

Parts = Mapping[str, tuple[DataFile, ...]]

LISTED_TIMEOUT_S = 30.0
"""Limit of the wait for new files in listings; a store is usually late by less than a second."""

LISTED_POLL_S = 0.5

MAX_LOST_NAMED = 20
"""Limit of names in the result, which has their number too."""

ROWS = "rows"
"""The number of rows that were written, as an observation."""

_PARQUET = re.compile(r"(?:[^/._][^/]*/)*[^/._][^/]*\.parquet")
_UNMANAGED = re.compile(rf"{DATE}=(?P<part>[^/]+)/[^/._][^/]*\.parquet")
_WRITTEN = re.compile(
    rf"v=[^/]+/(?:table=(?P<table>[a-z]+)/)?(?:{DAY_FOLDER}/)?(?:[a-z]+=)?(?P<part>[^/]+)/[^/._][^/]*\.parquet"
)


def new_run() -> str:
    """Return a name for a run: two runs at the same time have two."""
    return secrets.token_hex(6)


@dataclass(frozen=True)
class Published:
    """A table below `root`; `what` names it in messages."""

    spark: SparkSession
    root: str
    what: str

    def newest(self, left_out: LeftOuts) -> Manifest:
        """Return what readers see: the newest manifest that can be read, without the files that are lost; EMPTY where there is none."""
        with errors_about(self.root, self.what):
            found = storage.files_below(self.spark, self.root)
            manifests, unreadable = self._manifests(found, only_newest=True)
            for problem in unreadable:
                left_out.add(problem, 1, f"delete it; {self.what} are those of the run before")
            newest = manifests[0] if manifests else Manifest(0, "", 0, _unmanaged(found))
            sizes = {file.path: file.size for file in newest.files()}
            # A store may list a file late: facts that were taken for lost would be gone with the samples that retention took.
            gone = [
                path
                for path in lost(newest, found)
                if storage.size_of(self.spark, f"{self.root}/{path}") != sizes[path]
            ]
        return _without(newest, gone, self.what, left_out)

    def table(self, manifest: Manifest, columns: tuple[Column, ...], *parts: str, by_day: bool = False) -> Table:
        """Return some parts of a manifest as a table."""
        files = [file.path for part in parts for file in manifest.parts.get(part, ())]
        return Table(self.spark, self.root, columns, self.what, by_day=by_day, files=files)

    def write(self, frame: DataFrame, run: str, part: str | None = None, *, table: str = "", layout: str = "") -> Parts:
        """Write files of a run, which no manifest lists yet, and return them by day, or as `part`; `table` names a second table with days.

        `layout` is a folder of the form key=value that states the layout of the files. Raises `AnalyticsError`.
        """
        below = "/".join(filter(None, (f"v={run}", table and f"table={table}", layout, part)))
        with errors_about(self.root, self.what):
            files, _ = _write_files(frame, f"{self.root}/{below}", by_day=part is None)
        return _by_part([FoundFile(f"{below}/{file.path}", file.size, file.modified_ms) for file in files], part)

    def write_tables(self, tables: Iterator[Any], run: str, part: str) -> Parts:
        """Write Arrow tables, a file for each, from this process, and return them as `part`. Raises `AnalyticsError`.

        For what is at the driver already: no job of Spark is needed to write it or to find it again.
        """
        files = []
        with errors_about(self.root, self.what):
            for number, table in enumerate(tables):
                path = f"v={run}/{part}/part-{number:05d}.parquet"
                stream = pa.BufferOutputStream()
                pq.write_table(table, stream, compression="zstd", coerce_timestamps="us")
                data = stream.getvalue().to_pybytes()
                storage.write_bytes(self.spark, f"{self.root}/{path}", data)
                files.append(DataFile(path, len(data)))
            self._wait_until_files_are_listed(f"v={run}/{part}", files)
        return {part: tuple(files)}

    def publish(
        self,
        base: Manifest,
        run: str,
        parts: Parts,
        now_ms: int,
        *,
        keeps: bool = True,
        sources: Mapping[str, Source] | None = None,
        position: Position | None = None,
    ) -> Manifest:
        """Make `parts` what readers see, and return the new manifest; with `keeps`, the other parts of `base` are kept.

        Raises `AnalyticsError`, also when another run has published in the meantime.
        """
        following = base.followed_by(run, now_ms, parts, keeps=keeps, sources=sources, position=position)
        with errors_about(self.root, self.what):
            manifests, _ = self._manifests(storage.files_below(self.spark, f"{self.root}/{FOLDER}"), at=FOLDER)
            if any(manifest.sequence > base.sequence for manifest in manifests):
                raise AnalyticsError(
                    f"another run has published {self.what} at {self.root} in the meantime: run this again, one run at a time"
                )
            name, text = name_of(following), encode(following)
            storage.write_text(self.spark, f"{self.root}/{FOLDER}/{name}", text)
            # A run that starts right after this one would otherwise follow the manifest before, and fail when it publishes.
            self._wait_until_files_are_listed(FOLDER, [DataFile(f"{FOLDER}/{name}", len(text.encode()))])
        return following

    def sweep(self, now_ms: int) -> int:
        """Delete files that no manifest names any more and return their number; none while the newest manifest cannot be read."""
        with errors_about(self.root, self.what):
            found = storage.files_below(self.spark, self.root)
            manifests, unreadable = self._manifests(found)
            if unreadable or not manifests:
                return 0
            swept = [path for path in expired(found, manifests, now_ms) if _is_ours(path)]
            for path in swept:
                storage.remove(self.spark, f"{self.root}/{path}")
            return len(swept)

    def _manifests(
        self, found: list[FoundFile], *, at: str = "", only_newest: bool = False
    ) -> tuple[list[Manifest], list[str]]:
        """Read the manifests among the files that were found, the newest first, and what is wrong with those before the first.

        A newer manifest that can be read has replaced the older ones, so that no reader needs one of those that cannot be read.
        """
        prefix = "" if at else f"{FOLDER}/"
        names = newest_first(file.path.removeprefix(prefix) for file in found if file.path.startswith(prefix))
        manifests: list[Manifest] = []
        unreadable: list[str] = []
        for name in names:
            try:
                text = storage.read_text(self.spark, f"{self.root}/{FOLDER}/{name}")
                manifests.append(decode(name, text))
            except ManifestError as error:
                if not manifests:
                    unreadable.append(f"{self.root}/{FOLDER}: {error}")
            if manifests and only_newest:
                break
        return manifests, unreadable

    def _wait_until_files_are_listed(self, below: str, files: list[DataFile]) -> None:
        """Return once files are listed with their sizes. Raises `AnalyticsError`."""
        expected = {(file.path, file.size) for file in files}

        def count_listed(found: list[FoundFile]) -> int:
            return len(expected & {(f"{below}/{file.path}", file.size) for file in found})

        _wait_until_listed(self.spark, f"{self.root}/{below}", "files", len(expected), count_listed)


@contextmanager
def staging(spark: SparkSession, out: str, run: str, now_ms: int) -> Iterator[str]:
    """Yield a folder for tables that only this run reads; it is deleted in the end, and so are those of runs that were killed."""
    folder = f"{out}/staging"
    with errors_about(out, "staged tables"):
        for path in expired(storage.files_below(spark, folder), (), now_ms):
            storage.remove(spark, f"{folder}/{path}")
    yield f"{folder}/{run}"
    with errors_about(out, "staged tables"):
        storage.remove_folder(spark, f"{folder}/{run}")


@dataclass(frozen=True, slots=True)
class Staged:
    """Rows of a table that only this run reads, and what was observed of them while they were written."""

    rows: DataFrame
    seen: Mapping[str, Any]


def write_staged(frame: DataFrame, folder: str, what: str, *observed: SparkColumn) -> Staged:
    """Write a table that only this run reads, and return it; `observed` are named aggregates of its rows. Raises `AnalyticsError`.

    It is read by the names of its files: a store that lists them late would otherwise hide rows.
    """
    spark = frame.sparkSession
    with errors_about(folder, what):
        files, seen = _write_files(frame, folder, *observed)
        if not files:
            return Staged(spark.createDataFrame([], frame.schema), seen)
        return Staged(spark.read.schema(frame.schema).parquet(*(f"{folder}/{file.path}" for file in files)), seen)


def _write_files(
    frame: DataFrame, folder: str, *observed: SparkColumn, by_day: bool = False
) -> tuple[list[FoundFile], Mapping[str, Any]]:
    """Write rows below a folder, and return the files once all rows are listed, and what was observed. Raises `AnalyticsError`."""
    seen = Observation()
    writer = frame.observe(seen, sf.count("*").alias(ROWS), *observed).write.mode("overwrite")
    (writer.partitionBy(DATE) if by_day else writer).parquet(folder)
    spark = frame.sparkSession

    def count_rows(found: list[FoundFile]) -> int:
        names = [f"{folder}/{file.path}" for file in _parquet(found)]
        return spark.read.parquet(*names).count() if names else 0

    found = _wait_until_listed(spark, folder, "rows", int(seen.get[ROWS]), count_rows)
    return sorted(_parquet(found), key=lambda file: file.path), seen.get


def _parquet(found: list[FoundFile]) -> list[FoundFile]:
    return [file for file in found if _PARQUET.fullmatch(file.path)]


def _wait_until_listed(
    spark: SparkSession, folder: str, unit: str, written: int, count_listed: Callable[[list[FoundFile]], int]
) -> list[FoundFile]:
    """Return the files below a folder once all that was written is listed; `unit` is what is counted. Raises `AnalyticsError`."""
    until = time.monotonic() + LISTED_TIMEOUT_S
    while True:
        found = storage.files_below(spark, folder)
        listed = count_listed(found)
        if listed == written:
            return found
        if time.monotonic() > until:
            raise AnalyticsError(
                f"{folder} lists {listed} of {written} {unit} that were written to it: check the store, then run again"
            )
        time.sleep(LISTED_POLL_S)


def _by_part(found: list[FoundFile], part: str | None) -> Parts:
    parts: dict[str, list[DataFile]] = {}
    for file in found:
        if matched := _WRITTEN.fullmatch(file.path):
            name = part or (f"{matched['table']}/{matched['part']}" if matched["table"] else matched["part"])
            parts.setdefault(name, []).append(DataFile(file.path, file.size))
    return {name: tuple(files) for name, files in parts.items()}


def _unmanaged(found: list[FoundFile]) -> Parts:
    """Return the days that an earlier version wrote."""
    parts: dict[str, list[DataFile]] = {}
    for file in sorted(found, key=lambda file: file.path):
        if matched := _UNMANAGED.fullmatch(file.path):
            parts.setdefault(matched["part"], []).append(DataFile(file.path, file.size))
    return {name: tuple(files) for name, files in parts.items()}


def _is_ours(path: str) -> bool:
    """Return whether a path has a form that this program writes: nothing else is deleted."""
    return path.startswith((f"{FOLDER}/", "v=")) or _UNMANAGED.fullmatch(path) is not None


def _without(manifest: Manifest, paths: list[str], what: str, left_out: LeftOuts) -> Manifest:
    if not paths:
        return manifest
    remedy = "run the stage that writes it again while the samples are kept; otherwise it is a gap"
    for path in paths[:MAX_LOST_NAMED]:
        left_out.add(f"{path}: a published file of the {what} is missing or truncated", 1, remedy)
    left_out.add(
        f"more published files of the {what}, missing or truncated", max(0, len(paths) - MAX_LOST_NAMED), remedy
    )
    gone = set(paths)
    parts = {part: tuple(file for file in files if file.path not in gone) for part, files in manifest.parts.items()}
    # What is lost is computed again from samples that are still there.
    affected = {part for part, files in manifest.parts.items() if gone & {file.path for file in files}}
    days = {part.rpartition("/")[2] for part in affected}
    sources = {day: source for day, source in manifest.sources.items() if day not in days}
    return replace(manifest, parts=parts, sources=sources)


__all__ = ["EMPTY", "Parts", "Published", "Staged", "new_run", "staging", "write_staged"]

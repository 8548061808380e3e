"""Results of a run, as values to compare: rows of the tables that readers see, and the bytes of single files."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from balance_analytics.model.manifest import FOLDER, Manifest, ManifestError, decode, newest_first

KEYS = ("day", "hour", "topic", "partition", "broker")
"""Of the rows of all tables; each table has some of them."""

FILES = ("result.json", "moves.json", "reassignment.json", "report.html", "summary.json", "metrics.prom")
"""In the folder for output."""


@dataclass(frozen=True, slots=True)
class Results:
    """`facts` and `loads` are rows by part of the table, `files` the bytes of single files by name; what is not there is left out."""

    facts: dict[str, list[Any]]
    loads: dict[str, list[Any]]
    files: dict[str, bytes]

    def differences(self, expected: Results, files: Iterable[str] = FILES) -> list[str]:
        """Return the names of what differs."""
        found = [name for name in ("facts", "loads") if getattr(self, name) != getattr(expected, name)]
        return found + [name for name in files if self.files.get(name) != expected.files.get(name)]


def read_results(folder: Path) -> Results:
    """Read the results of a run with facts in `folder`/facts and output in `folder`/out."""
    files = {name: path.read_bytes() for name in FILES if (path := folder / "out" / name).exists()}
    return Results(table(folder / "facts"), table(folder / "out" / "loads"), files)


def table(root: Path) -> dict[str, list[Any]]:
    """Return the rows of each part of a table, in order. States are left out: they need not be the same to give the same facts."""
    manifest = newest(root)
    parts = {} if manifest is None else manifest.parts
    return {
        part: sorted(
            (row for file in files for row in pq.ParquetFile(root / file.path).read().to_pylist()),
            key=lambda row: [str(row[name]).zfill(9) for name in KEYS if name in row],
        )
        for part, files in sorted(parts.items())
        if "/" not in part
    }


def newest(root: Path) -> Manifest | None:
    """Return the newest manifest of a table that can be read."""
    folder = root / FOLDER
    for name in newest_first(path.name for path in folder.iterdir()) if folder.exists() else ():
        with suppress(ManifestError):
            return decode(name, (folder / name).read_text())
    return None

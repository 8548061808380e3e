"""Manifests: a small file that lists the files of a table.

A run writes its files into its own folder, `v=RUN/…`. Readers use them once a manifest lists them. So a table changes by one atomic write,
and a run that is killed leaves the table unchanged. A manifest's name has a sequence number and its run, `00000012-RUN.json`; the last
one that can be read is valid. Files that no manifest lists are deleted after `KEPT_MS`.

Pure values: `jobs/publishing.py` reads and writes them.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

FOLDER = "_manifests"
"""Below the table's folder; Spark's readers skip names that begin with an underscore."""

FORMAT = 1

KEPT_MS = 24 * 3_600_000
"""Age at which files that are no longer listed are deleted: longer than any run that may still read them."""

MAX_LISTED = 100_000
"""Limit of files in a manifest: 90 days of a thousand files; 10 MB of JSON."""

_NAME = re.compile(r"(?P<sequence>\d{8})-(?P<run>[0-9A-Za-z]+)\.json")
_DAY = re.compile(r"\d{4}-\d\d-\d\d")
_PATH = re.compile(r"(?!.*(^|/)\.\.?(/|$))[^/]+(/[^/]+)*")


class ManifestError(Exception):
    """A manifest cannot be read; the message contains the reason."""


@dataclass(frozen=True, slots=True)
class DataFile:
    """A file of a table: `path` below the table's folder, and its size in bytes."""

    path: str
    size: int


@dataclass(frozen=True, slots=True)
class FoundFile:
    """A file that a storage lists below a folder; `modified_ms` is Unix time."""

    path: str
    size: int
    modified_ms: int


@dataclass(frozen=True, slots=True)
class Source:
    """What a day of a table was computed from.

    `files` are sizes in bytes by name, of all files with samples of the day; `rates` is a digest of the day's rates, empty without any;
    `left_out` counts samples that were not used, by reason.
    """

    files: Mapping[str, int]
    rates: str = ""
    left_out: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Position:
    """How far a topic was read: the next offset by partition. `topic_id` differs if the topic was deleted and created again."""

    topic_id: str = ""
    offsets: Mapping[int, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Manifest:
    """The files of a table, by part: a day (`2026-01-31`), a day of a second table (`states/2026-01-31`) or the name of a smaller table.

    `sources` contains for each day what it was computed from, if the table is computed by days; `position` how far a topic was read,
    if the table is read from one.
    """

    sequence: int
    run: str
    written_ms: int
    parts: Mapping[str, tuple[DataFile, ...]]
    sources: Mapping[str, Source] = field(default_factory=dict)
    position: Position = field(default_factory=Position)

    def files(self) -> Iterable[DataFile]:
        """Yield the files of all parts."""
        for files in self.parts.values():
            yield from files

    def days(self, table: str = "") -> list[str]:
        """Return the days of the table, or of its second `table`, in order.

        >>> Manifest(1, "a", 0, {"2026-01-02": (), "2026-01-01": (), "states/2026-01-01": ()}).days()
        ['2026-01-01', '2026-01-02']
        """
        prefix = f"{table}/" if table else ""
        names = (part.removeprefix(prefix) for part in self.parts if part.startswith(prefix))
        return sorted(filter(is_day, names))

    def followed_by(
        self,
        run: str,
        written_ms: int,
        parts: Mapping[str, tuple[DataFile, ...]],
        *,
        keeps: bool,
        sources: Mapping[str, Source] | None = None,
        position: Position | None = None,
    ) -> Manifest:
        """Return the next manifest, with these parts replacing those of the same names; without `keeps` the others are removed.

        `sources` and `position` are unchanged unless new ones are given.
        """
        return Manifest(
            self.sequence + 1,
            run,
            written_ms,
            {**(self.parts if keeps else {}), **parts},
            self.sources if sources is None else sources,
            self.position if position is None else position,
        )


def is_day(name: str) -> bool:
    """Return whether a name is that of a day, such as `2026-01-31`."""
    return _DAY.fullmatch(name) is not None


EMPTY = Manifest(0, "", 0, {})
"""The manifest of a table that has none."""


def name_of(manifest: Manifest) -> str:
    """Return the name of a manifest's file.

    >>> name_of(Manifest(12, "a1", 0, {}))
    '00000012-a1.json'
    """
    return f"{manifest.sequence:08d}-{manifest.run}.json"


def newest_first(names: Iterable[str]) -> list[str]:
    """Return the names of manifests, the newest first; other names are skipped.

    Two runs that published at the same time have the same number. All readers choose the same one: the last by the name of the run.

    >>> newest_first(["00000001-b.json", "00000002-a.json", "00000001-a.json", ".00000003-c.json.new"])
    ['00000002-a.json', '00000001-b.json', '00000001-a.json']
    """
    return sorted((name for name in names if _NAME.fullmatch(name)), reverse=True)


def encode(manifest: Manifest) -> str:
    """Return a manifest as JSON."""
    parts = {part: [[file.path, file.size] for file in files] for part, files in sorted(manifest.parts.items())}
    document: dict[str, object] = {"format": FORMAT, "written_ms": manifest.written_ms, "parts": parts}
    if manifest.sources:
        document["sources"] = {day: asdict(source) for day, source in sorted(manifest.sources.items())}
    if manifest.position != Position():
        document["position"] = asdict(manifest.position)
    return json.dumps(document, indent=1) + "\n"


def decode(name: str, text: str) -> Manifest:
    """Read the manifest of a name. Raises ManifestError."""
    parsed = _NAME.fullmatch(name)
    if parsed is None:
        raise ManifestError(f"{name} is not the name of a manifest")
    try:
        document = json.loads(text)
        if document["format"] != FORMAT:
            raise ManifestError(f"{name} has format {document['format']}, this version reads {FORMAT}")
        parts = {str(part): tuple(map(_file, files)) for part, files in document["parts"].items()}
        sources = {str(day): _source(entry) for day, entry in document.get("sources", {}).items()}
        position = _position(document.get("position", {}))
        sequence, written_ms = int(parsed["sequence"]), int(document["written_ms"])
        found = Manifest(sequence, parsed["run"], written_ms, parts, sources, position)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise ManifestError(f"{name} is not a manifest: {error}") from error
    if sum(1 for _ in found.files()) > MAX_LISTED:
        raise ManifestError(f"{name} lists more than {MAX_LISTED} files")
    return found


def _file(entry: Sequence[object]) -> DataFile:
    path, size = entry
    if not isinstance(path, str) or not isinstance(size, int) or not _PATH.fullmatch(path):
        raise ValueError(f"{entry} is not a path below the table and a size")
    return DataFile(path, size)


def _source(entry: Mapping[str, Any]) -> Source:
    return Source(_counts(entry["files"]), str(entry["rates"]), _counts(entry["left_out"]))


def _position(entry: Mapping[str, Any]) -> Position:
    offsets = {int(partition): offset for partition, offset in _counts(entry.get("offsets", {})).items()}
    return Position(str(entry.get("topic_id", "")), offsets)


def _counts(entry: Mapping[str, object]) -> dict[str, int]:
    return {str(name): int(str(count)) for name, count in entry.items()}


def lost(manifest: Manifest, found: Iterable[FoundFile]) -> list[str]:
    """Return the paths of a manifest's files that do not exist, or have another size than the published one."""
    sizes = {file.path: file.size for file in found}
    return [file.path for file in manifest.files() if sizes.get(file.path) != file.size]


def expired(found: Iterable[FoundFile], manifests: Sequence[Manifest], now_ms: int) -> list[str]:
    """Return the files that no run needs: older than `KEPT_MS`, and not listed by a manifest in use.

    In use are the newest manifest and those replaced less than `KEPT_MS` ago, as a run may still read their files.
    """
    in_order = sorted(manifests, key=name_of)
    replaced_ms = [*(after.written_ms for after in in_order[1:]), now_ms]
    named = {
        path
        for manifest, ended_ms in zip(
            in_order, replaced_ms, strict=False
        )  # without any manifest there is none to replace
        if now_ms - ended_ms < KEPT_MS
        for path in [*(file.path for file in manifest.files()), f"{FOLDER}/{name_of(manifest)}"]
    }
    return [file.path for file in found if file.path not in named and now_ms - file.modified_ms >= KEPT_MS]

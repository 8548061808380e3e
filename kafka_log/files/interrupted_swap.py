"""Files that an interrupted compaction or deletion left in a partition's folder.

A compaction writes NNN.log.cleaned, renames it to NNN.log.swap when it is whole, deletes the segments that it replaces, and renames it to
NNN.log. A deletion renames a segment's files to NNN.log.deleted and deletes them later. So a `.swap` file is finished, and the two others are
removed. Source: Kafka's LogLoader.
"""

import logging
import mmap
from pathlib import Path

from kafka_log.errors import LogWriteError, UnreadableFileError
from kafka_log.files.durable import flush_folder
from kafka_log.format.batches import BadBatchError, read_batches
from kafka_log.format.names import (
    CLEANED_SUFFIX,
    DELETED_CHECKPOINT_SUFFIX,
    DELETED_SUFFIX,
    LOG_SUFFIX,
    SWAP_SUFFIX,
    segment_of,
)

log = logging.getLogger(__name__)


def finish_interrupted_swap(folder: Path) -> None:
    """Remove unfinished files, and put whole ones in the place of the segments that they replace.

    Raises LogWriteError, and UnreadableFileError for a `.swap` file that is no segment.
    """
    names = sorted(path.name for path in folder.iterdir() if path.is_file())
    cleaned = [name for name in names if name.endswith(CLEANED_SUFFIX)]
    deleted = [name for name in names if name.endswith(DELETED_SUFFIX) and not name.endswith(DELETED_CHECKPOINT_SUFFIX)]
    swaps = [name for name in names if name.endswith(SWAP_SUFFIX)]
    # A split of a segment has several parts: while one is unfinished, those behind it do not replace anything (KAFKA-6264).
    first_unfinished = min((base for name in cleaned if (base := _base_offset(name)) is not None), default=None)
    invalid = [
        name
        for name in swaps
        if first_unfinished is not None and (base := _base_offset(name)) is not None and base >= first_unfinished
    ]
    try:
        for name in (*deleted, *invalid, *cleaned):
            (folder / name).unlink(missing_ok=True)
        valid = [name for name in swaps if name not in invalid]
        if valid:
            _put_in_place(folder, valid)
            flush_folder(folder)
    except OSError as error:
        raise LogWriteError(f"Failed to finish the compaction in {folder}: {error}") from error


def _put_in_place(folder: Path, swaps: list[str]) -> None:
    """Delete the files that `.swap` files replace, and rename these. Repeated after a crash, it ends in the same files."""
    replaced = _replaced_offsets(folder, swaps)
    for path in sorted(folder.iterdir()):
        found = segment_of(path.name)
        if found is not None and replaced is not None and replaced[0] <= found[0] < replaced[1]:
            log.info("Deleting compacted segment", extra={"path": str(path)})
            path.unlink()
    for name in swaps:
        (folder / name).replace(folder / name.removesuffix(SWAP_SUFFIX))


def _replaced_offsets(folder: Path, swaps: list[str]) -> tuple[int, int] | None:
    """Return the range of base offsets that the segments replace, the end exclusive; None if only indexes are left."""
    logs = [(base, folder / name) for name in swaps if (base := _base_offset(name, LOG_SUFFIX)) is not None]
    if not logs:
        return None
    return min(base for base, _ in logs), max(_end_offset(base, path) for base, path in logs)


def _end_offset(base_offset: int, path: Path) -> int:
    """Return the offset behind a segment's last batch."""
    if path.stat().st_size == 0:
        return base_offset
    try:
        with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
            *_, last = read_batches(content, verify_checksums=False)
    except BadBatchError as error:
        raise UnreadableFileError(
            f"{path} is invalid at position {error.position}: {error.reason}. The segments that it replaces are still in "
            "the folder: check the disk, and delete the file."
        ) from None
    return last.last_offset + 1


def _base_offset(name: str, suffix: str | None = None) -> int | None:
    """Return the base offset in a name with one of the suffixes, None for another file."""
    found = segment_of(name.removesuffix(SWAP_SUFFIX).removesuffix(CLEANED_SUFFIX))
    return found[0] if found is not None and suffix in {None, found[1]} else None

"""Names and ages of the sampler's Parquet files: which are samples, which days are complete, which are past retention.

Pure. A folder `date=2026-02-01` contains one file for each sample (`sample-CLUSTER-ROUND.parquet`) until it is compacted, then few large
ones (`day-CLUSTER-ROUND-DIGEST.parquet`). Names of any other form belong to other programs and are never touched.
"""

import datetime as dt
import hashlib
import re
from collections.abc import Iterable
from typing import NamedTuple

from balance_analytics.model.sample_rows import DATE

DAY_MS = 86_400_000
GRACE_MS = 15 * 60_000
"""From the end of a day to its compaction: its last sample is stored within 54 s of a round at the default interval, and a second
sampler's clock may be some minutes behind. A file that arrives later is not lost: it stays, or is compacted with others."""

MIN_FILES = 2
"""One file gains nothing from being written again."""

DRAFT_MAX_AGE_S = 3_600
"""A draft that was not written to for an hour belongs to a process that has ended: one in use grows every few seconds."""

# Development versions of the sampler named these files "look-…".
_FOLDER = re.compile(rf"{DATE}=([0-9]{{4}}-[0-9]{{2}}-[0-9]{{2}})")
_SAMPLE = re.compile(r"(?:sample|look)-([\w-]{1,200})-([0-9]{1,19})\.parquet")
_COMPACTED = re.compile(r"day-[\w-]{1,200}-[0-9]{1,19}-[0-9a-f]{16}\.parquet")
_DRAFT = re.compile(r"\.(sample|look|day)-[\w-]{1,240}\.parquet\.[0-9a-z]{1,20}")


class SampleFile(NamedTuple):
    """One file of a sample. Size and time of modification distinguish it from a later file of the same name."""

    cluster: str
    round_ms: int
    name: str
    size_bytes: int
    modified_ns: int


def day_of(folder: str) -> dt.date | None:
    """Return the day of a folder's name; None if the sampler does not write such a folder.

    >>> day_of("date=2026-02-01"), day_of("date=2026-02-30"), day_of("date=2026-02-01.old")
    (datetime.date(2026, 2, 1), None, None)
    """
    found = _FOLDER.fullmatch(folder)
    try:
        return None if found is None else dt.date.fromisoformat(found[1])
    except ValueError:
        return None


def sample_file(name: str, size_bytes: int, modified_ns: int) -> SampleFile | None:
    """Return the file of a sample; None for any other name.

    >>> sample_file("sample-a-b-60000.parquet", 9, 5)
    SampleFile(cluster='a-b', round_ms=60000, name='sample-a-b-60000.parquet', size_bytes=9, modified_ns=5)
    """
    found = _SAMPLE.fullmatch(name)
    return None if found is None else SampleFile(found[1], int(found[2]), name, size_bytes, modified_ns)


def is_compacted(name: str) -> bool:
    """Whether compaction gives such a name."""
    return _COMPACTED.fullmatch(name) is not None


def is_draft(name: str) -> bool:
    """Whether it is a file that the sampler had not finished."""
    return _DRAFT.fullmatch(name) is not None


def is_own(name: str) -> bool:
    """Whether the sampler writes files of this name."""
    return _SAMPLE.fullmatch(name) is not None or is_compacted(name) or is_draft(name)


def compacted_name(sources: Iterable[SampleFile]) -> str:
    """Return the name of the file into which these are compacted: other sources, or the same ones written again, have another."""
    ordered = sorted(sources)
    lines = "\n".join(f"{file.name} {file.size_bytes} {file.modified_ns}" for file in ordered)
    digest = hashlib.sha256(lines.encode()).hexdigest()[:16]
    return f"day-{ordered[0].cluster}-{ordered[0].round_ms}-{digest}.parquet"


def is_complete(day: dt.date, now_ms: int) -> bool:
    """Whether no more samples of a day are expected.

    >>> [is_complete(dt.date(1970, 1, 1), DAY_MS + GRACE_MS + late_ms) for late_ms in (-1, 0)]
    [False, True]
    """
    return _end_ms(day) + GRACE_MS <= now_ms


def is_expired(day: dt.date, now_ms: int, retention_days: int) -> bool:
    """Whether a day ended `retention_days` days ago or earlier.

    >>> [is_expired(dt.date(1970, 1, 1), 3 * DAY_MS + late_ms, 2) for late_ms in (-1, 0)]
    [False, True]
    """
    return _end_ms(day) + retention_days * DAY_MS <= now_ms


def _end_ms(day: dt.date) -> int:
    return ((day - dt.date(1970, 1, 1)).days + 1) * DAY_MS

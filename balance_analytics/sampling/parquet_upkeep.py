"""Upkeep of the folder of Parquet files, while the sampler runs: complete days are compacted, days past retention are deleted.

It runs in its own thread, so that no sample waits for it. Its failures do not end the sampler: the next run tries again.
"""

import asyncio
import contextlib
import datetime as dt
import logging
import os
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

from balance_analytics.sampling.parquet_compaction import CompactionFailed, CompactionStopped, Compactor
from balance_analytics.sampling.parquet_days import day_of, is_complete, is_expired, is_own
from balance_analytics.sampling.settings import ParquetSettings

log = logging.getLogger(__name__)

INTERVAL_S = 600.0
"""Between two runs: a day is compacted within ten minutes of its time, and listing folders costs nothing."""


class ParquetUpkeep:
    """Compacts and deletes days below one folder."""

    def __init__(self, settings: ParquetSettings, now_ms: Callable[[], int]) -> None:
        self._settings = settings
        self._now_ms = now_ms
        self._stopping = threading.Event()
        self._compactor = Compactor(self._stopping.is_set)
        self._not_empty: set[str] = set()

    async def run(self) -> None:
        """Run at intervals until cancelled. The thread ends soon after."""
        try:
            while True:
                await asyncio.to_thread(self.run_once)
                await asyncio.sleep(INTERVAL_S)
        finally:
            self._stopping.set()

    def run_once(self) -> None:
        """Delete days past retention, then compact complete days, oldest first."""
        now_ms = self._now_ms()
        for day, folder in self._days():
            if self._stopping.is_set():
                return
            with _logged(folder):
                if self._is_expired(day, now_ms):
                    self._delete(folder)
                elif is_complete(day, now_ms):
                    self._compact(folder)

    def _is_expired(self, day: dt.date, now_ms: int) -> bool:
        retention_days = self._settings.retention_days
        return retention_days is not None and is_expired(day, now_ms, retention_days)

    def _days(self) -> list[tuple[dt.date, Path]]:
        """Return the folders of days. Links are not followed: the sampler has not created what they point to."""
        found = []
        if not self._settings.folder.exists():  # the first sample creates it
            return []
        with _logged(self._settings.folder), os.scandir(self._settings.folder) as entries:
            for entry in entries:
                day = day_of(entry.name)
                if day is not None and entry.is_dir(follow_symlinks=False):
                    found.append((day, Path(entry.path)))
        return sorted(found)

    def _compact(self, folder: Path) -> None:
        result = self._compactor.compact(folder)
        if result.files:
            log.info(
                "Compacted samples of a day",
                extra={
                    "folder": str(folder),
                    "sources": result.sources,
                    "files": result.files,
                    "rows": result.rows,
                    "bytes": result.size_bytes,
                },
            )

    def _delete(self, folder: Path) -> None:
        """Delete the sampler's files of a day, and its folder if nothing else is in it."""
        with os.scandir(folder) as entries:
            own = [entry for entry in entries if is_own(entry.name) and entry.is_file(follow_symlinks=False)]
        for entry in own:
            with contextlib.suppress(FileNotFoundError):  # another sampler deletes the same day
                os.unlink(entry.path)  # noqa: PTH108 - entries have their own path
        with os.scandir(folder) as entries:
            others = [entry.name for entry in entries]
        if not others:
            folder.rmdir()
        elif folder.name not in self._not_empty:
            self._not_empty.add(folder.name)
            log.warning(
                "A day past retention has files that the sampler does not write; they are kept",
                extra={"folder": str(folder), "files": len(others)},
            )
        if own:
            log.info("Deleted samples of a day past retention", extra={"folder": str(folder), "files": len(own)})


@contextlib.contextmanager
def _logged(folder: Path) -> Iterator[None]:
    """Log a failure of one folder, and continue with the next."""
    try:
        yield
    except CompactionStopped as error:
        log.info("Compaction stopped", extra={"folder": str(folder), "reason": str(error)})
    except (OSError, CompactionFailed) as error:
        log.warning("Upkeep of samples failed; trying again later", extra={"folder": str(folder), "reason": str(error)})
    except Exception:  # sampling continues, whatever a file contains
        log.exception("Upkeep of samples failed; trying again later", extra={"folder": str(folder)})

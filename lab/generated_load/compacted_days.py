"""A load at the start of a run with one new day: facts of all days before, and samples of the new day as the sampler's compaction leaves them.

`write_facts_before` writes the facts of all days but the last, `write_end_of_day_before` the samples of the last hours of the day before the
last one, from which a run of the stage `facts` computes the states that the next run continues from. `write_last_day` writes the new
day, in files of at most MAX_ROWS rows.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from balance_analytics.model.sample_rows import SAMPLE_ROWS
from balance_analytics.sampling.parquet_compaction import MAX_ROWS, ROW_GROUP_ROWS
from balance_analytics.sampling.parquet_days import SampleFile, compacted_name
from balance_analytics.sampling.parquet_writer import COMPRESSION
from lab.generated_load.hourly_facts import write_day_facts
from lab.generated_load.layout import Layout
from lab.generated_load.minute_samples import samples
from lab.generated_load.parquet import day_folder, table_of

HOURS_BEFORE = 2
"""The hour that ends at 23:00 has the states, the hour after it is computed again with the new day."""

DAY_HOURS = 24


def write_facts_before(layout: Layout, folder: Path) -> None:
    """Write the facts of all days but the last, with a manifest."""
    write_day_facts(layout, folder, layout.spec.days - 1)


def write_end_of_day_before(layout: Layout, folder: Path) -> None:
    """Write the samples of the last hours of the day before the last one."""
    begin = (layout.spec.days - 1) * DAY_HOURS
    _write(layout, folder, begin - HOURS_BEFORE, begin)


def write_last_day(layout: Layout, folder: Path) -> None:
    """Write the samples of the last day."""
    begin = (layout.spec.days - 1) * DAY_HOURS
    _write(layout, folder, begin, begin + DAY_HOURS)


def hours_of_samples(layout: Layout, first: int, end: int) -> Iterator[tuple[int, Any]]:
    """Yield the start of each hour in Unix time and its samples as a table of SAMPLE_ROWS, in the order of time."""
    end_ms = (layout.spec.start_s + 3600 * end) * 1000
    for start_s, columns in samples(layout, first):
        if start_s * 1000 >= end_ms:
            return
        rows = table_of(SAMPLE_ROWS, columns)
        # The last hour of a load has the sample at its end, which belongs to the next day.
        yield start_s, rows.filter(pc.less(rows["round_ms"], end_ms))


def _write(layout: Layout, folder: Path, first: int, end: int) -> None:
    """Write hours of one day; a file ends with the hour that reaches MAX_ROWS."""
    writer, path, rows_written = None, folder, 0
    draft = folder / "draft.parquet"
    folder.mkdir(parents=True, exist_ok=True)
    for start_s, rows in hours_of_samples(layout, first, end):
        if writer is None:
            source = SampleFile(layout.spec.cluster_id, start_s * 1000, "", 0, 0)
            path, rows_written = day_folder(folder, start_s) / compacted_name([source]), 0
            writer = pq.ParquetWriter(draft, rows.schema, compression=COMPRESSION)
        for at in range(0, len(rows), ROW_GROUP_ROWS):
            writer.write_table(rows.slice(at, ROW_GROUP_ROWS))
        rows_written += len(rows)
        del rows
        pa.default_memory_pool().release_unused()
        if rows_written >= MAX_ROWS:
            writer.close()
            draft.rename(path)
            writer = None
    if writer is not None:
        writer.close()
        draft.rename(path)

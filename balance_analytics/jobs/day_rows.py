"""Conversion of facts between hourly rows and rows of a day, and the stored facts in either layout.

    by_day(hourly)      FACTS, sorted, to DAY_FACTS
    by_hour(days)       DAY_FACTS to FACTS
    StoredFacts         days of a manifest, whichever layout their files have

Leaves out the columns (`model/facts.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import partial, reduce
from typing import TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf

from balance_analytics.jobs.arrow import Batches, map_batches, whole_groups
from balance_analytics.jobs.files import Table, without_corrupt
from balance_analytics.jobs.publishing import Published
from balance_analytics.jobs.troubles import LeftOuts
from balance_analytics.model.column import names
from balance_analytics.model.facts import DAY_FACTS, DAY_KEY, FACTS, HOURLY, HOURS, KEY, is_of_days
from balance_analytics.model.manifest import Manifest

Found = TypeVar("Found")

SERIES = ("cluster_id", "topic", "partition")

US_PER_HOUR = 3_600_000_000


def by_day(hourly: DataFrame) -> DataFrame:
    """Return DAY_FACTS out of rows of FACTS; in each task all hours of a partition must follow each other, sorted by KEY."""
    day = sf.date_trunc("DAY", "hour").alias("day")
    return map_batches(hourly.select(*SERIES, day, "hour", *names(HOURLY)), day_batches, DAY_FACTS)


def day_batches(batches: Iterable[pa.RecordBatch]) -> Batches:
    """Turn rows of FACTS, with their `day` and in the order of KEY, into rows of DAY_FACTS."""
    for batch, starts in whole_groups(batches, DAY_KEY):
        count = len(starts)
        group = np.repeat(np.arange(count), np.diff([*starts, batch.num_rows]))
        since_day = pc.subtract(batch["hour"].cast(pa.int64()), batch["day"].cast(pa.int64())).to_numpy()
        source = np.full(count * HOURS, -1)
        source[group * HOURS + since_day // US_PER_HOUR] = np.arange(batch.num_rows)
        taken = pa.array(source, mask=source < 0)
        offsets = pa.array(np.arange(0, count * HOURS + 1, HOURS, dtype=np.int32))
        first = pa.array(starts)
        arrays = [batch[name].take(first) for name in DAY_KEY]
        arrays += [pa.ListArray.from_arrays(offsets, batch[column.name].take(taken)) for column in HOURLY]
        yield pa.RecordBatch.from_arrays(arrays, names=names(DAY_FACTS))


def by_hour(days: DataFrame) -> DataFrame:
    """Return rows of FACTS, for the hours that have any, out of rows of DAY_FACTS."""
    arrays = sf.arrays_zip(*(sf.col(column.name) for column in HOURLY))
    rows = days.select(*SERIES, "day", sf.posexplode(arrays).alias("at", "of_hour")).where(
        "of_hour.minutes IS NOT NULL"
    )
    return rows.select(*SERIES, _hour().alias("hour"), *(f"of_hour.{column.name}" for column in HOURLY))


@dataclass(frozen=True)
class StoredFacts:
    """The facts of some days, in files by day: `days` reads those with rows of DAY_FACTS, `hours` those of earlier versions."""

    parts: Mapping[str, tuple[str, ...]]
    days: Table
    hours: Table

    @staticmethod
    def of(published: Published, manifest: Manifest) -> StoredFacts:
        """Return the facts of all days of a manifest."""
        spark, root, what = published.spark, published.root, published.what
        tables = (Table(spark, root, columns, what, by_day=True, files=[]) for columns in (DAY_FACTS, FACTS))
        parts = {part: tuple(file.path for file in files) for part, files in manifest.parts.items()}
        return StoredFacts(parts, *tables).only(manifest.days())

    def only(self, parts: Iterable[str]) -> StoredFacts:
        """Return the facts of some days; files that are found corrupt in one of both are left out of the other."""
        chosen = {part: self.parts[part] for part in parts if part in self.parts}
        files = [path for paths in chosen.values() for path in paths]
        days = replace(self.days, files=[path for path in files if is_of_days(path)])
        hours = replace(self.hours, files=[path for path in files if not is_of_days(path)])
        return StoredFacts(chosen, days, hours)

    def exists(self) -> bool:
        """Return whether there are any files."""
        return self.days.exists() or self.hours.exists()

    def is_complete(self) -> bool:
        """Return whether no file was found corrupt."""
        return not self.days.without and not self.hours.without

    def minutes(self) -> DataFrame:
        """Return `cluster_id`, `hour` and `minutes` of every row of FACTS; no other column is read."""
        columns = ("cluster_id", "hour", "minutes")
        return self._of_both(lambda days: _minutes(days).select(*columns), lambda hours: hours.select(*columns))

    def topics(self) -> DataFrame:
        """Return `cluster_id` and `topic` of every row; no other column is read."""
        return self._of_both(
            lambda days: days.select("cluster_id", "topic"), lambda hours: hours.select("cluster_id", "topic")
        )

    def by_hour(self) -> DataFrame:
        """Return rows of FACTS."""
        return self._of_both(by_hour, lambda hours: hours.select(*names(FACTS)))

    def by_day(self) -> DataFrame:
        """Return rows of DAY_FACTS. Files of earlier versions cost a shuffle of their rows."""

        def sorted_by_day(hours: DataFrame) -> DataFrame:
            return by_day(hours.repartition(*SERIES).sortWithinPartitions(*KEY))

        return self._of_both(lambda days: days.select(*names(DAY_FACTS)), sorted_by_day)

    def without_corrupt(self, left_out: LeftOuts, work: Callable[[], Found]) -> Found:
        """Do `work`, which reads these facts, as `files.without_corrupt` does for one table."""
        for table in (self.hours, self.days):
            if table.exists():
                work = partial(without_corrupt, table, left_out, work)
        return work()

    def _of_both(
        self, of_days: Callable[[DataFrame], DataFrame], of_hours: Callable[[DataFrame], DataFrame]
    ) -> DataFrame:
        frames = []
        if self.days.exists() or not self.hours.exists():
            frames.append(of_days(self.days.read()))
        if self.hours.exists():
            frames.append(of_hours(self.hours.read()))
        return reduce(DataFrame.unionByName, frames)


def _minutes(days: DataFrame) -> DataFrame:
    rows = days.select("cluster_id", "day", sf.posexplode("minutes").alias("at", "minutes"))
    return rows.where("minutes IS NOT NULL").withColumn("hour", _hour())


def _hour() -> Column:
    return sf.timestamp_micros(sf.unix_micros("day") + sf.col("at") * sf.lit(US_PER_HOUR))

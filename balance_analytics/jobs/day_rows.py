"""Conversion of facts between hourly rows and rows of a day, and the stored facts in either layout.

    by_day(hourly)      FACTS, sorted, to DAY_FACTS
    by_hour(days)       DAY_FACTS to FACTS
    StoredFacts         days of a manifest, whichever layout their files have

The columns are in `model/facts.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import partial, reduce
from typing import TypeVar

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf

from balance_analytics.jobs.arrow import map_batches
from balance_analytics.jobs.day_batches import US_PER_HOUR, day_batches
from balance_analytics.jobs.files import Table, without_corrupt
from balance_analytics.jobs.packed_samples import PARTITION
from balance_analytics.jobs.problems import LeftOuts
from balance_analytics.jobs.publishing import Published
from balance_analytics.model.column import names
from balance_analytics.model.facts import DAY_FACTS, FACTS, HOURLY, is_of_days
from balance_analytics.model.manifest import Manifest

Found = TypeVar("Found")


def by_day(hourly: DataFrame) -> DataFrame:
    """Return DAY_FACTS out of rows of FACTS; in each task all hours of a partition must follow each other, sorted by KEY."""
    day = sf.date_trunc("DAY", "hour").alias("day")
    return map_batches(hourly.select(*PARTITION, day, "hour", *names(HOURLY)), day_batches, DAY_FACTS)


def by_hour(days: DataFrame) -> DataFrame:
    """Return rows of FACTS, for the hours that have any, out of rows of DAY_FACTS."""
    arrays = sf.arrays_zip(*(sf.col(column.name) for column in HOURLY))
    rows = days.select(*PARTITION, "day", sf.posexplode(arrays).alias("at", "of_hour")).where(
        "of_hour.minutes IS NOT NULL"
    )
    return rows.select(*PARTITION, _hour().alias("hour"), *(f"of_hour.{column.name}" for column in HOURLY))


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

    def names(self) -> list[str]:
        """Return the paths of all files, of both layouts, that were not found corrupt."""
        return [*self.days.names(), *self.hours.names()]

    def topics(self) -> DataFrame:
        """Return `cluster_id` and `topic` of every row; no other column is read."""
        return self._of_both(
            lambda days: days.select("cluster_id", "topic"), lambda hours: hours.select("cluster_id", "topic")
        )

    def by_hour(self) -> DataFrame:
        """Return rows of FACTS."""
        return self._of_both(by_hour, lambda hours: hours.select(*names(FACTS)))

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


def _hour() -> Column:
    return sf.timestamp_micros(sf.unix_micros("day") + sf.col("at") * sf.lit(US_PER_HOUR))

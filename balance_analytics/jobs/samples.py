"""Samples into rows (`model/sample_rows.py`): out of the samples topic by spark-sql-kafka, or out of Parquet.

Messages are JSON with arrays, an entry a partition; Spark's own from_json reads them and explodes the arrays. What cannot be
taken is left out and counted while the rows go by, so that nothing is read twice: messages that are no sample or of another schema,
looks whose clocks disagree. Leaves out differences (`differences`).
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from pyspark.sql import DataFrame, Observation, SparkSession
from pyspark.sql import functions as sf

from balance_analytics.jobs.files import Table
from balance_analytics.jobs.troubles import AnalyticsError, LeftOuts
from balance_analytics.model.column import names
from balance_analytics.model.sample_rows import SAMPLE_ROWS, SAMPLES_TOPIC, SCHEMA_ID

SCHEME = "kafka"
HOUR_MS = 3_600_000

MAX_LATE_MS = 120_000
"""From the planned time of a look to the look: a round that takes longer has run into the next two."""

MAX_AHEAD_MS = 600_000
"""A look stamped so long after now, or a message stamped so long away from its look, was made by a wrong clock."""

PER_MESSAGE = ("cluster_id", "topic", "sampled_at_ms", "round_ms")
"""Said once in a message; all other columns are arrays with an entry for each partition."""

_ARRAYS = tuple(column for column in SAMPLE_ROWS if column.name not in PER_MESSAGE)
_MESSAGE = ", ".join(
    (
        "schema int",
        *(f"`{column.name}` {column.kind.value}" for column in SAMPLE_ROWS if column.name in PER_MESSAGE),
        *(f"`{column.name}` array<{column.kind.value}>" for column in _ARRAYS),
    )
)


@dataclass
class Samples:
    """Where samples are: `place` is kafka://host:port[,host:port][/topic] or a folder. `options` are Kafka's, for access."""

    spark: SparkSession
    place: str
    options: Mapping[str, str] = field(default_factory=dict)
    _seen: list[tuple[str, Observation]] = field(default_factory=list)

    @property
    def in_kafka(self) -> bool:
        """Whether they are in a topic."""
        return self.place.startswith(f"{SCHEME}://")

    def table(self) -> Table:
        """Return the folder as a table."""
        return Table(self.spark, self.place, SAMPLE_ROWS, "samples", by_day=True)

    def rows(self, table: Table | None, now_ms: int, since_ms: int) -> DataFrame:
        """Return rows of `model/sample_rows.py` from `since_ms` on; `table` is where they are unless they are in Kafka."""
        self._seen.clear()
        frame = self._out_of_kafka(since_ms) if table is None else self._out_of_parquet(table, since_ms)
        apart = sf.col("sampled_at_ms") - sf.col("round_ms")
        stamped = sf.col("stamped_ms") if table is None else sf.col("sampled_at_ms")
        right = apart.between(-HOUR_MS // 60, MAX_LATE_MS) & (sf.col("sampled_at_ms") <= now_ms + MAX_AHEAD_MS)
        right &= sf.abs(stamped - sf.col("sampled_at_ms")) <= MAX_AHEAD_MS
        frame = self._counted(frame, "clocks", ~right)
        return frame.where(right & sf.col("partition").isNotNull() & (sf.col("round_ms") >= since_ms)).select(
            *names(SAMPLE_ROWS)
        )

    def tell(self, left_out: LeftOuts) -> None:
        """Note what was left out of the rows, once something has read them to the end."""
        words = {
            "messages": (
                "messages that are no samples of this version",
                "let nothing but `steward sampler` write the topic",
            ),
            "clocks": ("looks whose clocks disagree", "set the clock of the sampler's machine by NTP"),
        }
        for name, observation in self._seen:
            left_out.add(words[name][0], int(observation.get["left"] or 0), words[name][1])

    def _counted(self, frame: DataFrame, name: str, left: object) -> DataFrame:
        """Count what will be left out while the rows go by."""
        observation = Observation(name)
        self._seen.append((name, observation))
        return frame.observe(observation, sf.count_if(left).alias("left"))  # type: ignore[arg-type]

    def _out_of_parquet(self, table: Table, since_ms: int) -> DataFrame:
        since = dt.datetime.fromtimestamp(since_ms / 1000, dt.UTC).date()
        return table.read(since)

    def _out_of_kafka(self, since_ms: int) -> DataFrame:
        servers, topic = address(self.place)
        reader = self.spark.read.format("kafka").option("kafka.bootstrap.servers", servers).option("subscribe", topic)
        for name, value in self.options.items():
            reader = reader.option(f"kafka.{name}", value)
        frame = (
            reader.option("startingTimestamp", since_ms)
            .option("startingOffsetsByTimestampStrategy", "latest")
            # Retention goes on while the topic is read: what it took meanwhile is a gap like any other.
            .option("failOnDataLoss", False)
            .load()
        )
        parsed = frame.select(
            sf.from_json(sf.col("value").cast("string"), _MESSAGE).alias("said"),
            sf.unix_millis("timestamp").alias("stamped_ms"),
        )
        good = sf.coalesce(sf.col("said.schema") == SCHEMA_ID, sf.lit(False))
        counted = self._counted(parsed, "messages", ~good).where(good)
        arrays = sf.arrays_zip(*(sf.col(f"said.{column.name}").alias(column.name) for column in _ARRAYS))
        exploded = counted.select(
            "stamped_ms", *(f"said.{name}" for name in PER_MESSAGE), sf.explode(arrays).alias("one")
        )
        return exploded.select("stamped_ms", *PER_MESSAGE, *(f"one.{column.name}" for column in _ARRAYS))


def address(place: str) -> tuple[str, str]:
    """Return bootstrap servers and topic of kafka://host:port[,host:port][/topic].

    >>> address("kafka://a:9092,b:9092/looks"), address("kafka://a:9092")
    (('a:9092,b:9092', 'looks'), ('a:9092', '__steward_samples'))
    """
    parts = urlsplit(place)
    if not parts.netloc or any(":" not in one for one in parts.netloc.split(",")):
        raise AnalyticsError(f"{place} names no brokers: write kafka://HOST:PORT[,HOST:PORT][/TOPIC]")
    return parts.netloc, parts.path.strip("/") or SAMPLES_TOPIC

"""Rates from Prometheus: the rows that the sampler writes, one JSON object per line, and the hourly rows of the pipeline."""

from balance_analytics.model.column import Column, Kind

SOURCE = "prometheus"

RATE_ROWS = (
    Column("resource", Kind.STRING, "bytes_in or bytes_out of a topic; cpu or network of an instance"),
    Column("of", Kind.STRING, "name of the topic or instance"),
    Column("at_ms", Kind.INT64, "time in Prometheus: the end of the minutes over which the rate was computed"),
    Column("value", Kind.FLOAT64, "bytes/s, or cores of CPU"),
    Column("source", Kind.STRING, "prometheus"),
)

OF_TOPICS = ("bytes_in", "bytes_out")
"""Resources whose rates replace those computed from offsets."""

OF_INSTANCES = ("cpu", "network")
"""Accepted, but not in facts: the name of an instance does not contain the broker's id."""

TOPIC_HOURS = (
    Column("topic", Kind.STRING, "name of the topic"),
    Column("hour", Kind.TIMESTAMP, "start of the hour"),
    *(Column(f"rate_{name}", Kind.FLOAT64, "bytes/s, mean of the hour", nullable=True) for name in OF_TOPICS),
)

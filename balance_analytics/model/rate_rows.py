"""Rates that Prometheus knows, as the sampler writes them: a JSON object a line; and what the pipeline makes of them, an hour a row.

Leaves out asking for them (`sampling/prometheus.py`) and joining them to facts (`jobs/rates.py`).
"""

from balance_analytics.model.column import Column, Kind

SOURCE = "prometheus"

RATE_ROWS = (
    Column("resource", Kind.STRING, "bytes_in or bytes_out, of a topic; cpu or network, of an instance"),
    Column("of", Kind.STRING, "the topic's name, or the instance's"),
    Column("at_ms", Kind.INT64, "when Prometheus says so: the end of the minutes that the rate is of"),
    Column("value", Kind.FLOAT64, "bytes/s, or cores of CPU"),
    Column("source", Kind.STRING, "prometheus"),
)

OF_TOPICS = ("bytes_in", "bytes_out")
"""Resources that take the place of what offsets tell."""

OF_INSTANCES = ("cpu", "network")
"""Known, and in no fact: an instance's name says nothing of a broker's id."""

TOPIC_HOURS = (
    Column("topic", Kind.STRING, "name of the topic"),
    Column("hour", Kind.TIMESTAMP, "start of the hour"),
    *(Column(f"rate_{name}", Kind.FLOAT64, "bytes/s, mean of the hour", nullable=True) for name in OF_TOPICS),
)

"""One Spark session for the run, in this process; tests that use it are marked `java`."""

from __future__ import annotations

import logging
from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from balance_analytics.jobs.session import session
from lab.spark import spark_kafka_jars

TINY = {
    "spark.driver.memory": "768m",
    # The first compiler tier only, as every JVM of the lab: nothing here runs long enough for the second.
    # With the first tier only, its default for code is so little that Java throws compiled code away and compiles it again.
    "spark.driver.extraJavaOptions": "-XX:+UseSerialGC -XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=240m",
    "spark.sql.shuffle.partitions": "2",
    "spark.ui.showConsoleProgress": "false",
    "spark.log.level": "ERROR",
    # A store that refuses is asked once: what is tested is what the user is told.
    "spark.hadoop.ipc.client.connect.max.retries": "0",
    "spark.hadoop.ipc.client.connect.retry.interval": "10",
}


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    """A session with the connector to Kafka; small, and with few tasks a stage."""
    made = session({**TINY, "spark.jars": ",".join(map(str, spark_kafka_jars()))})
    yield made
    made.stop()
    # Its connections are closed when Python ends, and it would say so where pytest has closed what it wrote to.
    logging.getLogger("py4j").setLevel(logging.WARNING)

"""One Spark session for the run, in this process; tests that use it are marked `java`. A folder of samples of one day."""

from __future__ import annotations

import logging
from collections.abc import Generator, Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from lab.peers.spark import INTERPRETED, spark_kafka_jars
from tests.balance_analytics.sampling.stored_days import ROUNDS, store
from tests.balance_analytics.shared_spark import SharedSpark

TINY = {
    # One task at a time: a second thread takes more processor time than it saves, where a task has a few rows.
    "spark.master": "local[1]",
    "spark.driver.memory": "768m",
    # Only the first compiler tier, as in every JVM of the lab: nothing here runs long enough for the second.
    # With only the first tier, the default code cache is so small that Java discards compiled code and compiles it again.
    "spark.driver.extraJavaOptions": "-XX:+UseSerialGC -XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=240m",
    "spark.sql.shuffle.partitions": "2",
    **INTERPRETED,
    "spark.ui.showConsoleProgress": "false",
    "spark.log.level": "ERROR",
    # No retries: tests with an unreachable store check the error message.
    "spark.hadoop.ipc.client.connect.max.retries": "0",
    "spark.hadoop.ipc.client.connect.retry.interval": "10",
}


SHARED = pytest.StashKey[SharedSpark]()


@pytest.fixture(scope="session")
def shared_spark(pytestconfig: pytest.Config) -> Iterator[SharedSpark]:
    """The session of all tests; a fixture of a module asks it, since the session of one test may have been discarded."""
    shared = SharedSpark({**TINY, "spark.jars": ",".join(map(str, spark_kafka_jars()))})
    pytestconfig.stash[SHARED] = shared
    yield shared
    shared.stop()
    # py4j logs the end of its connections when Python exits, after pytest has closed the log's output.
    logging.getLogger("py4j").setLevel(logging.WARNING)


@pytest.fixture
def spark(shared_spark: SharedSpark) -> SparkSession:
    """A small session with the connector to Kafka, and few tasks per stage."""
    return shared_spark.get()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Replace a session whose test was ended by its timeout; the report shows what the JVM was doing."""
    report = yield
    shared = item.config.stash.get(SHARED, None)
    if shared is not None and shared.is_started and _timed_out(call):
        report.sections.append(("threads of Spark's JVM", shared.discard()))
    return report


def _timed_out(call: pytest.CallInfo[None]) -> bool:
    """Return whether pytest-timeout has ended the test."""
    return (
        call.excinfo is not None
        and call.excinfo.errisinstance(pytest.fail.Exception)
        and (str(call.excinfo.value).startswith("Timeout"))
    )


@pytest.fixture
def day(tmp_path: Path) -> Path:
    """The folder of a day with some samples."""
    store(tmp_path, *ROUNDS)
    return tmp_path / "date=2026-02-01"

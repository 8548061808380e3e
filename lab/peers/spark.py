"""Spark for tests: its connector to Kafka, and settings for queries over a few rows.

The connector is downloaded once by Maven into the user's cache: the Python package of Spark does not contain it. Connectors to object
stores belong into an image.
"""

from __future__ import annotations

from pathlib import Path

from lab.downloads.cache import cached
from lab.downloads.jars import JAVA_FOLDER
from lab.downloads.maven import fetch_jars

LAYOUT = 1
"""Incremented when lab/java/spark-pom.xml, which names the versions, changes the jars."""

INTERPRETED = {"spark.sql.codegen.wholeStage": "false", "spark.sql.codegen.factoryMode": "NO_CODEGEN"}
"""Spark interprets expressions: generating and compiling Java for each query takes longer than a few rows."""


def spark_kafka_jars() -> list[Path]:
    """Return the jars, to be named in `spark.jars`; the first call downloads them.

    Raises `Missing` without Maven, `LabError` when Maven fails.
    """
    return sorted(cached(f"spark-kafka-{LAYOUT}", _fetch).glob("*.jar"))


def _fetch(folder: Path) -> None:
    fetch_jars(JAVA_FOLDER / "spark-pom.xml", folder, what="Spark's connector to Kafka", among="spark-sql-kafka-*.jar")

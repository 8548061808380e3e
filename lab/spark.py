"""Spark's connector to Kafka, fetched once by Maven into the user's cache: the Python package of Spark comes without it.

Leaves out Spark itself, which is a dependency of the project, and the connectors to object stores, which belong into an image.
"""

from __future__ import annotations

from pathlib import Path

from lab.cache import cached
from lab.jars import JAVA_FOLDER
from lab.maven import fetch_jars

LAYOUT = 1
"""Raised when lab/java/spark-pom.xml, which names the versions, changes what is fetched."""


def spark_kafka_jars() -> list[Path]:
    """Return the jars, to be named in `spark.jars`; the first call fetches them.

    Raises `Missing` without Maven, `LabError` when Maven fails.
    """
    return sorted(cached(f"spark-kafka-{LAYOUT}", _fetch).glob("*.jar"))


def _fetch(folder: Path) -> None:
    fetch_jars(JAVA_FOLDER / "spark-pom.xml", folder, what="Spark's connector to Kafka", among="spark-sql-kafka-*.jar")

"""Spark's connector to Kafka, fetched once by Maven into the user's cache: the Python package of Spark comes without it.

Leaves out Spark itself, which is a dependency of the project, and the connectors to object stores, which belong into an image.
"""

from __future__ import annotations

import subprocess
from pathlib import Path

from lab.cache import cached
from lab.jars import FETCH_TIMEOUT_S, JAVA_FOLDER
from lab.missing import LabError, find_tool

LAYOUT = 1
"""Raised when lab/java/spark-pom.xml, which names the versions, changes what is fetched."""


def spark_kafka_jars() -> list[Path]:
    """Return the jars, to be named in `spark.jars`; the first call fetches them.

    Raises `Missing` without Maven, `LabError` when Maven fails.
    """
    return sorted(cached(f"spark-kafka-{LAYOUT}", _fetch).glob("*.jar"))


def _fetch(folder: Path) -> None:
    maven = find_tool("mvn", purpose="fetches Spark's connector to Kafka", install="apt-get install --yes maven")
    command = [
        maven, "--batch-mode", "--quiet", "--file", str(JAVA_FOLDER / "spark-pom.xml"),
        "dependency:copy-dependencies", "-DincludeScope=runtime", f"-DoutputDirectory={folder}",
    ]  # fmt: skip
    done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=FETCH_TIMEOUT_S)
    if done.returncode:
        told = (done.stdout + done.stderr)[-4000:]
        raise LabError(f"Maven could not fetch Spark's connector to Kafka:\n{told}")
    if not any(folder.glob("spark-sql-kafka-*.jar")):
        raise LabError(f"Maven fetched no connector to Kafka into {folder}")

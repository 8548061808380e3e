"""Kafka's jars, fetched once by Maven into the user's cache.

The project's own list of them is `lab/java/pom.xml`: the broker, ZooKeeper, which comes with it up to Kafka 3.9, and Kafka's
command line tools.
"""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from lab.cache import cached
from lab.missing import LabError, find_tool

KAFKA_VERSION = "3.9.2"
"""The last line of Kafka with ZooKeeper mode."""

JAVA_FOLDER = Path(__file__).parent / "java"

FETCH_TIMEOUT_S = 600
"""50 MB in 10 s on a usual line; a very slow line still gets there."""

LAYOUT = 1
"""Raised when lab/java/pom.xml changes what is fetched for one version of Kafka."""


def java() -> str:
    """Return the path of the `java` command (`JAVA_HOME`, then PATH), or raise `Missing`."""
    home = os.environ.get("JAVA_HOME")
    if home and (Path(home) / "bin" / "java").is_file():
        return str(Path(home) / "bin" / "java")
    return find_tool("java", purpose="runs ZooKeeper and Kafka", install="apt-get install --yes default-jre-headless")


def kafka_jars(version: str = KAFKA_VERSION) -> Path:
    """Return the folder with the jars of Kafka `version`; the first call fetches them.

    Raises `Missing` without Maven, `LabError` when Maven fails.
    """
    return cached(f"kafka-{version}-{LAYOUT}", lambda folder: _fetch(version, folder))


def _fetch(version: str, folder: Path) -> None:
    maven = find_tool("mvn", purpose="fetches Kafka's jars", install="apt-get install --yes maven")
    command = [
        maven, "--batch-mode", "--quiet", "--file", str(JAVA_FOLDER / "pom.xml"), f"-Dkafka.version={version}",
        "dependency:copy-dependencies", "-DincludeScope=runtime", f"-DoutputDirectory={folder}",
    ]  # fmt: skip
    done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=FETCH_TIMEOUT_S)
    if done.returncode:
        raise LabError(f"Maven could not fetch the jars of Kafka {version}:\n{(done.stdout + done.stderr)[-4000:]}")
    if not any(folder.glob("kafka-clients-*.jar")):
        raise LabError(f"Maven fetched no jar of Kafka {version} into {folder}")

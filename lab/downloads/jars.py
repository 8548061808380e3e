"""Kafka's jars, downloaded once by Maven into the user's cache.

`lab/java/pom.xml` lists them: the broker, ZooKeeper, which comes with it up to Kafka 3.9, and Kafka's command line tools.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

from lab.downloads.cache import cached
from lab.downloads.maven import fetch_jars
from lab.errors import Missing, find_tool

KAFKA_VERSION = "3.9.2"
"""The last Kafka release line with ZooKeeper mode."""

JAVA_FOLDER = Path(__file__).parents[1] / "java"

NEWEST_KAFKA_VERSION = "4.3.1"
"""Newest supported version of messages and error codes; KRaft clusters run it (`lab/peers/kraft.py`)."""

OLDEST_KRAFT_VERSION = "4.0.1"
"""The first release line without ZooKeeper mode: its brokers run under Steward's controllers too."""

INSTALL_JAVA = "apt-get install --yes default-jdk-headless"

OLDEST_JAVA = 17
"""Java version that Kafka's newest jars are compiled for."""

VERSION_TIMEOUT_S = 60
"""A tenth of a second on an idle machine."""

LAYOUT = 1
"""Incremented when lab/java/pom.xml changes the jars of one version of Kafka."""


def java() -> str:
    """Return the path of the `java` command (`JAVA_HOME`, then PATH), or raise `Missing`."""
    home = os.environ.get("JAVA_HOME")
    if home and (Path(home) / "bin" / "java").is_file():
        return str(Path(home) / "bin" / "java")
    return find_tool("java", purpose="runs ZooKeeper and Kafka", install=INSTALL_JAVA)


def java_with_compiler() -> str:
    """Return the path of `java`, checked: it is recent enough and has a compiler.

    Raises `Missing` otherwise.
    """
    command = java()
    listed = subprocess.run(
        [command, "--list-modules"], check=False, capture_output=True, text=True, timeout=VERSION_TIMEOUT_S
    )
    compiler = re.search(r"^jdk\.compiler@(\d+)", listed.stdout, re.MULTILINE)
    if compiler is None:
        raise Missing(f"a Java compiler ({command} has none)", INSTALL_JAVA)
    if int(compiler[1]) < OLDEST_JAVA:
        raise Missing(f"Java {OLDEST_JAVA} or later ({command} is Java {compiler[1]})", INSTALL_JAVA)
    return command


def kafka_jars(version: str = KAFKA_VERSION) -> Path:
    """Return the folder with the jars of Kafka `version`; the first call downloads them.

    Raises `Missing` without Maven, `LabError` when Maven fails.
    """
    return cached(f"kafka-{version}-{LAYOUT}", lambda folder: _fetch(version, folder))


def _fetch(version: str, folder: Path) -> None:
    fetch_jars(
        JAVA_FOLDER / "pom.xml",
        folder,
        what=f"the jars of Kafka {version}",
        among="kafka-clients-*.jar",
        **{"kafka.version": version},
    )


if __name__ == "__main__":  # python -m lab.downloads.jars VERSION...: print the folders, for `make schemas`
    for wanted in sys.argv[1:]:
        sys.stdout.write(f"{kafka_jars(wanted)}\n")

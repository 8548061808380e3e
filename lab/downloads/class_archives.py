"""Class archives (JEP 350): Kafka's classes as Java has them in memory, so that a broker starts with a third less work.

`lab/setup/archiving.py` creates them. Without an archive, or with one that does not fit this Java, everything runs as well.
"""

from __future__ import annotations

import functools
import hashlib
from pathlib import Path

from lab.downloads.cache import cache_folder
from lab.downloads.jars import LAYOUT, java

ARCHIVE = "kafka.jsa"

TRAINING = 2
"""Incremented when the broker that writes an archive does something else."""


@functools.cache
def archive_name(version: str) -> str:
    """Return the name of the archive's folder in the cache: an archive fits the jars of one Kafka version and one build of Java.

    Raises `Missing` without Java.
    """
    home = Path(java()).resolve().parents[1]
    release = home / "release"
    description = release.read_text(encoding="utf-8") if release.is_file() else ""
    build = hashlib.sha256(f"{home}\n{description}".encode()).hexdigest()[:12]
    return f"classes-{version}-{LAYOUT}.{TRAINING}-{build}"


def archive_options(version: str) -> list[str]:
    """Return the Java options that use the archive of Kafka `version`; none without an archive."""
    found = cache_folder() / archive_name(version) / ARCHIVE
    # Java ignores an archive that does not fit, without a message: tests compare the output of a program.
    return [f"-XX:SharedArchiveFile={found}", "-Xlog:cds=off", "-Xlog:cds+dynamic=off"] if found.is_file() else []

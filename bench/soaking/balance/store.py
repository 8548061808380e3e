"""A local folder as a disk or an object store with a fault at the n-th operation: `java/FaultyStore.java` in Spark's JVM.

Operations of Spark and of the analytics are numbered together, also those that Python does itself (small files on a local disk).
"""

from __future__ import annotations

import os
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyspark
from pyspark.sql import SparkSession

from bench.jvm import class_path_of, compile_java
from lab.peers.spark import INTERPRETED, spark_kafka_jars

SOURCE = Path(__file__).parent / "java" / "FaultyStore.java"

DISK, OBJECTS = "file", "s3a"
"""Schemes of the two kinds of storage."""

ROOTS = {DISK: "", OBJECTS: "s3a://lab"}
"""Prefix of a path of the local disk in the address of a folder."""

KILL, HALT, UNAVAILABLE, TIMEOUT, NONE = "kill", "halt", "503", "timeout", ""
"""Faults; `HALT` refuses an operation and all later ones, so that nothing changes any more, as after a kill."""

SMALL = {
    "spark.master": "local[2]",
    "spark.driver.memory": "512m",
    # The first compiler tier only: no driver here runs long enough for the second.
    "spark.driver.extraJavaOptions": "-XX:+UseSerialGC -XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=240m",
    "spark.sql.shuffle.partitions": "1",
    "spark.ui.showConsoleProgress": "false",
    "spark.log.level": "OFF",
    **INTERPRETED,
}


def compiled(folder: Path) -> Path:
    """Compile the file systems and return a jar with them, in `folder`. Raises `LabError`."""
    classes = folder / "classes"
    classes.mkdir()
    compile_java([SOURCE], classes, class_path_of(Path(pyspark.__path__[0]) / "jars"))
    jar = folder / "faulty-store.jar"
    with zipfile.ZipFile(jar, "w") as archive:
        for path in sorted(classes.glob("*.class")):
            archive.write(path, path.name)
    return jar


def settings(jar: Path, **more: str) -> dict[str, str]:
    """Return the settings of a session that uses the file systems; `more` replace some, with `_` for `.` in names."""
    return {
        **SMALL,
        "spark.driver.extraClassPath": str(jar),
        "spark.jars": ",".join(map(str, spark_kafka_jars())),
        "spark.hadoop.fs.file.impl": "FaultyStore$Disk",
        "spark.hadoop.fs.s3a.impl": "FaultyStore$ObjectStore",
        **{name.replace("_", "."): value for name, value in more.items()},
    }


Settings = Mapping[str, str]


@dataclass(frozen=True)
class FaultyStore:
    """The faults of the JVM of a session."""

    spark: SparkSession

    @property
    def _java(self) -> Any:
        jvm = self.spark._jvm  # noqa: SLF001 - Python has no other way to a class of Java
        assert jvm is not None
        return jvm.FaultyStore

    def arm(self, root: Path, fault: str = NONE, at: int = 0, *, reads: bool = False, log: Path | None = None) -> None:
        """Count operations below `root` from 1 on, with reads or without, and do `fault` at one of them."""
        self._java.arm(str(root), fault, at, reads, "" if log is None else str(log))

    def disarm(self) -> None:
        """Count nothing."""
        self._java.arm("", NONE, 0, False, "")

    def list_late(self, milliseconds: int) -> None:
        """List new files so much later; 0: at once."""
        self._java.listLate(milliseconds)

    @property
    def count(self) -> int:
        """Operations so far."""
        return int(self._java.count())

    @property
    def last(self) -> str:
        """The operation at which the fault was; empty if there was none."""
        return str(self._java.last())

    def count_python(self) -> None:
        """Count the operations of Python from now on: a file is written to the disk, and renamed."""
        fsync, replace = os.fsync, Path.replace

        def counted_fsync(descriptor: int) -> None:
            self._java.step("fsync", str(Path(f"/proc/self/fd/{descriptor}").readlink()))
            fsync(descriptor)

        def counted_replace(path: Path, target: Any) -> Path:
            self._java.step("rename", str(target))
            return replace(path, target)

        os.fsync = counted_fsync  # type: ignore[assignment]
        Path.replace = counted_replace  # type: ignore[method-assign,assignment]


def address(scheme: str, folder: Path) -> str:
    """Return how Spark calls a folder of the local disk in a kind of storage."""
    return f"{ROOTS[scheme]}{folder}"

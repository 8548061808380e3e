"""Kafka's own log as the judge of folders: one JVM for all, controlled over its standard input (LogJudge.java)."""

from __future__ import annotations

import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from lab.jars import JAVA_FOLDER, NEWEST_KAFKA_VERSION
from lab.java_process import java_command

HEAP = "128m"
"""An open segment of Kafka has two indexes of 10 MiB each, which are mapped and not on the heap."""


@dataclass(frozen=True)
class Opened:
    """What Kafka reports of a log that it opened and closed."""

    start_offset: int
    end_offset: int
    last_epoch: int
    earliest_snapshot: str
    latest_snapshot: str


class JavaError(Exception):
    """Kafka did not open the log; the text is its exception."""


class LogJudge:
    """A running LogJudge.java."""

    def __init__(self) -> None:
        quiet = {"log4j2.configurationFile": (JAVA_FOLDER / "log4j2.properties").resolve().as_uri()}
        command = java_command(
            str(Path(__file__).with_name("LogJudge.java")),
            heap=HEAP,
            version=NEWEST_KAFKA_VERSION,
            log4j="log4j-tools.properties",
            properties=quiet,
        )
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.communicate()  # the program ends with its input

    def open(self, folder: Path, segment_bytes: int) -> Opened:
        """Open and close a log of the quorum."""
        return self._log("open", folder, segment_bytes)

    def write(self, folder: Path, segment_bytes: int, batches: Path) -> Opened:
        """Append the batches in a file to a log."""
        return self._log("write", folder, segment_bytes, batches)

    def truncate(self, folder: Path, segment_bytes: int, offset: int) -> Opened:
        """Truncate a log."""
        return self._log("truncate", folder, segment_bytes, offset)

    def dump(self, *arguments: object) -> list[str]:
        """Return the lines that kafka-dump-log prints."""
        return self._ask("dump", *arguments).split("\\n")

    def _log(self, *words: object) -> Opened:
        start, end, epoch, earliest, latest = self._ask(*words).split(" ")
        return Opened(int(start), int(end), int(epoch), earliest, latest)

    def _ask(self, *words: object) -> str:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(" ".join(map(str, words)) + "\n")
        self._process.stdin.flush()
        answer = self._process.stdout.readline().rstrip("\n")
        if not answer or answer.startswith("error "):
            raise JavaError(answer or "the program has ended")
        return answer

"""Kafka's own logs as the judges of folders: programs that are controlled over their standard input.

LogJudge.java runs logs of the quorum, PartitionJudge.java those of brokers.
"""

from __future__ import annotations

import base64
import json
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from lab.downloads.jars import JAVA_FOLDER, NEWEST_KAFKA_VERSION
from lab.peers.java_process import java_command

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


class JavaProgram:
    """A running Java program, given by its source, that answers each line with a line."""

    def __init__(self, source: Path) -> None:
        quiet = {"log4j2.configurationFile": (JAVA_FOLDER / "log4j2.properties").resolve().as_uri()}
        command = java_command(
            str(source),
            heap=HEAP,
            version=NEWEST_KAFKA_VERSION,
            log4j="log4j-tools.properties",
            properties=quiet,
        )
        # Answers have the errors; Kafka's log of thousands of damaged files would hide the failure of a test.
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.communicate()  # the program ends with its input

    def exchange(self, question: str) -> str:
        """Send a line and return the answer. Raises JavaError if the program has ended."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(question + "\n")
        self._process.stdin.flush()
        answer = self._process.stdout.readline().rstrip("\n")
        if not answer:
            raise JavaError("the program has ended")
        return answer


class LogJudge(JavaProgram):
    """A running LogJudge.java."""

    def __init__(self) -> None:
        super().__init__(Path(__file__).with_name("LogJudge.java"))

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
        answer = self.exchange(" ".join(map(str, words)))
        if answer.startswith("error "):
            raise JavaError(answer)
        return answer


NOW_MS = 1_700_000_000_000
"""The clock of partitions' logs, in Java and here."""

EXPIRATION_MS = 86_400_000
"""Time after which PartitionJudge.java forgets a producer (producer.id.expiration.ms)."""


class PartitionJudge(JavaProgram):
    """A running PartitionJudge.java."""

    def __init__(self) -> None:
        super().__init__(Path(__file__).with_name("PartitionJudge.java"))

    def run(
        self,
        folder: Path,
        *steps: Sequence[object],
        config: Mapping[str, object] | None = None,
        now_ms: int = NOW_MS,
        recovery_point: int = 0,
        log_start_offset: int = 0,
        clean: bool = False,
    ) -> Any:
        """Open the log in a folder, take steps and close it. Return the results of the steps, and the state before the log is closed.

        A step is a name and arguments; batches are bytes. Raises JavaError when the log cannot be opened.
        """
        question = {
            "folder": str(folder),
            "config": dict(config or {}),
            "now_ms": now_ms,
            "recovery_point": recovery_point,
            "log_start_offset": log_start_offset,
            "clean": clean,
            "steps": [
                [base64.b64encode(part).decode() if isinstance(part, bytes) else part for part in step]
                for step in steps
            ],
        }
        answer = json.loads(self.exchange(json.dumps(question)))
        if "results" not in answer:
            raise JavaError(answer["message"])
        return answer

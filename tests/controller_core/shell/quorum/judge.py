"""Kafka's own KafkaConfig and kafka-storage as references: one JVM for all questions of a module (StorageJudge.java)."""

import json
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple, Self

from lab.peers.kraft import kafka_4_command

SOURCE = Path(__file__).parent / "StorageJudge.java"

HEAP = "96m"
"""The answers are small; the heap is for Kafka's classes."""


class Answer(NamedTuple):
    """What Kafka printed, and the text of its error; None: it was content."""

    error: str | None
    output: str


class StorageJudge:
    """The running program; a context manager that ends it."""

    def __enter__(self) -> Self:
        command = kafka_4_command(str(SOURCE), heap=HEAP, log4j="log4j-tools.properties")
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        return self

    def __exit__(self, *_: object) -> None:
        self._process.communicate()  # the program ends with its input

    def settings(self, values: Mapping[str, str]) -> Answer:
        """Read settings with KafkaConfig; the output has the advertised controller listeners and the metadata directory."""
        return self._ask({"settings": dict(values)})

    def defaults(self) -> list[str]:
        """Return each setting of Kafka, whether it has a default, and the default."""
        return self._ask({"defaults": True}).output.splitlines()

    def storage_tool(self, arguments: Sequence[str]) -> Answer:
        """Run kafka-storage."""
        return self._ask({"arguments": list(arguments)})

    def _ask(self, question: object) -> Answer:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(question) + "\n")
        self._process.stdin.flush()
        answer = json.loads(self._process.stdout.readline())
        return Answer(answer["error"], answer["output"])

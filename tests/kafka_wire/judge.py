"""Kafka's Java code as the reference for encoded bytes: one JVM for all messages, controlled over its standard input.

Judge.java reads messages, RecordJudge.java record batches.
"""

import json
import struct
import subprocess
from pathlib import Path
from typing import Any, NamedTuple, Self

from kafka_wire.schema import release_messages
from lab.downloads.jars import KAFKA_VERSION
from lab.peers.java_process import java_command

PROGRAMS = Path(__file__).parent

# Test messages are small; the heap is for the classes.
HEAP = "96m"


class Verdict(NamedTuple):
    """Bytes that Java wrote after reading a message, and the fields that it read, by Kafka's names."""

    written: bytes
    seen: Any


class JavaError(Exception):
    """Java could not read the bytes, or not write the message again; the text is its exception."""


class _Program:
    """A running single-file Java program that processes one message at a time."""

    def __init__(self, source: str, kafka: str) -> None:
        command = java_command(str(PROGRAMS / source), heap=HEAP, version=kafka)
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.communicate()  # the program ends with its input

    def _judged(self, question: bytes) -> Verdict:
        reply = self._exchange(struct.pack(">i", len(question)) + question)
        if reply[0] == 0:
            raise JavaError(reply[1:].decode())
        (length,) = struct.unpack_from(">i", reply, 1)
        return Verdict(reply[5 : 5 + length], json.loads(reply[5 + length :]))

    def _exchange(self, question: bytes) -> bytes:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(question)
        self._process.stdin.flush()
        (length,) = struct.unpack(">i", self._process.stdout.read(4))
        return self._process.stdout.read(length)


class Judge(_Program):
    """Reads any message with the jars of one Kafka version."""

    def __init__(self, kafka: str) -> None:
        super().__init__("Judge.java", kafka)
        self.kafka = kafka

    def ask(self, name: str, version: int, message: bytes) -> Verdict:
        """Read a message in Java and write it again; raises JavaError."""
        kind = release_messages(self.kafka)[name].kind
        java_class = (name + "Data" if kind in {"request", "response", "header"} else name).encode()
        return self._judged(struct.pack(">H", len(java_class)) + java_class + struct.pack(">h", version) + message)


class RecordJudge(_Program):
    """Reads record batches with Kafka 3.9; Kafka 4 has the same format in other classes."""

    def __init__(self) -> None:
        super().__init__("RecordJudge.java", KAFKA_VERSION)

    def ask(self, batches: bytes) -> Verdict:
        """Check and list record batches in Java, and build them again except control batches; raises JavaError."""
        return self._judged(batches)

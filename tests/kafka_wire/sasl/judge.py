"""Kafka's SASL classes, called over the standard input of one JVM."""

import subprocess
from pathlib import Path
from typing import Self

from lab.peers.java_process import java_command


class JavaRefusedError(Exception):
    """Kafka's class threw an exception, which is the text."""


class SaslJudge:
    """A running SaslJudge.java."""

    def __enter__(self) -> Self:
        command = java_command(str(Path(__file__).with_name("SaslJudge.java")), heap="64m")
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        return self

    def __exit__(self, *_: object) -> None:
        self._process.communicate()

    def ask(self, command: str, *arguments: str | bytes) -> bytes:
        """Send a command, and return its result; raises JavaRefusedError."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        encoded = (argument.encode() if isinstance(argument, str) else argument for argument in arguments)
        self._process.stdin.write(" ".join([command, *("x" + text.hex() for text in encoded)]) + "\n")
        self._process.stdin.flush()
        reply = self._process.stdout.readline().rstrip("\n")
        if not reply.startswith("="):
            raise JavaRefusedError(reply)
        return bytes.fromhex(reply[1:])

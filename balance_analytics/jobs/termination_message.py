"""The termination message of the driver's container: a summary of the run, or its error.

The operator shows a summary in the status of the SparkApplication (docs/spark-applications.md), and an error in its condition Ready.
Outside of a pod there is no such file, and nothing is written.
"""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from pathlib import Path

from spark_operator.resources.summary import MAX_MESSAGE_BYTES, BalanceSummary, message_of

MAX_PATH_BYTES = 1_000
"""Limit of the report's path, with room for the rest of the message; a longer path is only in the log."""


def summary_text(summary: BalanceSummary, report: str) -> str:
    """Return the summary with the path of the report, in the operator's format."""
    return message_of(replace(summary, report=report if len(json.dumps(report)) <= MAX_PATH_BYTES else None))


def write(place: str, text: str) -> None:
    """Write a termination message, cut to the size that Kubernetes keeps. The log has it too, so that a failed write is only logged."""
    path = Path(place)
    if not path.exists():
        return
    try:
        path.write_bytes(text.encode()[:MAX_MESSAGE_BYTES])
    except OSError as error:
        sys.stderr.write(f"balance analytics: {place} cannot be written: {error}\n")

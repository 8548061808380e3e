"""The driver's last words: a summary, or why there is none, in the file that Kubernetes takes a container's termination message of.

The operator shows a summary in the SparkApplication's status (docs/spark-applications.md); why a driver failed, it says in the
Ready condition. Outside of a pod there is no such file, and nothing is written. Leaves out what the summary says (`report.summary`).
"""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from pathlib import Path

from kafka_operator.resources.spark_summary import MAX_MESSAGE_BYTES, BalanceSummary, message_of

MAX_PATH_BYTES = 1_000
"""Of the report's path, with room for the rest of the message; a longer one is in the log alone."""


def summary_text(summary: BalanceSummary, report: str) -> str:
    """Return the summary, and where the report is, as the operator reads them."""
    return message_of(replace(summary, report=report if len(json.dumps(report)) <= MAX_PATH_BYTES else None))


def say(place: str, text: str) -> None:
    """Write a termination message, cut to what is kept of one. A file that cannot be written ends nothing: the log says the same."""
    path = Path(place)
    if not path.exists():
        return
    try:
        path.write_bytes(text.encode()[:MAX_MESSAGE_BYTES])
    except OSError as error:
        sys.stderr.write(f"balance analytics: {place} cannot be written: {error}\n")

"""Logs on stderr: JSON lines for machines, or one line of words for people. Leaves out what is logged."""

import json
import logging
import sys
import time
from enum import StrEnum

_STANDARD = frozenset(logging.makeLogRecord({}).__dict__) | {"message", "asctime", "taskName"}


class LogFormat(StrEnum):
    """How log records are written."""

    JSON = "json"
    TEXT = "text"


def _extras(record: logging.LogRecord) -> dict[str, object]:
    return {key: value for key, value in record.__dict__.items() if key not in _STANDARD and not key.startswith("_")}


def _on_one_line(text: str) -> str:
    r"""Escape line breaks, other control characters, and what turns the direction of writing.

    >>> print(_on_one_line("a\tb\r\nc\x1b[2J\u2028d\u202ee é"))
    a\tb\r\nc\x1b[2J\u2028d\u202ee é
    """
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() else char.encode("unicode_escape").decode("ascii") for char in text)


class JsonFormatter(logging.Formatter):
    """One JSON object a line; whatever was passed as `extra` are fields of their own."""

    def format(self, record: logging.LogRecord) -> str:
        """Write a record."""
        stamp = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created)) + f".{int(record.msecs):03d}Z"
        document: dict[str, object] = {"time": stamp, "level": record.levelname, "logger": record.name}
        document["message"] = record.getMessage()
        document |= {key: value for key, value in _extras(record).items() if key not in document}
        if record.exc_info:
            document["exception"] = self.formatException(record.exc_info)
        try:
            return json.dumps(document, default=str, ensure_ascii=False)
        except (TypeError, ValueError):
            # Keys that JSON does not have, or an object in itself: a line must come of it all the same.
            return json.dumps({key: str(value) for key, value in document.items()}, ensure_ascii=False)


class TextFormatter(logging.Formatter):
    """Time, level, words, and `key=value` for what was passed as `extra`: one line for each record.

    Peers choose names that are logged. Control characters are escaped, so that no name begins a line of its own or steers a
    terminal. A traceback keeps its lines, each behind a bar that no record begins with.
    """

    def format(self, record: logging.LogRecord) -> str:
        """Write a record."""
        stamp = time.strftime("%H:%M:%S", time.localtime(record.created)) + f".{int(record.msecs):03d}"
        fields = "".join(f" {key}={value}" for key, value in _extras(record).items())
        text = _on_one_line(f"{stamp} {record.levelname:7} {record.name}: {record.getMessage()}{fields}")
        if not record.exc_info:
            return text
        # The newlines are a traceback's own or a message's: behind the bar both are seen to belong to this record.
        traceback = self.formatException(record.exc_info).split("\n")
        return "\n".join([text, *(f"  | {_on_one_line(line)}" for line in traceback)])


def set_up_logs(log_format: LogFormat, level: str) -> None:
    """Send all logs to stderr. Raises ValueError for a level that there is not."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonFormatter() if log_format is LogFormat.JSON else TextFormatter())
    logging.basicConfig(level=level.upper(), handlers=[handler], force=True)
    # kazoo writes a line a request and three a reconnect; the session says what matters.
    logging.getLogger("kazoo").setLevel(logging.ERROR)

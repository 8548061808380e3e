"""Log formats on stderr: JSON lines, or plain text."""

import json
import logging
import sys
import time
from enum import StrEnum

_STANDARD = frozenset(logging.makeLogRecord({}).__dict__) | {"message", "asctime", "taskName"}


class LogFormat(StrEnum):
    """Format of log records."""

    JSON = "json"
    TEXT = "text"


def _extras(record: logging.LogRecord) -> dict[str, object]:
    return {key: value for key, value in record.__dict__.items() if key not in _STANDARD and not key.startswith("_")}


def _escape_control_characters(text: str) -> str:
    r"""Escape line breaks, other control characters and changes of the writing direction.

    >>> print(_escape_control_characters("a\tb\r\nc\x1b[2J\u2028d\u202ee é"))
    a\tb\r\nc\x1b[2J\u2028d\u202ee é
    """
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() else char.encode("unicode_escape").decode("ascii") for char in text)


class JsonFormatter(logging.Formatter):
    """One JSON object per line; each key of `extra` is a field."""

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
            # A key that JSON does not allow, or an object that contains itself: the line is written all the same.
            return json.dumps({key: str(value) for key, value in document.items()}, ensure_ascii=False)


class TextFormatter(logging.Formatter):
    """One line per record: time, level, message, and `key=value` for each key of `extra`.

    Peers choose names that are logged. Control characters are escaped, so that no name can start a new line or control a
    terminal. A traceback keeps its lines, each behind a bar; no record starts with a bar.
    """

    def format(self, record: logging.LogRecord) -> str:
        """Write a record."""
        stamp = time.strftime("%H:%M:%S", time.localtime(record.created)) + f".{int(record.msecs):03d}"
        fields = "".join(f" {key}={value}" for key, value in _extras(record).items())
        text = _escape_control_characters(f"{stamp} {record.levelname:7} {record.name}: {record.getMessage()}{fields}")
        if not record.exc_info:
            return text
        # A newline may come from the traceback or from a message; the bar shows that the line belongs to this record.
        traceback = self.formatException(record.exc_info).split("\n")
        return "\n".join([text, *(f"  | {_escape_control_characters(line)}" for line in traceback)])


def set_up_logs(log_format: LogFormat, level: str) -> None:
    """Send all logs to stderr. Raises ValueError for an unknown level."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonFormatter() if log_format is LogFormat.JSON else TextFormatter())
    logging.basicConfig(level=level.upper(), handlers=[handler], force=True)
    # kazoo logs every request and three lines per reconnect; kafka_zookeeper logs what matters.
    logging.getLogger("kazoo").setLevel(logging.ERROR)

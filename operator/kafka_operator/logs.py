"""Logs: a constant message with fields, as JSON lines or for the eye. Fields never hold a secret: specs are not logged."""

from __future__ import annotations

import json
import logging
import sys
from datetime import UTC, datetime
from typing import Any

FIELDS = "steward_fields"
LOUD_LIBRARIES = ("aiohttp", "asyncio", "kopf", "kubernetes")
"""Their routine goes to debug; warnings stay."""


class FieldLogger:
    """A logger whose keyword arguments become fields of the line."""

    def __init__(self, logger: logging.Logger) -> None:
        self._logger = logger

    def debug(self, message: str, **fields: Any) -> None:
        """Log for those who look for a fault."""
        self._logger.debug(message, extra={FIELDS: fields})

    def info(self, message: str, **fields: Any) -> None:
        """Log what happened."""
        self._logger.info(message, extra={FIELDS: fields})

    def warning(self, message: str, **fields: Any) -> None:
        """Log what someone may have to see to."""
        self._logger.warning(message, extra={FIELDS: fields})

    def error(self, message: str, **fields: Any) -> None:
        """Log what ends the process."""
        self._logger.error(message, extra={FIELDS: fields})

    def exception(self, message: str, **fields: Any) -> None:
        """Log an error of ours with its traceback."""
        self._logger.error(message, exc_info=sys.exc_info(), extra={FIELDS: fields})


def get_logger(name: str) -> FieldLogger:
    """Return the logger of a module."""
    return FieldLogger(logging.getLogger(name))


class JsonFormatter(logging.Formatter):
    """One JSON object a line: time, level, logger, message, the fields, and the traceback if there is one."""

    def format(self, record: logging.LogRecord) -> str:
        """Write one line."""
        line: dict[str, Any] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
            **getattr(record, FIELDS, {}),
        }
        if record.exc_info:
            line["exception"] = self.formatException(record.exc_info)
        return json.dumps(line, default=str)


class PlainFormatter(logging.Formatter):
    """The same for the eye."""

    def format(self, record: logging.LogRecord) -> str:
        """Write one line."""
        moment = datetime.fromtimestamp(record.created, UTC).strftime("%H:%M:%S.%f")[:-3]
        fields = "".join(f" {name}={value}" for name, value in getattr(record, FIELDS, {}).items())
        text = f"{moment} {record.levelname.lower():7} {record.getMessage()}{fields}"
        return f"{text}\n{self.formatException(record.exc_info)}" if record.exc_info else text


def set_up_logs(log_format: str, level: str) -> None:
    """Send all logs to standard error in one format; ValueError for a format or level that does not exist."""
    formatters = {"json": JsonFormatter, "plain": PlainFormatter}
    if log_format not in formatters:
        raise ValueError(f"log format {log_format!r} is unknown; choose one of {', '.join(formatters)}")
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(formatters[log_format]())
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(level.upper())
    for name in LOUD_LIBRARIES:
        logging.getLogger(name).setLevel(max(logging.WARNING, root.level))

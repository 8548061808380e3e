"""Log formats on stderr: JSON lines, or plain text."""

import contextlib
import json
import logging
import sys
from typing import Any

import pytest

from steward.logs import JsonFormatter, LogFormat, TextFormatter, set_up_logs

SECONDS = 1_700_000_000.123


def record(message: str, *arguments: object, **extra: object) -> logging.LogRecord:
    """A record with a fixed time."""
    made = logging.getLogger("a.b").makeRecord("a.b", logging.INFO, "file", 1, message, arguments, None, extra=extra)
    made.created, made.msecs = SECONDS, 123.0
    return made


def as_json(made: logging.LogRecord) -> dict[str, Any]:
    """Format a record as JSON and parse it."""
    line = JsonFormatter().format(made)
    assert "\n" not in line
    found: dict[str, Any] = json.loads(line)
    return found


def test_record_is_one_json_object_with_extra_keys_as_fields() -> None:
    """Time in UTC, to the millisecond."""
    expected = {
        "time": "2023-11-14T22:13:20.123Z",
        "level": "INFO",
        "logger": "a.b",
        "message": "took 5 of 7",
        "controller_epoch": 9,
        "brokers": [1, 2],
    }
    assert as_json(record("took %d of %d", 5, 7, controller_epoch=9, brokers=[1, 2])) == expected


def test_json_record_is_one_line_for_any_value() -> None:
    """Bad input never breaks a log: line breaks, quotes, letters of any script, bytes, objects."""
    found = as_json(record('a "b"\nc', name_of="Größe\u2028", raw=b"\x00", what={1}, none=None))

    assert found["message"] == 'a "b"\nc'
    assert (found["name_of"], found["raw"], found["what"], found["none"]) == ("Größe\u2028", "b'\\x00'", "{1}", None)


def test_values_that_json_lacks_are_written_as_text() -> None:
    """A mapping with tuples as keys, and a list that contains itself."""
    endless: list[object] = []
    endless.append(endless)

    assert as_json(record("words", by={("orders", 0): 1}))["by"] == "{('orders', 0): 1}"
    assert as_json(record("words", endless=endless))["endless"] == "[[...]]"


def test_extra_keys_cannot_replace_standard_fields() -> None:
    """Time and level cannot be forged."""
    found = as_json(record("words", level="DEBUG", time="never"))

    assert (found["level"], found["time"]) == ("INFO", "2023-11-14T22:13:20.123Z")


def failed() -> logging.LogRecord:
    """A record with a traceback."""
    made = record("unexpected failure", event="RepairPartitions")
    with contextlib.suppress(ZeroDivisionError):
        try:
            _ = 1 / 0
        finally:
            made.exc_info = sys.exc_info()
    return made


def test_traceback_is_a_field_of_the_json_record() -> None:
    """Record and traceback stay together."""
    found = as_json(failed())

    assert found["exception"].startswith("Traceback (most recent call last)")
    assert "ZeroDivisionError" in found["exception"]


def test_text_record_has_time_level_message_and_fields() -> None:
    """The traceback follows on lines that start with a bar."""
    line, *below = TextFormatter().format(failed()).splitlines()

    assert line.endswith(".123 INFO    a.b: unexpected failure event=RepairPartitions")
    assert below[0] == "  | Traceback (most recent call last):"
    assert all(more.startswith("  | ") for more in below)


FORGED = "12:00:00.000 ERROR   controller: fence lost"
BREAKS = ["\n", "\r", "\r\n", "\v", "\f", "\x1c", "\x1d", "\x1e", "\x85", "\u2028", "\u2029"]


@pytest.mark.parametrize("line_break", BREAKS, ids=ascii)
def test_names_from_peers_cannot_start_a_new_line(line_break: str) -> None:
    """Client ids, principals, topics and error texts of peers are logged: in messages, in fields, and in tracebacks."""
    name = f"client{line_break}{FORGED}"
    made = record("%s failed", name, client_id=name, names=[name], **{f"key{line_break}": 1})
    assert len(TextFormatter().format(made).splitlines()) == 1

    made.exc_info = (ValueError, ValueError(name), None)
    first, *below = TextFormatter().format(made).splitlines()
    assert FORGED in first
    assert all(line.startswith("  | ") for line in below)


def test_names_from_peers_cannot_control_a_terminal() -> None:
    """Escape sequences and changes of the writing direction are escaped; letters of any script stay."""
    line = TextFormatter().format(record("Größe 中 %s", "\x1b[2J\x9b1A\x07\b\x00\u202e\ud800"))
    assert line.endswith(r"Größe 中 \x1b[2J\x9b1A\x07\x08\x00\u202e\ud800")
    assert line.isprintable()


@pytest.mark.parametrize("log_format", LogFormat)
def test_all_logs_go_to_stderr(capsys: pytest.CaptureFixture[str], log_format: LogFormat) -> None:
    """Of every logger, from the given level; those of kazoo only from ERROR."""
    set_up_logs(log_format, "info")
    logging.getLogger("any.where").info("shown")
    logging.getLogger("any.where").debug("hidden")
    logging.getLogger("kazoo.client").warning("hidden")
    out, err = capsys.readouterr()

    assert out == ""
    assert len(err.splitlines()) == 1
    assert "shown" in err


def test_unknown_level_is_rejected() -> None:
    """The error names it."""
    with pytest.raises(ValueError, match="Unknown level: 'LOUD'"):
        set_up_logs(LogFormat.JSON, "loud")

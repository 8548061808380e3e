"""Logs on stderr: JSON lines for machines, or one line of words for people."""

import contextlib
import json
import logging
import sys
from collections.abc import Iterator
from typing import Any

import pytest

from steward.logs import JsonFormatter, LogFormat, TextFormatter, set_up_logs

SECONDS = 1_700_000_000.123


@pytest.fixture(autouse=True)
def logs_as_before() -> Iterator[None]:
    """These are the logs of the whole process."""
    root, kazoo = logging.getLogger(), logging.getLogger("kazoo")
    before = root.handlers[:], root.level, kazoo.level
    yield
    root.handlers[:] = before[0]
    root.setLevel(before[1])
    kazoo.setLevel(before[2])


def record(message: str, *arguments: object, **extra: object) -> logging.LogRecord:
    """A record of a certain moment."""
    made = logging.getLogger("a.b").makeRecord("a.b", logging.INFO, "file", 1, message, arguments, None, extra=extra)
    made.created, made.msecs = SECONDS, 123.0
    return made


def as_json(made: logging.LogRecord) -> dict[str, Any]:
    """Write and read a record."""
    line = JsonFormatter().format(made)
    assert "\n" not in line
    found: dict[str, Any] = json.loads(line)
    return found


def test_a_record_is_one_json_object_with_its_extras_as_fields() -> None:
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


def test_whatever_is_in_a_record_it_is_one_line() -> None:
    """Bad input never breaks a log: line breaks, quotes, letters of any script, bytes, objects."""
    found = as_json(record('a "b"\nc', name_of="Größe\u2028", raw=b"\x00", what={1}, none=None))

    assert found["message"] == 'a "b"\nc'
    assert (found["name_of"], found["raw"], found["what"], found["none"]) == ("Größe\u2028", "b'\\x00'", "{1}", None)


def test_what_json_does_not_have_does_not_break_a_line() -> None:
    """A mapping by partition, or a list in itself: the line says what it can."""
    endless: list[object] = []
    endless.append(endless)

    assert as_json(record("words", by={("orders", 0): 1}))["by"] == "{('orders', 0): 1}"
    assert as_json(record("words", endless=endless))["endless"] == "[[...]]"


def test_an_extra_cannot_stand_in_for_what_every_line_has() -> None:
    """Nobody forges a time or a level."""
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


def test_a_traceback_is_a_field_of_its_line() -> None:
    """A machine keeps line and traceback together."""
    found = as_json(failed())

    assert found["exception"].startswith("Traceback (most recent call last)")
    assert "ZeroDivisionError" in found["exception"]


def test_text_is_for_people() -> None:
    """Time, level, words, and `key=value`; a traceback below, behind a bar."""
    line, *below = TextFormatter().format(failed()).splitlines()

    assert line.endswith(".123 INFO    a.b: unexpected failure event=RepairPartitions")
    assert below[0] == "  | Traceback (most recent call last):"
    assert all(more.startswith("  | ") for more in below)


FORGED = "12:00:00.000 ERROR   controller: fence lost"
BREAKS = ["\n", "\r", "\r\n", "\v", "\f", "\x1c", "\x1d", "\x1e", "\x85", "\u2028", "\u2029"]


@pytest.mark.parametrize("line_break", BREAKS, ids=ascii)
def test_no_name_that_a_peer_chooses_begins_a_line_of_its_own(line_break: str) -> None:
    """Client ids, principals, topics and error texts of peers are logged: in messages, in fields, and in tracebacks."""
    name = f"client{line_break}{FORGED}"
    made = record("%s failed", name, client_id=name, names=[name], **{f"key{line_break}": 1})
    assert len(TextFormatter().format(made).splitlines()) == 1

    made.exc_info = (ValueError, ValueError(name), None)
    first, *below = TextFormatter().format(made).splitlines()
    assert FORGED in first
    assert all(line.startswith("  | ") for line in below)


def test_no_name_that_a_peer_chooses_steers_a_terminal() -> None:
    """Escape sequences and turned writing are shown, not obeyed; letters of any script stay."""
    line = TextFormatter().format(record("Größe 中 %s", "\x1b[2J\x9b1A\x07\b\x00\u202e\ud800"))
    assert line.endswith(r"Größe 中 \x1b[2J\x9b1A\x07\x08\x00\u202e\ud800")
    assert line.isprintable()


@pytest.mark.parametrize("log_format", LogFormat)
def test_all_logs_go_to_stderr(capsys: pytest.CaptureFixture[str], log_format: LogFormat) -> None:
    """Of every logger, from the level on; kazoo's only when something is wrong."""
    set_up_logs(log_format, "info")
    logging.getLogger("any.where").info("told")
    logging.getLogger("any.where").debug("not told")
    logging.getLogger("kazoo.client").warning("not told")
    out, err = capsys.readouterr()

    assert out == ""
    assert len(err.splitlines()) == 1
    assert "told" in err


def test_a_level_that_there_is_not_is_refused() -> None:
    """In words that name it."""
    with pytest.raises(ValueError, match="Unknown level: 'LOUD'"):
        set_up_logs(LogFormat.JSON, "loud")

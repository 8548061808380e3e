"""Common parts of Kafka's JSON znodes: a strict reader, an exact writer of strings, and FormatError.

The reader accepts what the JSON parser of Kafka 3.9 accepts (verified by running it): the first JSON value is read and the bytes
after it are ignored, the last of two equal keys wins, an integer is never `1.0`, `"1"` or `true`, and NaN is not JSON. It raises
FormatError and no other exception, for any bytes.
"""

import json
import re
from typing import Any, NamedTuple, NoReturn

MAX_DOCUMENT_BYTES = 16 * 1024 * 1024
"""ZooKeeper's default limit is 1 MiB; Kafka never writes a document of more than 16 MiB."""

INT32_MIN, INT32_MAX = -(2**31), 2**31 - 1

SHOWN_CHARACTERS = 80
"""Characters of an invalid value in an error: enough to recognise it, too few to flood a log."""

Document = dict[str, Any]


class FormatError(ValueError):
    """The data of a znode does not match Kafka's format for its path.

    `not_json` distinguishes two cases that Kafka handles differently: True if the data is not JSON (Kafka mostly treats the znode as
    empty), False if the JSON has the wrong structure (Kafka fails).
    """

    def __init__(self, path: str, reason: str, *, not_json: bool = False) -> None:
        super().__init__(f"znode {path}: {reason}")
        self.path = path
        self.reason = reason
        self.not_json = not_json


class TopicPartition(NamedTuple):
    """One partition of one topic, as in Kafka's notifications."""

    topic: str
    partition: int


def shown(value: object) -> str:
    """Return a short, printable form of a value for errors."""
    text = repr(value)
    return text if len(text) <= SHOWN_CHARACTERS else f"{text[:SHOWN_CHARACTERS]}… ({len(text)} characters)"


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


_DECODER = json.JSONDecoder(parse_constant=_no_constant)
_JSON_SPACE = " \t\r\n"


def read_json(path: str, data: bytes | None) -> Any:
    """Return the first JSON value in a znode's data."""
    if data is None or not data.strip(_JSON_SPACE.encode()):
        raise FormatError(path, "expected a JSON object, found no data")
    if len(data) > MAX_DOCUMENT_BYTES:
        raise FormatError(path, f"{len(data)} bytes are more than the limit of {MAX_DOCUMENT_BYTES}", not_json=True)
    try:
        return _DECODER.raw_decode(data.decode("utf-8").lstrip(_JSON_SPACE))[0]
    except (ValueError, RecursionError) as error:
        raise FormatError(path, f"not JSON ({error}): {shown(data)}", not_json=True) from error


def read_object(path: str, data: bytes | None) -> Document:
    """Return a znode's data as a JSON object."""
    return as_object(path, "the document", read_json(path, data))


def as_object(path: str, name: str, value: object) -> Document:
    """Return a value, which must be a JSON object."""
    if not isinstance(value, dict):
        raise FormatError(path, f"{name} must be a JSON object, found {shown(value)}")
    return value


def as_list(path: str, name: str, value: object) -> list[Any]:
    """Return a value, which must be a JSON array."""
    if not isinstance(value, list):
        raise FormatError(path, f"{name} must be a JSON array, found {shown(value)}")
    return value


def as_int(path: str, name: str, value: object, lowest: int = INT32_MIN, highest: int = INT32_MAX) -> int:
    """Return a value, which must be a JSON integer between two bounds, both included; 32 signed bits by default."""
    if type(value) is not int or not lowest <= value <= highest:  # isinstance would accept bool, Kafka does not
        raise FormatError(path, f"{name} must be an integer from {lowest} to {highest}, found {shown(value)}")
    return value


def as_text(path: str, name: str, value: object) -> str:
    """Return a value, which must be a JSON string that can be encoded."""
    if not isinstance(value, str):
        raise FormatError(path, f"{name} must be a JSON string, found {shown(value)}")
    if not value.isascii() and any("\ud800" <= character <= "\udfff" for character in value):
        raise FormatError(path, f"{name} contains half of a surrogate pair: {shown(value)}")
    return value


def field(path: str, document: Document, key: str) -> Any:
    """Return a required field."""
    if key not in document:
        raise FormatError(path, f"the field {key!r} is missing")
    return document[key]


def int_field(path: str, document: Document, key: str, lowest: int = INT32_MIN, highest: int = INT32_MAX) -> int:
    """Return a required integer field."""
    return as_int(path, repr(key), field(path, document, key), lowest, highest)


def text_field(path: str, document: Document, key: str) -> str:
    """Return a required string field."""
    return as_text(path, repr(key), field(path, document, key))


def read_topic_partitions(path: str, document: Document) -> tuple[TopicPartition, ...]:
    """Return the list `partitions` of a document, whose entries have only topic and partition."""
    found = []
    for entry in as_list(path, "'partitions'", field(path, document, "partitions")):
        place = as_object(path, "an entry of 'partitions'", entry)
        found.append(TopicPartition(text_field(path, place, "topic"), int_field(path, place, "partition", lowest=0)))
    return tuple(found)


_ESCAPED = re.compile('["\\\\\x00-\x1f\U00010000-\U0010ffff]')
_SHORT_ESCAPES = {'"': '\\"', "\\": "\\\\", "\b": "\\b", "\t": "\\t", "\n": "\\n", "\f": "\\f", "\r": "\\r"}


def _escape(match: re.Match[str]) -> str:
    character = match.group()
    if character in _SHORT_ESCAPES:
        return _SHORT_ESCAPES[character]
    units = character.encode("utf-16-be").hex().upper()
    return "".join(f"\\u{units[start : start + 4]}" for start in range(0, len(units), 4))


def quote(text: str) -> str:
    r"""Return a JSON string as Kafka writes it: upper-case hex, pairs of escapes above 16 bits, other characters unescaped.

    >>> print(quote('a"b\x1f'))
    "a\"b\u001F"
    """
    return f'"{_ESCAPED.sub(_escape, text)}"'


def write_topic_partitions(partitions: tuple[TopicPartition, ...]) -> str:
    """Return the JSON array that `read_topic_partitions` reads."""
    return (
        "[" + ",".join(f'{{"topic":{quote(topic)},"partition":{partition}}}' for topic, partition in partitions) + "]"
    )

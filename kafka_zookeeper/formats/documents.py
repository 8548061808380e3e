"""What all of Kafka's JSON znodes share: one strict reader, one exact writer of strings, one error.

The reader judges as the JSON parser inside Kafka 3.9 does (proven by running it): the first JSON value counts and what
follows it is ignored, the last of two equal keys wins, an integer is never `1.0`, `"1"` or `true`, NaN is no JSON. It only
ever raises FormatError, whatever the bytes are. Left out: the meaning of any document.
"""

import json
import re
from typing import Any, NamedTuple, NoReturn

MAX_DOCUMENT_BYTES = 16 * 1024 * 1024
"""ZooKeeper's own limit is 1 MiB unless an operator raises it; past 16 of these it is no document of Kafka's."""

INT32_MIN, INT32_MAX = -(2**31), 2**31 - 1

SHOWN_CHARACTERS = 80
"""How much of what was found an error repeats: enough to recognise it, too little to flood a log."""

Document = dict[str, Any]


class FormatError(ValueError):
    """A znode holds what Kafka's format for its path does not allow.

    `not_json` tells the two cases apart in which Kafka itself acts differently: True where its parser finds no JSON at all
    (Kafka mostly goes on as if the znode held nothing), False where the JSON has the wrong shape (Kafka gives up).
    """

    def __init__(self, path: str, reason: str, *, not_json: bool = False) -> None:
        super().__init__(f"znode {path}: {reason}")
        self.path = path
        self.reason = reason
        self.not_json = not_json


class TopicPartition(NamedTuple):
    """One partition of one topic, as Kafka's notifications name it."""

    topic: str
    partition: int


def shown(value: object) -> str:
    """Return a short, printable form of what was found."""
    text = repr(value)
    return text if len(text) <= SHOWN_CHARACTERS else f"{text[:SHOWN_CHARACTERS]}… ({len(text)} characters)"


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


_DECODER = json.JSONDecoder(parse_constant=_no_constant)
_JSON_SPACE = " \t\r\n"


def read_json(path: str, data: bytes | None) -> Any:
    """Return the first JSON value in a znode's data."""
    if data is None or not data.strip(_JSON_SPACE.encode()):
        raise FormatError(path, "there is no data, a JSON object was expected")
    if len(data) > MAX_DOCUMENT_BYTES:
        raise FormatError(
            path, f"{len(data)} bytes are more than the {MAX_DOCUMENT_BYTES} that are read", not_json=True
        )
    try:
        return _DECODER.raw_decode(data.decode("utf-8").lstrip(_JSON_SPACE))[0]
    except (ValueError, RecursionError) as error:
        raise FormatError(path, f"not JSON ({error}): {shown(data)}", not_json=True) from error


def read_object(path: str, data: bytes | None) -> Document:
    """Return a znode's data as a JSON object."""
    return as_object(path, "the document", read_json(path, data))


def as_object(path: str, name: str, value: object) -> Document:
    """Return a value that must be a JSON object."""
    if not isinstance(value, dict):
        raise FormatError(path, f"{name} must be a JSON object, found {shown(value)}")
    return value


def as_list(path: str, name: str, value: object) -> list[Any]:
    """Return a value that must be a JSON array."""
    if not isinstance(value, list):
        raise FormatError(path, f"{name} must be a JSON array, found {shown(value)}")
    return value


def as_int(path: str, name: str, value: object, lowest: int = INT32_MIN, highest: int = INT32_MAX) -> int:
    """Return a value that must be a JSON integer between two bounds, both allowed; 32 signed bits by default."""
    if type(value) is not int or not lowest <= value <= highest:  # bool is an int to isinstance, and none to Kafka
        raise FormatError(path, f"{name} must be an integer from {lowest} to {highest}, found {shown(value)}")
    return value


def as_text(path: str, name: str, value: object) -> str:
    """Return a value that must be a JSON string, and one that can be written again."""
    if not isinstance(value, str):
        raise FormatError(path, f"{name} must be a JSON string, found {shown(value)}")
    if not value.isascii() and any("\ud800" <= character <= "\udfff" for character in value):
        raise FormatError(path, f"{name} holds half of a surrogate pair: {shown(value)}")
    return value


def field(path: str, document: Document, key: str) -> Any:
    """Return a field that must be there."""
    if key not in document:
        raise FormatError(path, f"the field {key!r} is missing")
    return document[key]


def int_field(path: str, document: Document, key: str, lowest: int = INT32_MIN, highest: int = INT32_MAX) -> int:
    """Return an integer field that must be there."""
    return as_int(path, repr(key), field(path, document, key), lowest, highest)


def text_field(path: str, document: Document, key: str) -> str:
    """Return a string field that must be there."""
    return as_text(path, repr(key), field(path, document, key))


def read_topic_partitions(path: str, document: Document) -> tuple[TopicPartition, ...]:
    """Return the list `partitions` of a document that names partitions and nothing else about them."""
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
    r"""Return a JSON string as Kafka writes it: upper-case hex, pairs of escapes past 16 bits, all else as it is.

    >>> print(quote('a"b\x1f'))
    "a\"b\u001F"
    """
    return f'"{_ESCAPED.sub(_escape, text)}"'


def write_topic_partitions(partitions: tuple[TopicPartition, ...]) -> str:
    """Return the JSON array that `read_topic_partitions` reads."""
    return (
        "[" + ",".join(f'{{"topic":{quote(topic)},"partition":{partition}}}' for topic, partition in partitions) + "]"
    )

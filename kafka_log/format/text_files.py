"""Contents of the small text files next to a log, as Kafka writes them.

leader-epoch-checkpoint: version 0, the number of entries, then an epoch and a start offset on each line
partition.metadata:      version: 0, topic_id: the id in URL-safe Base64
meta.properties:         a Java properties file
"""

import base64
import binascii
import re
import uuid
from collections.abc import Mapping

from kafka_log.errors import UnreadableFileError
from kafka_log.format.epochs import EpochStart, LeaderEpochs

CHECKPOINT_VERSION = 0
PARTITION_METADATA_VERSION = 0

_ESCAPED = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}


def encode_uuid(value: uuid.UUID) -> str:
    """Return an id as Kafka writes it: 22 characters of URL-safe Base64.

    >>> encode_uuid(uuid.UUID(int=1))
    'AAAAAAAAAAAAAAAAAAAAAQ'
    """
    return base64.urlsafe_b64encode(value.bytes).rstrip(b"=").decode()


def decode_uuid(text: str) -> uuid.UUID:
    """Return the id in a text of Kafka's; raises ValueError for any other text."""
    try:
        return uuid.UUID(bytes=base64.b64decode(text.encode("ascii") + b"==", altchars=b"-_", validate=True))
    except (UnicodeEncodeError, binascii.Error, ValueError):
        raise ValueError(f"{text!r} is not an id of 22 characters in URL-safe Base64") from None


def encode_leader_epochs(epochs: LeaderEpochs) -> bytes:
    """Return the content of leader-epoch-checkpoint."""
    lines = [
        CHECKPOINT_VERSION,
        len(epochs.entries),
        *(f"{entry.epoch} {entry.start_offset}" for entry in epochs.entries),
    ]
    return "".join(f"{line}\n" for line in lines).encode()


def decode_leader_epochs(content: bytes) -> LeaderEpochs:
    """Return the epochs in leader-epoch-checkpoint; an empty file, which Kafka creates first, has none.

    Raises UnreadableFileError.
    """
    lines = content.decode(errors="replace").splitlines()
    if len(lines) < 2:
        return LeaderEpochs()
    try:
        version, count = int(lines[0]), int(lines[1])
        entries = [EpochStart(*map(int, line.split())) for line in lines[2:]]
    except (ValueError, TypeError):
        raise UnreadableFileError("a line is malformed") from None
    if version != CHECKPOINT_VERSION:
        raise UnreadableFileError(f"version {version} is not supported, only {CHECKPOINT_VERSION}")
    if count != len(entries):
        raise UnreadableFileError(f"it announces {count} entries and has {len(entries)}")
    epochs = LeaderEpochs()
    for entry in entries:
        epochs = epochs.assign(*entry)
    return epochs


def encode_partition_metadata(topic_id: uuid.UUID) -> bytes:
    """Return the content of partition.metadata."""
    return f"version: {PARTITION_METADATA_VERSION}\ntopic_id: {encode_uuid(topic_id)}".encode()


def decode_partition_metadata(content: bytes) -> uuid.UUID:
    """Return the topic's id in partition.metadata; raises UnreadableFileError."""
    found = re.match(r"version:\s+(\d+)\s*\ntopic_id:\s+(\S+)", content.decode(errors="replace"))
    if found is None:
        raise UnreadableFileError("a line is malformed")
    try:
        topic_id = decode_uuid(found[2])
    except ValueError as error:
        raise UnreadableFileError(str(error)) from None
    if topic_id.int == 0:
        raise UnreadableFileError("the topic id is zero")
    return topic_id


def encode_properties(values: Mapping[str, str]) -> bytes:
    """Return a Java properties file, one value a line in the given order."""
    return "".join(f"{_escape(name, ' :=#!')}={_escape(value, '#!=:')}\n" for name, value in values.items()).encode()


def decode_properties(content: bytes) -> dict[str, str]:
    """Return the values of a Java properties file: comments, continued lines and escapes as java.util.Properties reads them."""
    values = {}
    text = re.sub(r"(?<!\\)((?:\\\\)*)\\(?:\r\n|\n|\r)[ \t\f]*", r"\1", content.decode(errors="replace"))
    for raw in re.split(r"\r\n|\n|\r", text):
        line = raw.lstrip(" \t\f")
        if not line or line[0] in "#!":
            continue
        found = re.match(r"((?:\\.|[^\\=: \t\f])*)[ \t\f]*[=:]?[ \t\f]*(.*)", line, re.DOTALL)
        assert found is not None, "every part of the pattern may be empty"
        values[_unescape(found[1])] = _unescape(found[2])
    return values


def _escape(text: str, special: str) -> str:
    escaped = re.sub(rf"([\\{special}])", r"\\\1", text)
    for letter, character in _ESCAPED.items():
        escaped = escaped.replace(character, f"\\{letter}")
    return f"\\{escaped}" if escaped.startswith(" ") else escaped


def _unescape(text: str) -> str:
    def character(found: re.Match[str]) -> str:
        escape = found[1]
        if escape[0] == "u" and len(escape) > 1:
            return chr(int(escape[1:], 16))
        return _ESCAPED.get(escape, escape)

    return re.sub(r"\\(u[0-9a-fA-F]{4}|.)", character, text)

"""Message schemas: the fields of each message with their versions and types.

The tables contain two Kafka releases (tools/extract_schemas.py extracts them): 3.9.2, the last with ZooKeeper mode, and 4.3.1. The
newest release that has a version of a message defines it, so 3.9.2 defines those that 4.x dropped (LeaderAndIsr, AlterPartition 0-1).
"""

import json
import uuid
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache
from importlib import resources
from typing import Any, NamedTuple

from kafka_wire.failures import CodecError
from kafka_wire.names import snake_case

RELEASES = ("4.3.1", "3.9.2")
"""Newest first: the first that has a version defines it."""

LATEST = 0x7FFF
"""Highest version of an open range; versions are int16 on the wire."""


class Versions(NamedTuple):
    """An inclusive range of versions; empty when `lowest > highest`."""

    lowest: int
    highest: int

    def __contains__(self, version: object) -> bool:
        return isinstance(version, int) and self.lowest <= version <= self.highest

    def overlaps(self, other: "Versions") -> bool:
        """Return whether some version is in both ranges."""
        return max(self.lowest, other.lowest) <= min(self.highest, other.highest)

    def all(self) -> range:
        """Return all versions of a closed range."""
        return range(self.lowest, self.highest + 1)

    @classmethod
    def parse(cls, text: str | None) -> "Versions":
        """Parse Kafka's notation: "3", "0-8", "6+", "none" (None means none)."""
        if text is None or text == "none":
            return NO_VERSIONS
        if text.endswith("+"):
            return cls(int(text[:-1]), LATEST)
        lowest, _, highest = text.partition("-")
        return cls(int(lowest), int(highest or lowest))


NO_VERSIONS = Versions(0, -1)


@dataclass(frozen=True, slots=True)
class Field:
    """One field. `key` is its key in a body; `kind` is Kafka's type name ("int32", "string", "struct", ...) of it or its elements."""

    key: str
    kind: str
    is_array: bool
    versions: Versions
    nullable: Versions = NO_VERSIONS
    tag: int | None = None
    ignorable: bool = False
    default: Any = None
    fields: tuple["Field", ...] = ()
    never_flexible: bool = False
    """The field keeps its classic form in flexible versions: only RequestHeader's client id (KIP-482)."""

    def elements(self) -> "Field":
        """Return the field of one element of this array, which is never null and never tagged."""
        return replace(self, is_array=False, nullable=NO_VERSIONS, tag=None)


@dataclass(frozen=True, slots=True)
class Message:
    """Definition of one message in one Kafka release."""

    name: str
    kind: str
    api_key: int | None
    versions: Versions
    flexible: Versions
    latest_unstable: bool
    fields: tuple[Field, ...]


_ZERO_OF_KIND: dict[str, Any] = {
    "bool": False,
    "string": "",
    "bytes": b"",
    "records": None,
    "float64": 0.0,
    "uuid": uuid.UUID(int=0),
}


def _default(kind: str, is_array: bool, facts: dict[str, Any], fields: tuple[Field, ...]) -> Any:
    """Return a field's default: that of the table if it has one, else the zero of its type (an empty tuple for arrays)."""
    if "default" in facts:
        return facts["default"]
    if is_array:
        return ()
    if kind == "struct":
        return {field.key: field.default for field in fields}
    return _ZERO_OF_KIND.get(kind, 0)


def _field(row: list[Any]) -> Field:
    name, kind, versions, facts = row if len(row) == 4 else [*row, {}]
    is_array = kind.startswith("[]")
    kind = kind.removeprefix("[]")
    fields = tuple(_field(inner) for inner in facts.get("fields", ()))
    kind = "struct" if fields else kind
    return Field(
        key=snake_case(name),
        kind=kind,
        is_array=is_array,
        versions=Versions.parse(versions),
        nullable=Versions.parse(facts.get("nullable")),
        tag=facts.get("tag"),
        ignorable=facts.get("ignorable", False),
        default=_default(kind, is_array, facts, fields),
        fields=fields,
        never_flexible=facts.get("flexible") == "none",
    )


def _message(row: dict[str, Any]) -> Message:
    return Message(
        name=row["name"],
        kind=row["kind"],
        api_key=row.get("api_key"),
        versions=Versions.parse(row["versions"]),
        flexible=Versions.parse(row["flexible"]),
        latest_unstable=row.get("latest_unstable", False),
        fields=tuple(_field(field) for field in row["fields"]),
    )


class _Release(Mapping[str, Message]):
    """The messages of one release. Each is made when it is read: all of them take a tenth of a broker's start."""

    def __init__(self, kafka: str) -> None:
        table = resources.files("kafka_wire") / "tables" / f"messages-{kafka}.jsonl"
        self._rows = {row["name"]: row for row in map(json.loads, table.read_text("utf-8").splitlines())}

    def __getitem__(self, name: str) -> Message:
        return _message(self._rows[name])

    def __iter__(self) -> Iterator[str]:
        return iter(self._rows)

    def __len__(self) -> int:
        return len(self._rows)


@cache
def release_messages(kafka: str) -> Mapping[str, Message]:
    """Return all messages of one Kafka release of RELEASES, by name."""
    return _Release(kafka)


def _with_fields_of(own: tuple[Field, ...], other: tuple[Field, ...], served: Versions) -> tuple[Field, ...]:
    """Add the fields of the other release as absent, so that decoded bodies of all versions contain their defaults.

    A field that the other release has in a version of `served` is excluded: it has another name here.
    """
    others = {field.key: field for field in other}
    known = {field.key for field in own}
    merged = [
        replace(field, fields=_with_fields_of(field.fields, others[field.key].fields, served))
        if field.fields and field.key in others
        else field
        for field in own
    ]
    added = (field for field in other if field.key not in known and not field.versions.overlaps(served))
    return (*merged, *(replace(field, versions=NO_VERSIONS) for field in added))


@cache
def definitions(name: str) -> tuple[Message, ...]:
    """Return the definitions of a message, newest first, without the versions that a newer one defines.

    Raises CodecError for an unknown name.
    """
    found = [message for messages in map(release_messages, RELEASES) if (message := messages.get(name)) is not None]
    if not found:
        raise CodecError("no such message in the schema tables", message=name)
    served: list[Message] = []
    for message in found:
        # Releases drop versions only at the low end (tested), so the versions below the newer ones are a range.
        highest = min([message.versions.highest, *(newer.versions.lowest - 1 for newer in served)])
        if message.versions.lowest <= highest:
            served.append(replace(message, versions=Versions(message.versions.lowest, highest)))
    if len(served) == 1:
        return tuple(served)
    newer, older = served
    return (
        replace(newer, fields=_with_fields_of(newer.fields, older.fields, newer.versions)),
        replace(older, fields=_with_fields_of(older.fields, newer.fields, older.versions)),
    )


@cache
def definition(name: str, version: int) -> Message:
    """Return the definition of one version; raises CodecError for an unknown version."""
    for message in definitions(name):
        if version in message.versions:
            return message
    lowest, highest = known_versions(name)
    raise CodecError(f"unknown version: {lowest} to {highest} are known", message=name, version=version)


def known_versions(name: str) -> Versions:
    """Return the range of known versions of a message."""
    served = definitions(name)
    return Versions(served[-1].versions.lowest, served[0].versions.highest)


@cache
def names() -> tuple[str, ...]:
    """Return the names of all known messages, sorted."""
    return tuple(sorted({name for kafka in RELEASES for name in release_messages(kafka)}))

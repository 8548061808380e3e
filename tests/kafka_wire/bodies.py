"""Hypothesis strategies for the bodies of any message, generated from its schema, and their expected decoded form.

Bodies need not be meaningful: a codec must support every value that the types allow.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from kafka_wire import schema
from kafka_wire.plain_decoder import fresh_default
from kafka_wire.schema import Field
from tests.cases import case
from tests.effort import examples

Body = dict[str, Any]

BODIES = 2
"""Bodies for each version of each message in a normal run; the first one is empty."""

LONGEST_ARRAY = 2
LONGEST_TEXT = 5

INTEGERS = {"int8": 8, "int16": 16, "int32": 32, "int64": 64}
UNSIGNED = {"uint16": 16, "uint32": 32}
OTHERS: dict[str, st.SearchStrategy[Any]] = {
    "bool": st.booleans(),
    "float64": st.floats(allow_nan=False),
    "string": st.text(max_size=LONGEST_TEXT),
    "uuid": st.uuids(),
    "bytes": st.binary(max_size=LONGEST_TEXT),
    "records": st.binary(max_size=LONGEST_TEXT),
}

UNLIMITED = 2**62
"""Units of a bounded decoder that no message of a test exceeds."""


def messages_of_apis() -> dict[str, list[str]]:
    """Return the messages of each API (its request and its response), by the API's name; a record is listed separately."""
    found: dict[str, list[str]] = {}
    for name in schema.names():
        found.setdefault(name.removesuffix("Request").removesuffix("Response"), []).append(name)
    return found


def versions_of(name: str) -> range:
    """Return the versions of one message."""
    return schema.known_versions(name).all()


@dataclass(frozen=True)
class Bodies:
    """Strategies for the bodies of one version; `special` replaces the values of some fields, by their keys."""

    version: int
    special: Mapping[str, st.SearchStrategy[Any]] = field(default_factory=dict)

    def structs(self, fields: tuple[Field, ...]) -> st.SearchStrategy[Body]:
        """Return bodies in which fields with a valid default may be missing."""
        values = {field.key: self.values(field) for field in fields if self.version in field.versions}
        # Records default to null, even in versions in which it is invalid.
        needed = {field.key for field in fields if field.kind == "records" and self.version not in field.nullable}
        return st.fixed_dictionaries(
            {key: value for key, value in values.items() if key in needed},
            optional={key: value for key, value in values.items() if key not in needed},
        )

    def values(self, field: Field) -> st.SearchStrategy[Any]:
        """Return values of a field."""
        if field.key in self.special:
            return self.special[field.key]
        single = self.single(field)
        values = st.lists(single, max_size=LONGEST_ARRAY) if field.is_array else single
        return st.none() | values if self.version in field.nullable else values

    def single(self, field: Field) -> st.SearchStrategy[Any]:
        """Return values of a field, or elements of an array, that are not null."""
        if field.kind == "struct":
            return self.structs(field.fields)
        if field.kind in INTEGERS:
            bits = INTEGERS[field.kind] - 1
            return st.integers(-(1 << bits), (1 << bits) - 1)
        if field.kind in UNSIGNED:
            return st.integers(0, (1 << UNSIGNED[field.kind]) - 1)
        return OTHERS[field.kind]


@cache
def bodies(name: str, version: int) -> st.SearchStrategy[Body]:
    """Return bodies of one version of a message."""
    return Bodies(version).structs(schema.definition(name, version).fields)


def for_bodies(
    name: str,
    version: int,
    check: Callable[[str, int, Body], None],
    strategy: st.SearchStrategy[Body] | None = None,
) -> None:
    """Run `check(name, version, body)` on some bodies of one version, or of a given strategy."""

    @examples(BODIES)
    @given(bodies(name, version) if strategy is None else strategy)
    def hold(body: Body) -> None:
        check(name, version, body)

    with case(name, version):
        hold()


def complete(fields: tuple[Field, ...], version: int, body: Body) -> Body:
    """Return the decoded form of a body: every field of the schema, with defaults for missing keys."""
    return {field.key: _complete_value(field, version, body) for field in fields}


def _complete_value(field: Field, version: int, body: Body) -> Any:
    value = body.get(field.key)
    if field.key not in body:
        return fresh_default(field)
    if field.kind != "struct" or value is None:
        return value
    if field.is_array:
        return [complete(field.fields, version, element) for element in value]
    return complete(field.fields, version, value)

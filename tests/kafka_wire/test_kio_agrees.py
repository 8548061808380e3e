"""kio 0.6.2, an independent codec, reads every version that it has of what we write, sees the same, and writes the same bytes.

It is the last release with the requests that a ZooKeeper-mode controller sends to brokers.
"""

import dataclasses
import datetime as dt
import enum
import io
import uuid
from collections.abc import Iterator
from functools import partial
from typing import Any

import pytest
from hypothesis import strategies as st
from kio.index import load_request_schema, load_response_schema
from kio.schema.errors import ErrorCode as KioErrorCode
from kio.schema.index import api_key_map, schema_name_map
from kio.serial import entity_reader, entity_writer
from kio.static.constants import EntityType

from kafka_wire import codec, schema
from kafka_wire.api import ApiKey
from tests.kafka_wire.bodies import Bodies, Body, for_bodies

KINDS = {"Request": EntityType.request, "Response": EntityType.response}
LOAD = {"Request": load_request_schema, "Response": load_response_schema}

MESSAGES = [(ApiKey(key), kind) for key in sorted(api_key_map) for kind in KINDS]

# What kio turns into richer types carries fewer values than the wire does.
TYPES: dict[str, st.SearchStrategy[Any]] = {
    "error_code": st.sampled_from([int(code) for code in KioErrorCode]),
    "datetime_i64": st.integers(0, 4_000_000_000_000),
    "timedelta_i64": st.integers(0, 4_000_000_000_000),
}


RENAMED = {
    "candidateepoch": "replicaepoch",
    "candidateid": "replicaid",
    "candidatedirectoryid": "replicadirectoryid",
    "clientmetricsresources": "configresources",
    "name": "resourcename",
}
"""Fields of Vote and of ListConfigResources (then ListClientMetricsResources), which Kafka 4 calls otherwise."""

CHANGED_WHILE_UNSTABLE = {("ReadShareGroupStateSummaryResponse", 0)}
"""Kafka 4 gave these versions other bytes: no release before it had them switched on (latestVersionUnstable)."""


@pytest.mark.parametrize(("key", "kind"), MESSAGES)
def test_kio_reads_the_same_fields_and_writes_the_same_bytes(key: ApiKey, kind: str) -> None:
    """All of kio's versions are ours too."""
    name = key.message + kind
    versions = sorted(version for version, kinds in schema_name_map[api_key_map[key]].items() if KINDS[kind] in kinds)

    for version in versions:
        if (name, version) in CHANGED_WHILE_UNSTABLE:
            continue
        entity = LOAD[kind](key, version)
        special = {plain(name): TYPES[kind] for name, kind in special_fields(entity)}
        fields = schema.definition(name, version).fields
        by_key = {one: special[plain(one)] for one in all_keys(fields) if plain(one) in special}
        for_bodies(name, version, partial(kio_agrees, entity), Bodies(version, by_key).structs(fields))


def kio_agrees(entity: Any, name: str, version: int, body: Body) -> None:
    """Let kio read what we write of a body."""
    encoded = codec.encode(name, version, body)
    seen, consumed = entity_reader(entity)(encoded, 0)
    written = io.BytesIO()
    entity_writer(entity)(written, seen)

    assert len(encoded) == consumed
    assert encoded == written.getvalue()
    assert_same(seen, codec.decode(name, version, encoded))


def assert_same(seen: Any, ours: Any) -> None:
    """Compare what kio saw with what we decoded."""
    if dataclasses.is_dataclass(seen):
        ours = {plain(key): value for key, value in ours.items()}
        for field in dataclasses.fields(seen):
            name = plain(field.name)
            assert_same(getattr(seen, field.name), ours[name if name in ours else RENAMED[name]])
    elif isinstance(seen, tuple):
        assert len(ours) == len(seen)
        for theirs, mine in zip(seen, ours, strict=True):
            assert_same(theirs, mine)
    else:
        assert seen == as_kio(ours, seen)


def as_kio(ours: Any, seen: Any) -> Any:
    """Return a value of ours in the type that kio has for it."""
    if seen is None and ours in (uuid.UUID(int=0), -1):
        return None  # no uuid, no time
    if isinstance(seen, dt.timedelta):
        return dt.timedelta(milliseconds=ours)
    if isinstance(seen, dt.datetime):
        return dt.datetime.fromtimestamp(ours / 1000, dt.UTC)
    if isinstance(seen, enum.Enum):
        return type(seen)(ours)
    return ours


def plain(key: str) -> str:
    """Return a name as both codecs could spell it; kio has `is_k_raft_controller`, `type_`, `throttle_time` without its unit."""
    return key.removesuffix("_ms").replace("_", "")


def special_fields(entity: Any) -> Iterator[tuple[str, str]]:
    """Yield the name and type of each field, at any depth, to which kio gives a type of TYPES."""
    for field in dataclasses.fields(entity):
        kind = field.metadata.get("kafka_type")
        if kind in TYPES:
            yield field.name, kind
        for inner in inner_entities(field.type):
            yield from special_fields(inner)


def inner_entities(annotation: Any) -> Iterator[Any]:
    """Yield the dataclasses in an annotation such as `tuple[Topic, ...] | None`."""
    if dataclasses.is_dataclass(annotation):
        yield annotation
    for one in getattr(annotation, "__args__", ()):
        yield from inner_entities(one)


def all_keys(fields: tuple[schema.Field, ...]) -> Iterator[str]:
    """Yield the keys of fields at any depth."""
    for field in fields:
        yield field.key
        yield from all_keys(field.fields)

"""Kafka's Java code reads every version of every encoded message, returns the same fields, and writes the same bytes.

Both releases are checked, so versions that both have are verified to have the same bytes in each.
"""

import base64
import math
import uuid
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import cache
from typing import Any

import pytest

from kafka_wire import codec, schema
from kafka_wire.names import snake_case
from kafka_wire.schema import Field
from tests.cases import case
from tests.kafka_wire.bodies import Body, for_bodies, messages_of_apis
from tests.kafka_wire.judge import Judge

pytestmark = pytest.mark.java

RENAMED = {
    "candidate_epoch": "replica_epoch",
    "candidate_id": "replica_id",
    "candidate_directory_id": "replica_directory_id",
}
"""VoteRequest's fields in 3.9.2 and, since pre-votes (KIP-996), in 4.3.1: the only message with renamed fields."""

CHANGED_WHILE_UNSTABLE = {("3.9.2", "ReadShareGroupStateSummaryResponse", 0)}
"""Kafka 4.3 changed the bytes of these versions, which were not enabled in 3.9 (latestVersionUnstable of their requests)."""


@pytest.fixture(scope="module")
def judge_of() -> Iterator[Callable[[str], Judge]]:
    """One JVM for each release, started at its first use."""
    with ExitStack() as running:
        yield cache(lambda kafka: running.enter_context(Judge(kafka)))


@pytest.mark.parametrize("api", messages_of_apis())
def test_java_reads_the_same_fields_and_writes_the_same_bytes(judge_of: Callable[[str], Judge], api: str) -> None:
    """Every version of a release, including those for which the codec uses the other release's definition."""
    for kafka in schema.RELEASES:
        for name in messages_of_apis()[api]:
            if name in schema.release_messages(kafka):
                with case("Kafka", kafka):
                    check_message(judge_of, kafka, name)


def check_message(judge_of: Callable[[str], Judge], kafka: str, name: str) -> None:
    """Read and write every version of a message in the Java code of one release."""
    definition = schema.release_messages(kafka)[name]

    def judged(name: str, version: int, body: Body) -> None:
        encoded = codec.encode(name, version, body)
        verdict = judge_of(kafka).ask(name, version, encoded)

        assert encoded == verdict.written
        assert_same_fields(definition.fields, verdict.seen, codec.decode(name, version, encoded))

    for version in definition.versions.all():
        if (kafka, name, version) not in CHANGED_WHILE_UNSTABLE:
            for_bodies(name, version, judged)


def assert_same_fields(fields: tuple[Field, ...], seen: dict[str, Any], decoded: Body) -> None:
    """Compare the fields from Java, which omits those with default values, with the decoded body."""
    by_key = {field.key: field for field in fields}
    for name, value in seen.items():
        field = by_key[snake_case(name)]
        own = decoded[RENAMED.get(field.key, field.key) if field.key not in decoded else field.key]
        if field.is_array and value is not None:
            assert len(value) == len(own), name
            for theirs, mine in zip(value, own, strict=True):
                assert_same_value(field, theirs, mine)
        else:
            assert_same_value(field, value, own)


def assert_same_value(field: Field, seen: Any, own: Any) -> None:
    """Compare one value, or one element of an array. Java's JSON converter omits records."""
    if field.kind == "struct" and seen is not None:
        assert_same_fields(field.fields, seen, own)
    elif field.kind != "records":
        assert seen == as_json(own), field.key


def as_json(value: Any) -> Any:
    """Return a value as Java's converters write it."""
    if isinstance(value, uuid.UUID):
        return base64.urlsafe_b64encode(value.bytes).decode().rstrip("=")
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    if isinstance(value, float) and math.isinf(value):
        return "Infinity" if value > 0 else "-Infinity"
    return value

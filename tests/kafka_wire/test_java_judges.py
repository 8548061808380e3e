"""Kafka's own Java code reads every version of every message that we write, sees the same fields, and writes the same bytes.

Both generations are asked, so the versions that both have are shown to be the same bytes to each.
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
"""VoteRequest's fields in 3.9.2 and, since pre-votes (KIP-996), in 4.3.1: the one message whose fields went by other names."""

CHANGED_WHILE_UNSTABLE = {("3.9.2", "ReadShareGroupStateSummaryResponse", 0)}
"""Kafka 4.3 gave these versions other bytes: in 3.9 they were not switched on (latestVersionUnstable of their requests)."""


@pytest.fixture(scope="module")
def judge_of() -> Iterator[Callable[[str], Judge]]:
    """One JVM for each generation, started when it is first asked."""
    with ExitStack() as running:
        yield cache(lambda kafka: running.enter_context(Judge(kafka)))


@pytest.mark.parametrize("api", messages_of_apis())
def test_java_reads_the_same_fields_and_writes_the_same_bytes(judge_of: Callable[[str], Judge], api: str) -> None:
    """Every version that a generation knows, also where another generation's definition serves it here."""
    for kafka in schema.GENERATIONS:
        for name in messages_of_apis()[api]:
            if name in schema.generation(kafka):
                with case("Kafka", kafka):
                    judge_message(judge_of, kafka, name)


def judge_message(judge_of: Callable[[str], Judge], kafka: str, name: str) -> None:
    """Let one generation's Java read and write every version that it has of a message."""
    definition = schema.generation(kafka)[name]

    def judged(name: str, version: int, body: Body) -> None:
        encoded = codec.encode(name, version, body)
        verdict = judge_of(kafka).ask(name, version, encoded)

        assert encoded == verdict.written
        assert_same_fields(definition.fields, verdict.seen, codec.decode(name, version, encoded))

    for version in definition.versions.all():
        if (kafka, name, version) not in CHANGED_WHILE_UNSTABLE:
            for_bodies(name, version, judged)


def assert_same_fields(fields: tuple[Field, ...], seen: dict[str, Any], decoded: Body) -> None:
    """Compare what Java saw, which leaves out fields at their defaults, with what we decoded."""
    by_key = {field.key: field for field in fields}
    for name, value in seen.items():
        field = by_key[snake_case(name)]
        ours = decoded[RENAMED.get(field.key, field.key) if field.key not in decoded else field.key]
        if field.is_array and value is not None:
            assert len(value) == len(ours), name
            for theirs, mine in zip(value, ours, strict=True):
                assert_same_value(field, theirs, mine)
        else:
            assert_same_value(field, value, ours)


def assert_same_value(field: Field, seen: Any, ours: Any) -> None:
    """Compare one value, or one element of an array. Of records the converter to JSON shows nothing."""
    if field.kind == "struct" and seen is not None:
        assert_same_fields(field.fields, seen, ours)
    elif field.kind != "records":
        assert seen == as_json(ours), field.key


def as_json(value: Any) -> Any:
    """Return a value as Java's converters write it."""
    if isinstance(value, uuid.UUID):
        return base64.urlsafe_b64encode(value.bytes).decode().rstrip("=")
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    if isinstance(value, float) and math.isinf(value):
        return "Infinity" if value > 0 else "-Infinity"
    return value

"""Refusals compared with those of Kafka 3.9.2 (AbstractRequest.getErrorResponse), in every version that it supports."""

import base64
import subprocess
from pathlib import Path
from typing import Any

import pytest

from kafka_node.authorization.refusal import refusal
from kafka_wire import ApiKey, Body, codec, schema
from lab.peers.java_process import java_command
from tests.cases import case
from tests.kafka_node.authorization.samples import by_name, sample, versions_of
from tests.kafka_node.authorization.test_refusal import JUDGED, NO, codes

pytestmark = pytest.mark.java

JUDGING_TIMEOUT_S = 100
IDENTITIES = {
    "name", "topic", "topic_name", "topic_id", "partition_index", "index", "partition", "group_id", "key", "user",
    "resource_type", "resource_name", "transactional_id", "entity_type", "entity_name",
}  # fmt: skip


def _significant(value: Any) -> list[Any]:
    """List what matters to a client: refused elements and their error codes, in order and depth."""
    if isinstance(value, dict):
        return [
            (key, _significant(element) if isinstance(element, dict | list) else element)
            for key, element in sorted(value.items())
            if (
                key in IDENTITIES or key.endswith("error_code") or (isinstance(element, dict | list) and codes(element))
            )
        ]
    return [_significant(element) for element in value]


def _cases() -> dict[ApiKey, list[int]]:
    known = schema.release_messages("3.9.2")
    return {
        key: [version for version in versions_of(key) if version in known[key.message + "Request"].versions]
        for key in JUDGED
        # Kafka reads records before it refuses them; the sample has none.
        if key is not ApiKey.PRODUCE and key.message + "Request" in known
    }


@pytest.fixture(scope="module")
def judged() -> dict[tuple[ApiKey, int], Body | None]:
    """Kafka's refusals, from one run of one JVM."""
    cases = [(key, version) for key, versions in _cases().items() for version in versions]
    lines = ""
    for key, version in cases:
        body = codec.encode(key.message + "Request", version, sample(key, version))
        lines += f"{int(key)} {version} {int(NO.code)} {base64.b64encode(body).decode()}\n"
    source = str(Path(__file__).parent / "RefusalJudge.java")
    command = java_command(source, heap="128m", log4j="log4j-tools.properties")
    done = subprocess.run(command, input=lines.encode(), check=True, capture_output=True, timeout=JUDGING_TIMEOUT_S)
    answers = done.stdout.decode().splitlines()
    return {
        (key, version): codec.decode(key.message + "Response", version, base64.b64decode(line)) if line else None
        for (key, version), line in zip(cases, answers, strict=True)
    }


@pytest.mark.parametrize("key", _cases(), ids=by_name)
def test_refusal_equals_that_of_kafka(key: ApiKey, judged: dict[tuple[ApiKey, int], Body | None]) -> None:
    """The same elements have the same codes. A code at the top is enough: Kafka sometimes repeats it in the elements."""
    for version in _cases()[key]:
        with case(key.message, version):
            _compare(key, version, judged[key, version])


def _compare(key: ApiKey, version: int, expected: Body | None) -> None:
    name = key.message + "Response"
    actual = codec.decode(name, version, codec.encode(name, version, refusal(key, version, sample(key, version), NO)))
    assert expected is not None
    if actual.get("error_code"):
        assert actual["error_code"] == expected["error_code"]
    else:
        assert _significant(actual) == _significant(expected)

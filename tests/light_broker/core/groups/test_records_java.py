"""Kafka's group coordinator reads the records, and writes the same bytes."""

import base64
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lab.peers.kraft import kafka_4_command
from light_broker.core.groups.records import GroupRecord, OffsetRecord, encode_record
from tests.effort import examples
from tests.light_broker.core.groups.test_records import RECORDS

pytestmark = pytest.mark.java

JUDGE = Path(__file__).with_name("GroupRecordJudge.java")


def test_kafka_writes_the_same_bytes() -> None:
    """GroupCoordinatorRecordSerde of Kafka 4.3.1: keys with their types, values with their versions."""
    records: list[GroupRecord | OffsetRecord] = []

    @examples(100)
    @given(st.lists(RECORDS, max_size=4))
    def collect(some: list[GroupRecord | OffsetRecord]) -> None:
        records.extend(some)

    collect()
    lines = [_line(*encode_record(record)) for record in records]
    done = subprocess.run(
        kafka_4_command(str(JUDGE), log4j="log4j-tools.properties"),
        input="\n".join(lines),
        capture_output=True,
        text=True,
        check=True,
        timeout=100,
    )

    assert done.stdout.splitlines() == lines
    assert lines


def _line(key: bytes, value: bytes | None) -> str:
    return f"{base64.b64encode(key).decode()} {'-' if value is None else base64.b64encode(value).decode()}"

"""The page of metadata records has the types, keys, versions and metadata versions of the code."""

from __future__ import annotations

import re
from pathlib import Path

from kafka_metadata.metadata_versions import MINIMUM_VERSION, SINCE, record_version
from kafka_metadata.records import RECORD_CLASSES
from kafka_wire import schema
from tests.kafka_metadata.test_snapshot import ORDER

PAGE = Path(__file__).resolve().parents[2] / "docs" / "metadata-records.md"
_ROW = re.compile(r"^\| (\w+Record) \| (\d+) \| ([\d-]+) \| (\d+) \| .* \| (.*)\|$", re.MULTILINE)


def test_each_row_is_that_of_the_code() -> None:
    """Versions are those that are written between metadata versions 7 and 30."""
    expected = []
    for record_class in RECORD_CLASSES:
        name = record_class.__name__
        since = SINCE.get(name, MINIMUM_VERSION)
        lowest, highest = (record_version(name, level) for level in (since, 30))
        # Kafka writes the lowest version of a registration's change that has its fields.
        lowest = 0 if name == "BrokerRegistrationChangeRecord" else lowest
        versions = str(lowest) if lowest == highest else f"{lowest}-{highest}"
        key = schema.definition(name, 0).api_key
        expected.append((name, str(key), versions, str(since), record_class in ORDER))

    rows = [(*row[:4], row[4].startswith("yes")) for row in _ROW.findall(PAGE.read_text())]
    assert rows == expected

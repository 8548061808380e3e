"""Kafka's images, with which Steward's are compared: MetadataJudge.java, controlled over its standard input."""

from __future__ import annotations

import base64
from dataclasses import replace
from pathlib import Path

from kafka_metadata import records
from kafka_metadata.record_codec import decode_record, encode_record
from kafka_metadata.records import MetadataRecord
from tests.kafka_log.judge import JavaError, JavaProgram
from tests.kafka_metadata.record_values import metadata_version_of


class MetadataJudge(JavaProgram):
    """A running MetadataJudge.java."""

    def __init__(self) -> None:
        super().__init__(Path(__file__).with_name("MetadataJudge.java"))

    def read_log(self, batches: Path) -> list[MetadataRecord]:
        """Return the records of Kafka's image of a log, which is a file of batches."""
        return self._rewritten("log", batches)

    def read_snapshot(self, batches: Path) -> list[MetadataRecord]:
        """Return the records of Kafka's image of a snapshot."""
        return self._rewritten("snapshot", batches)

    def versions(self) -> dict[int, list[int]]:
        """Return versions of records by metadata version."""
        rows = [list(map(int, row.split(" "))) for row in self.exchange("versions").split(",")]
        return {level: found for level, *found in rows}

    def _rewritten(self, command: str, batches: Path) -> list[MetadataRecord]:
        answer = self.exchange(f"{command} {batches}")
        if answer.startswith("error "):
            raise JavaError(answer)
        values = [base64.b64decode(value) for value in answer.split(" ")]
        found = [decode_record(value, offset) for offset, value in enumerate(values)]
        metadata_version = metadata_version_of(found)
        assert [encode_record(record, metadata_version) for record in found] == values, "both write the same bytes"
        return found


def in_one_order(found: list[MetadataRecord]) -> list[MetadataRecord]:
    """Return records of a snapshot in an order that does not depend on hashes: those of Java's maps are arbitrary."""
    return sorted(
        map(_in_one_order, found), key=lambda record: (type(record).__name__, repr(record), record_key(record))
    )


def record_key(record: MetadataRecord) -> bytes:
    """Return what `repr` does not contain."""
    return record.salt if isinstance(record, records.UserScramCredentialRecord) else b""


def _in_one_order(record: MetadataRecord) -> MetadataRecord:
    if isinstance(record, records.RegisterBrokerRecord | records.RegisterControllerRecord):
        end_points = tuple(sorted(record.end_points, key=lambda point: point.name))
        return replace(record, end_points=end_points, features=tuple(sorted(record.features, key=lambda one: one.name)))
    if isinstance(record, records.ClientQuotaRecord):
        return replace(record, entity=tuple(sorted(record.entity, key=lambda part: part.entity_type)))
    return record

"""Bytes of the batches that a decision appends: the same records in the same order, whatever their form."""

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from controller_core.metadata.payloads import JOINED_RECORDS, MAX_RECORDS, Part, Payload, payloads
from kafka_metadata.record_codec import encode_record
from kafka_metadata.records import NoOpRecord
from kafka_wire import ErrorCode, Failure
from kafka_wire.columns.record_encoder import UUID as UUID_TYPE
from kafka_wire.columns.record_encoder import RecordColumns, encode_columns
from kafka_wire.records import decode_batches

NO_OP = encode_record(NoOpRecord(), 30)


def changes(count: int) -> RecordColumns:
    """Return changes of the partitions from 0 on."""
    ids = np.array([bytes(16)] * count, UUID_TYPE)
    return RecordColumns("PartitionChangeRecord", 2, ids, {"partition_id": np.arange(count, dtype=np.int32)})


def values_of(found: Sequence[Payload]) -> list[bytes | None]:
    """Return the values of all records."""
    return [record.value for payload in found for batch in decode_batches(payload.data) for record in batch.records]


def plain(parts: Sequence[Part]) -> list[bytes | None]:
    """Return the values of the records of all parts, one after another."""
    found: list[bytes | None] = []
    for part in parts:
        if not isinstance(part, RecordColumns):
            found += [NO_OP] * len(part)
        elif len(part):
            data = encode_columns(part, base_offset=0, timestamp_ms=0)
            found += [record.value for batch in decode_batches(data) for record in batch.records]
    return found


PARTS = st.lists(
    st.one_of(st.integers(0, 40).map(changes), st.integers(0, 40).map(lambda count: (NoOpRecord(),) * count))
)


@given(parts=PARTS, is_atomic=st.booleans())
def test_the_batches_have_the_records_of_all_parts_in_their_order(parts: list[Part], is_atomic: bool) -> None:
    """What is few is one batch, so that brokers see it at once."""
    found = payloads(parts, 30, 0, is_atomic=is_atomic)

    assert isinstance(found, list)
    assert values_of(found) == plain(parts)
    assert len(found) == (1 if any(map(len, parts)) else 0)


@pytest.mark.parametrize("count", [JOINED_RECORDS, MAX_RECORDS + 1])
def test_changes_of_many_partitions_are_batches_of_their_own(count: int) -> None:
    """The change of the broker's registration follows them (C17)."""
    parts: list[Part] = [changes(count), (NoOpRecord(),)]
    found = payloads(parts, 30, 0, is_atomic=False)

    assert isinstance(found, list)
    assert values_of(found) == plain(parts)
    assert [payload.record_count for payload in found] == [
        min(count, MAX_RECORDS),
        *([1] if count > MAX_RECORDS else []),
        1,
    ]


def test_an_atomic_decision_with_too_many_records_is_refused() -> None:
    """POLICY_VIOLATION, as Kafka's controller."""
    found = payloads([changes(MAX_RECORDS), (NoOpRecord(),)], 30, 0, is_atomic=True)

    assert isinstance(found, Failure)
    assert found.code is ErrorCode.POLICY_VIOLATION

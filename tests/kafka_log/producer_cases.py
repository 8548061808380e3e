"""Batches of idempotent and transactional producers, for tests that compare with Kafka's log."""

from __future__ import annotations

import struct
from collections.abc import Mapping
from typing import Any

from hypothesis import strategies as st

from kafka_log.format.producer_states import ProducerStates
from kafka_wire.records import ControlType, Record, encode_batch
from tests.kafka_log.judge import NOW_MS


def data(
    producer_id: int,
    sequence: int,
    *,
    offset: int = 0,
    epoch: int = 0,
    records: int = 1,
    transactional: bool = False,
    timestamp_ms: int = NOW_MS,
    leader_epoch: int = 0,
) -> bytes:
    """Encode a batch of data of a producer."""
    return encode_batch(
        [Record(offset + index, timestamp_ms + index, None, b"value") for index in range(records)],
        partition_leader_epoch=leader_epoch,
        producer_id=producer_id,
        producer_epoch=epoch,
        base_sequence=sequence,
        is_transactional=transactional,
    )


def marker(
    producer_id: int,
    *,
    abort: bool,
    offset: int = 0,
    epoch: int = 0,
    coordinator_epoch: int = 0,
    timestamp_ms: int = NOW_MS,
    leader_epoch: int = 0,
) -> bytes:
    """Encode the end of a transaction."""
    kind = ControlType.ABORT if abort else ControlType.COMMIT
    record = Record(offset, timestamp_ms, struct.pack(">hh", 0, kind), struct.pack(">hi", 0, coordinator_epoch))
    return encode_batch(
        [record],
        partition_leader_epoch=leader_epoch,
        producer_id=producer_id,
        producer_epoch=epoch,
        is_transactional=True,
        is_control=True,
    )


PRODUCER_IDS = st.integers(1, 3)
EPOCHS = st.sampled_from([0, 0, 0, 1, 2])
DATA = st.tuples(
    st.just("data"),
    PRODUCER_IDS,
    EPOCHS,
    st.sampled_from([0, 1, 1, 1, 1, 2]),
    st.integers(1, 3),
    st.booleans(),
    st.sampled_from(["CLIENT", "CLIENT", "COORDINATOR"]),
)
"""Producer, epoch, distance of the sequence number from that of its last batch's end (1 continues, 0 repeats the last batch), records, and whether
it is transactional."""
MARKERS = st.tuples(
    st.just("marker"), PRODUCER_IDS, EPOCHS, st.booleans(), st.sampled_from([0, 0, 1]), st.sampled_from([0, 0, 2])
)
"""Producer, epoch, whether it aborts, coordinator epoch, and transaction version."""


def leader_step(step: tuple[Any, ...], states: ProducerStates) -> tuple[bytes, str, int]:
    """Return the batch that a step appends, its origin and its transaction version. Batches are numbered from the state."""
    name, producer_id, epoch, *rest = step
    if name == "marker":
        abort, coordinator_epoch, version = rest
        return (
            marker(producer_id, abort=abort, epoch=epoch, coordinator_epoch=coordinator_epoch),
            "COORDINATOR",
            version,
        )
    distance, records, transactional, origin = rest
    entry = states.entries.get(producer_id)
    last = entry.batches[-1] if entry and entry.batches and entry.epoch == epoch else None
    if last is None:
        sequence = distance - 1 if distance else 0
    elif distance:
        sequence = last.last_sequence + distance
    else:
        sequence, records = last.first_sequence, last.offset_delta + 1
    return data(producer_id, max(sequence, 0), epoch=epoch, records=records, transactional=transactional), origin, 0


def described(states: ProducerStates) -> list[Mapping[str, object]]:
    """Return the producers as PartitionJudge.java describes them."""
    return [
        {
            "producer_id": entry.producer_id,
            "epoch": entry.epoch,
            "coordinator_epoch": entry.coordinator_epoch,
            "last_timestamp_ms": entry.last_timestamp_ms,
            "transaction_first_offset": entry.transaction_first_offset,
            "batches": [list(batch) for batch in entry.batches],
        }
        for _, entry in sorted(states.entries.items())
    ]

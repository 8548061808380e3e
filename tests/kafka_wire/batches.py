"""Strategies for record batches."""

from hypothesis import strategies as st

from kafka_wire.records import Record

LARGEST = {bits: (1 << (bits - 1)) - 1 for bits in (16, 32, 64)}

# Three gaps of this size still fit into the int32 of the batch's last offset delta.
LARGEST_GAP = 1000

HEADERS = st.lists(st.tuples(st.text(max_size=4), st.none() | st.binary(max_size=4)), max_size=2).map(tuple)


@st.composite
def records(draw: st.DrawFn) -> tuple[Record, ...]:
    """Return records of one batch: increasing offsets, with gaps as after compaction, and any timestamps."""
    offset = draw(st.integers(0, LARGEST[64] - 4 * LARGEST_GAP))
    made = []
    for _ in range(draw(st.integers(1, 3))):
        payload = st.none() | st.binary(max_size=8)
        made.append(Record(offset, draw(st.integers(0, LARGEST[64])), draw(payload), draw(payload), draw(HEADERS)))
        offset += draw(st.integers(1, LARGEST_GAP))
    return tuple(made)


PRODUCERS = st.fixed_dictionaries(
    {
        "producer_id": st.integers(0, LARGEST[64]),
        "producer_epoch": st.integers(0, LARGEST[16]),
        "base_sequence": st.integers(0, LARGEST[32]),
        "is_transactional": st.booleans(),
    }
)
"""Arguments of `encode_batch` for an idempotent producer."""

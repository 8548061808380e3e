"""Reading of a segment's batches in order, in chunks of whole batches."""

from collections.abc import Iterator

from kafka_log.files.segment import Segment
from kafka_log.format.batches import appendable_bytes, batch_at
from kafka_wire.records import HEADER_BYTES

_ANY_EPOCH = 2**31 - 1


def read_whole_batches(segment: Segment, position: int, end: int, chunk_bytes: int) -> Iterator[bytes]:
    """Yield the batches between two positions, about `chunk_bytes` at once; a larger batch is yielded separately."""
    while position < end:
        batch, _ = batch_at(segment.read(position, HEADER_BYTES), segment.base_offset)
        if batch is None:
            return
        data = segment.read(position, min(max(chunk_bytes, batch.size_bytes), end - position))
        whole = data[: appendable_bytes(data, _ANY_EPOCH)]
        yield whole
        position += len(whole)

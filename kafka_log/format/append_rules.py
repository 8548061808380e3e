"""Which batches a log takes. Source: Kafka's UnifiedLog.append and analyzeAndValidateRecords."""

from kafka_log.errors import InvalidAppendError
from kafka_log.format.batches import BadBatchError, Batch, read_batches, with_offsets
from kafka_log.format.roll import LogSettings


def validated_batches(
    data: bytes | memoryview,
    settings: LogSettings,
    *,
    start_offset: int,
    end_offset: int,
    verify_checksums: bool = True,
) -> list[Batch]:
    """Return the batches in `data` that continue a log. Raises InvalidAppendError."""
    try:
        batches = list(read_batches(data, verify_checksums=verify_checksums))
    except BadBatchError as error:
        raise _invalid(error) from None
    if not batches:
        raise InvalidAppendError("There is no batch to append.")
    if len(data) > settings.segment_bytes:
        raise InvalidAppendError(
            f"{len(data)} bytes of batches exceed the largest segment of {settings.segment_bytes} bytes."
        )
    expected = end_offset
    for batch in batches:
        if batch.base_offset != expected and (settings.contiguous or batch.base_offset < expected):
            raise InvalidAppendError(
                f"A batch starts at offset {batch.base_offset}, the next offset is {expected} (log start offset {start_offset})."
            )
        if batch.size_bytes > settings.max_batch_bytes:
            raise InvalidAppendError(
                f"A batch of {batch.size_bytes} bytes exceeds the largest of {settings.max_batch_bytes} bytes."
            )
        expected = batch.last_offset + 1
    return batches


def with_assigned_offsets(data: bytes, base_offset: int, leader_epoch: int) -> bytes:
    """Return the batches with offsets from `base_offset` on and with this epoch. Raises InvalidAppendError."""
    try:
        return with_offsets(data, base_offset, leader_epoch)
    except BadBatchError as error:
        raise _invalid(error) from None


def _invalid(error: BadBatchError) -> InvalidAppendError:
    return InvalidAppendError(f"The batch at position {error.position} is invalid: {error.reason}.")

"""Writes of a group coordinator to its partition's log.

Their appends start in the order of the calls. The result of a write comes when the high watermark has passed it. Source: Kafka's
CoordinatorRuntime.
"""

import asyncio
import logging
from collections.abc import Callable, Sequence

from kafka_log.format.producers import Origin
from kafka_wire import ErrorCode
from kafka_wire.failures import WireError
from kafka_wire.records import Record, encode_batch
from kafka_wire.topic_partition import TopicPartition
from light_broker.core.groups.records import CoordinatorRecord, encode_record
from light_broker.core.groups.shard import NO_OFFSET, Shard, TransactionEnd, Write
from light_broker.shell.replicas.manager import ReplicaManager

log = logging.getLogger(__name__)

WAITING_ANSWER = {
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_ENOUGH_REPLICAS: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.REQUEST_TIMED_OUT: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_LEADER_OR_FOLLOWER: ErrorCode.NOT_COORDINATOR,
    ErrorCode.KAFKA_STORAGE_ERROR: ErrorCode.NOT_COORDINATOR,
    ErrorCode.MESSAGE_TOO_LARGE: ErrorCode.UNKNOWN_SERVER_ERROR,
    ErrorCode.RECORD_LIST_TOO_LARGE: ErrorCode.UNKNOWN_SERVER_ERROR,
    ErrorCode.INVALID_FETCH_SIZE: ErrorCode.UNKNOWN_SERVER_ERROR,
}
"""Answers to clients when an append fails, which know nothing of the log (CoordinatorOperationExceptionHelper)."""


class GroupWrites:
    """The writes of one coordinator whose results are not known yet."""

    def __init__(
        self, partition: TopicPartition, replicas: ReplicaManager, shard: Shard, now_ms: Callable[[], int]
    ) -> None:
        """Begin without writes. `now_ms` returns the time of day."""
        self._partition = partition
        self._replicas = replicas
        self._shard = shard
        self._now_ms = now_ms
        self._outcomes: dict[Write, asyncio.Future[ErrorCode]] = {}
        """Results that are waited for, in the order of the log."""
        self._tasks: set[asyncio.Task[None]] = set()

    async def wait(self) -> None:
        """Return when the current writes have their results."""
        if self._outcomes:
            await asyncio.wait(self._outcomes.values())

    async def stored(self, records: Sequence[CoordinatorRecord]) -> ErrorCode:
        """Append records, and return the error for the client once they are replicated."""
        return answer_code(await asyncio.shield(self.write(records)))

    def write(self, records: Sequence[CoordinatorRecord]) -> asyncio.Future[ErrorCode]:
        """Append records as one batch; the result comes when readers see them, or with an error."""
        return self.append(self._shard.begin(records))

    def append(self, write: Write) -> asyncio.Future[ErrorCode]:
        """Append the records of a write that the shard has begun; the result comes as that of `write`."""
        outcome: asyncio.Future[ErrorCode] = asyncio.get_running_loop().create_future()
        self._outcomes[write] = outcome
        # Tasks start in the order in which they are created, and an append happens before its first wait.
        task = asyncio.create_task(self._replicate(write))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return outcome

    async def _replicate(self, write: Write) -> None:
        error, base_offset = ErrorCode.UNKNOWN_SERVER_ERROR, NO_OFFSET
        try:
            error, base_offset = await self._replicated(write)
        except WireError as failure:
            log.debug("Failed to encode records of a group", extra={"error": str(failure)})
        except Exception:
            log.exception("Failed to store records", extra={"partition": str(self._partition)})
        finally:
            if error:
                log.debug("Failed to store records", extra={"partition": str(self._partition), "error": error.name})
                self._report(write, error)
            self._report_applied(self._shard.finish(write, error, base_offset))

    async def _replicated(self, write: Write) -> tuple[ErrorCode, int]:
        """Append a batch, and return its error and the offset of its first record."""
        now_ms = self._now_ms()
        encoded = [encode_record(record) for record in write.records if not isinstance(record, TransactionEnd)]
        batch = encode_batch(
            [Record(index, now_ms, key, value) for index, (key, value) in enumerate(encoded)],
            compression=self._shard.settings.offsets_topic_compression,
        )
        results = await self._replicas.writes.append(
            {self._partition: batch},
            acks=-1,
            timeout_ms=self._shard.settings.offsets_commit_timeout_ms,
            origin=Origin.COORDINATOR,
            allow_internal=True,
        )
        result = results[self._partition]
        return result.error, result.base_offset

    def advance(self) -> None:
        """Note the high watermark, for records that were replicated after their append had timed out."""
        high_watermark = self._replicas.high_watermark(self._partition) if self._shard.pending else None
        if high_watermark is not None:
            self._report_applied(self._shard.advance(high_watermark))

    def _report_applied(self, writes: Sequence[Write]) -> None:
        for write in writes:
            self._report(write, ErrorCode.NONE)

    def _report(self, write: Write, error: ErrorCode) -> None:
        """Report the result of a write: success when readers see it, failure at once."""
        outcome = self._outcomes.pop(write, None)
        if outcome is not None and not outcome.done():
            outcome.set_result(error)


def answer_code(error: ErrorCode) -> ErrorCode:
    """Return the error for a client after an append."""
    return WAITING_ANSWER.get(error, error)

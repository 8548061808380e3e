"""Requests that wait in the purgatory for replicas, for records or for the deletion of records.

Each has the results that it is answered with, and a future that its coroutine awaits. Source: Kafka's DelayedProduce, DelayedFetch and
DelayedDeleteRecords.
"""

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import replace

from kafka_wire import ErrorCode
from kafka_wire.topic_partition import TopicPartition
from light_broker.core.replica_requests import AppendResult, DeletedRecords, FetchParams, FetchPartition


class Waiting:
    """A request whose coroutine awaits `done`, which is made when it has to wait."""

    done: asyncio.Future[None] | None = None

    def complete(self, *, expired: bool) -> None:
        """Wake the coroutine, unless it was cancelled."""
        if expired:
            self.expire()
        if self.done is not None and not self.done.done():
            self.done.set_result(None)

    def expire(self) -> None:
        """Note that the time is over."""


class DelayedProduce(Waiting):
    """A Produce request with acks=all: each appended partition waits until its high watermark has passed the batch."""

    def __init__(
        self,
        results: dict[TopicPartition, AppendResult],
        replication_error: Callable[[TopicPartition, int], ErrorCode | None],
    ) -> None:
        """Wait for the successful `results`, which are replaced as replicas reach them.

        `replication_error` returns the result of a partition's batch that ends at an offset, None while replicas lack it.
        """
        self.results = results
        self._replication_error = replication_error
        self._pending = {
            partition: result.last_offset + 1 for partition, result in results.items() if result.error is ErrorCode.NONE
        }
        for partition in self._pending:
            results[partition] = results[partition]._replace(error=ErrorCode.REQUEST_TIMED_OUT)

    def is_satisfied(self, key: TopicPartition | None) -> bool:
        """Examine one partition or all."""
        for partition in [key] if key is not None else list(self._pending):
            required = self._pending.get(partition)
            if required is None:
                continue
            error = self._replication_error(partition, required)
            if error is not None:
                del self._pending[partition]
                self.results[partition] = self.results[partition]._replace(error=error)
        return not self._pending


class DelayedFetch(Waiting):
    """A Fetch request that waits for records."""

    def __init__(
        self,
        params: FetchParams,
        partitions: Mapping[TopicPartition, FetchPartition],
        readable_bytes: Callable[[TopicPartition, FetchPartition, FetchParams], int | None],
    ) -> None:
        """Wait for `min_bytes` in all; `readable_bytes` returns what a partition gives, None if it ends the wait."""
        self._params = params
        self._partitions = partitions
        self._readable_bytes = readable_bytes
        self._sizes: dict[TopicPartition, int] = {}

    def is_satisfied(self, key: TopicPartition | None) -> bool:
        """Examine one partition or all."""
        for partition in [key] if key is not None else self._partitions:
            size = self._readable_bytes(partition, self._partitions[partition], self._params)
            if size is None:
                return True
            self._sizes[partition] = size
        return sum(self._sizes.values()) >= self._params.min_bytes


class DelayedDeleteRecords(Waiting):
    """A DeleteRecords request that waits until the logs of all live replicas start at the requested offsets."""

    def __init__(
        self,
        results: dict[TopicPartition, DeletedRecords],
        required: Mapping[TopicPartition, int],
        low_watermark: Callable[[TopicPartition], DeletedRecords],
    ) -> None:
        """Wait for the successful `results` whose low watermark is below the required offset."""
        self.results = results
        self._low_watermark = low_watermark
        self._pending = {
            partition: required[partition]
            for partition, result in results.items()
            if result.error is ErrorCode.NONE and result.low_watermark < required[partition]
        }

    def is_satisfied(self, key: TopicPartition | None) -> bool:
        """Examine one partition or all."""
        for partition in [key] if key is not None else list(self._pending):
            required = self._pending.get(partition)
            if required is None:
                continue
            now = self._low_watermark(partition)
            if now.error is not ErrorCode.NONE or now.low_watermark >= required:
                del self._pending[partition]
                self.results[partition] = now
        return not self._pending

    def expire(self) -> None:
        """Time out the partitions whose replicas have records below the offset."""
        for partition in self._pending:
            self.results[partition] = replace(self.results[partition], error=ErrorCode.REQUEST_TIMED_OUT)

"""Storage of samples in the samples topic: batches of messages, compressed with gzip, to the leaders of its partitions, with acks=all.

A batch whose response is lost is sent again: duplicates of a sample are harmless, as topic, partition and round identify it. So no
producer id is needed, which some users may not have the right to.
"""

import asyncio
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

from balance_analytics.model.sample_messages import HEADERS, MAX_VALUE_BYTES, SampleError, SampleMessage, encode
from balance_analytics.model.samples import Samples
from balance_analytics.sampling import samples_topic
from balance_analytics.sampling.partitioner import partition_of
from balance_analytics.sampling.samples_topic import SamplesTopic, SamplesTopicError
from balance_analytics.sampling.settings import MAX_DECODED_BYTES
from balance_analytics.sampling.sink import WriteFailed, Written
from kafka_wire import ApiKey, ErrorCode
from kafka_wire.compression import Compression
from kafka_wire.failures import WireError
from kafka_wire.net.client import RequestFailed
from kafka_wire.net.cluster import REQUEST_ATTEMPTS, ClusterClient
from kafka_wire.net.connection import body_decoder
from kafka_wire.records import Record, encode_batch

BATCH_BYTES = MAX_VALUE_BYTES
"""Limit of keys and values in a batch before compression, so that the batch is below the default of message.max.bytes."""
BATCHES_AT_ONCE = 4
"""Batches that are compressed or sent at the same time: at most four megabytes, and enough to keep two processors busy."""
COMPRESSORS = 2
"""Threads for compression, which takes most of the time; each needs some memory."""
ATTEMPTS = 5
"""For one batch: with the delays, long enough for the election of a leader."""
RETRY_DELAY_S = 0.5
ACKS_ALL = -1
VERSIONS = (3, 12)
"""Of Produce: record batches of format 2 since 3; since 13 topics have only ids."""


class TopicWriter:
    """Stores samples in a topic of the sampled cluster."""

    def __init__(self, client: ClusterClient, topic: SamplesTopic) -> None:
        self._client = client
        self._topic = topic
        self._leaders: list[int] = []
        self._compressors = ThreadPoolExecutor(COMPRESSORS, "compressor")

    async def open(self, *, deadline: float) -> None:
        """Create the topic if it does not exist, and check its settings. Raises WriteFailed."""
        try:
            await self._find_leaders(deadline)
            await samples_topic.check(self._client, self._topic, deadline=deadline)
        except (RequestFailed, SamplesTopicError) as error:
            raise WriteFailed(str(error)) from error

    async def write(self, samples: Samples, *, deadline: float) -> Written:
        """Write a sample. Raises WriteFailed; batches that were already written remain."""
        try:
            if not self._leaders:
                await self._find_leaders(deadline)
            return await self._write(samples, deadline)
        except (RequestFailed, SamplesTopicError) as error:
            raise WriteFailed(str(error)) from error
        except ExceptionGroup as errors:
            first = _first(errors)
            if isinstance(first, RequestFailed | SamplesTopicError | SampleError | WriteFailed):
                raise WriteFailed(str(first)) from errors
            raise

    async def _write(self, samples: Samples, deadline: float) -> Written:
        slots, tasks, pieces = asyncio.Semaphore(BATCHES_AT_ONCE), list[asyncio.Task[int]](), 0
        async with asyncio.TaskGroup() as group:
            for partition, messages in _batches(samples, len(self._leaders)):
                await slots.acquire()
                tasks.append(group.create_task(self._send(partition, messages, samples.round_ms, deadline)))
                tasks[-1].add_done_callback(lambda _: slots.release())
                pieces += len(messages)
        return Written(pieces, sum(task.result() for task in tasks))

    async def _send(self, partition: int, messages: list[SampleMessage], round_ms: int, deadline: float) -> int:
        """Send one batch, and return its size in bytes."""
        batch = await asyncio.get_running_loop().run_in_executor(self._compressors, _encode, messages, round_ms)
        failure = ""
        for attempt in range(ATTEMPTS):
            if attempt:
                await asyncio.sleep(RETRY_DELAY_S)
                await self._find_leaders(deadline)
            leader = self._leaders[partition] if partition < len(self._leaders) else -1
            broker = self._client.broker(leader)
            if broker is None:
                failure = f"partition {partition} of {self._topic.name} has no leader"
                continue
            try:
                body = await broker.request(
                    ApiKey.PRODUCE,
                    self._request(partition, batch, deadline),
                    body_decoder(ApiKey.PRODUCE, MAX_DECODED_BYTES),
                    deadline=deadline,
                    versions=VERSIONS,
                    attempts=REQUEST_ATTEMPTS,
                )
            except RequestFailed as error:
                failure = str(error)
                continue
            (response,) = [partition for topic in body["responses"] for partition in topic["partition_responses"]]
            code = ErrorCode.of(response["error_code"])
            if code is ErrorCode.NONE:
                return len(batch)
            failure = f"{broker.name} rejected samples for {self._topic.name}: {code.name}"
            if not code.retriable:
                break
        raise WriteFailed(failure)

    def _request(self, partition: int, batch: bytes, deadline: float) -> dict[str, object]:
        left_ms = max(1, int((deadline - asyncio.get_running_loop().time()) * 1000))
        data = [{"name": self._topic.name, "partition_data": [{"index": partition, "records": batch}]}]
        return {"transactional_id": None, "acks": ACKS_ALL, "timeout_ms": left_ms, "topic_data": data}

    async def _find_leaders(self, deadline: float) -> None:
        leaders = await samples_topic.leaders_of(self._client, self._topic, deadline=deadline)
        if leaders is None:
            await samples_topic.create(self._client, self._topic, deadline=deadline)
            while leaders is None or -1 in leaders:  # the brokers receive the new metadata a moment later
                await asyncio.sleep(RETRY_DELAY_S)
                leaders = await samples_topic.leaders_of(self._client, self._topic, deadline=deadline)
        self._leaders = leaders


def _batches(samples: Samples, partitions: int) -> Iterator[tuple[int, list[SampleMessage]]]:
    """Yield batches of at most BATCH_BYTES for one partition each, as they become full."""
    waiting: dict[int, list[SampleMessage]] = {}
    sizes: dict[int, int] = {}
    for message in encode(samples):
        partition = partition_of(message.key, partitions)
        size = len(message.key) + len(message.value)
        if waiting.get(partition) and sizes[partition] + size > BATCH_BYTES:
            yield partition, waiting.pop(partition)
        sizes[partition] = size + (sizes[partition] if waiting.get(partition) else 0)
        waiting.setdefault(partition, []).append(message)
    yield from waiting.items()


def _encode(messages: list[SampleMessage], round_ms: int) -> bytes:
    records = [Record(at, round_ms, message.key, message.value, HEADERS) for at, message in enumerate(messages)]
    try:
        return encode_batch(records, compression=Compression.GZIP)
    except WireError as error:
        raise WriteFailed(f"a batch cannot be encoded: {error}") from error


def _first(errors: ExceptionGroup) -> Exception:
    """Return one of the errors: the others usually have the same cause."""
    first: Exception = errors
    while isinstance(first, ExceptionGroup):
        first = first.exceptions[0]
    return first

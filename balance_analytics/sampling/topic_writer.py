"""Looks into the samples topic: batches of messages, gzipped, to the leaders of its partitions, with acks=all.

A batch that may have been written is sent again when its answer does not come: two copies of a sample are harmless, as a sample
is told apart by topic, partition and round. So no producer id is needed, which not every user may have.
Leaves out the messages' form (model.sample_messages) and the topic's (samples_topic).
"""

import asyncio
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

from balance_analytics.model.sample_messages import HEADERS, MAX_VALUE_BYTES, SampleError, SampleMessage, encode
from balance_analytics.model.samples import Samples
from balance_analytics.sampling import samples_topic
from balance_analytics.sampling.asking import AskFailed, decoded
from balance_analytics.sampling.cluster_link import ClusterLink
from balance_analytics.sampling.partitioner import partition_of
from balance_analytics.sampling.samples_topic import SamplesTopic, SamplesTopicError
from balance_analytics.sampling.sink import WriteFailed, Written
from kafka_wire.api import ApiKey
from kafka_wire.compression import Compression
from kafka_wire.errors import ErrorCode
from kafka_wire.failures import WireError
from kafka_wire.records import Record, encode_batch

BATCH_BYTES = MAX_VALUE_BYTES
"""Of keys and values before compression: with it, or without, a batch is below message.max.bytes' default."""
BATCHES_AT_ONCE = 4
"""Being packed or on their way: four megabytes at the most, and two processors are kept busy by it."""
PACKERS = 2
"""Threads that compress, which takes longest of all; each keeps some memory of its own."""
ATTEMPTS = 5
"""Of one batch: an election of its leader takes a second or two."""
RETRY_DELAY_S = 0.5
ACKS_ALL = -1
FIRST_VERSION, LAST_VERSION = 3, 12
"""Of Produce: record batches of format 2 since 3; since 13 topics have their ids alone."""


class TopicWriter:
    """Keeps looks in a topic of the cluster that they are of."""

    def __init__(self, link: ClusterLink, topic: SamplesTopic) -> None:
        self._link = link
        self._topic = topic
        self._leaders: list[int] = []
        self._packers = ThreadPoolExecutor(PACKERS, "packer")

    async def open(self, *, deadline: float) -> None:
        """Create the topic if it is not there, and check it if it is. Raises WriteFailed."""
        try:
            await self._find_leaders(deadline)
            await samples_topic.check(self._link, self._topic, deadline=deadline)
        except (AskFailed, SamplesTopicError) as why:
            raise WriteFailed(str(why)) from why

    async def write(self, samples: Samples, *, deadline: float) -> Written:
        """Write a look. Raises WriteFailed; batches that were written stay."""
        try:
            if not self._leaders:
                await self._find_leaders(deadline)
            return await self._write(samples, deadline)
        except (AskFailed, SamplesTopicError) as why:
            raise WriteFailed(str(why)) from why
        except ExceptionGroup as whys:
            first = _first(whys)
            if isinstance(first, AskFailed | SamplesTopicError | SampleError | WriteFailed):
                raise WriteFailed(str(first)) from whys
            raise

    async def _write(self, samples: Samples, deadline: float) -> Written:
        turns, tasks, pieces = asyncio.Semaphore(BATCHES_AT_ONCE), list[asyncio.Task[int]](), 0
        async with asyncio.TaskGroup() as group:
            for partition, messages in _batches(samples, len(self._leaders)):
                await turns.acquire()
                tasks.append(group.create_task(self._send(partition, messages, samples.round_ms, deadline)))
                tasks[-1].add_done_callback(lambda _: turns.release())
                pieces += len(messages)
        return Written(pieces, sum(task.result() for task in tasks))

    async def _send(self, partition: int, messages: list[SampleMessage], round_ms: int, deadline: float) -> int:
        """Write one batch; returns its bytes."""
        batch = await asyncio.get_running_loop().run_in_executor(self._packers, _packed, messages, round_ms)
        failure = ""
        for attempt in range(ATTEMPTS):
            if attempt:
                await asyncio.sleep(RETRY_DELAY_S)
                await self._find_leaders(deadline)
            leader = self._leaders[partition] if partition < len(self._leaders) else -1
            broker = self._link.broker(leader)
            if broker is None:
                failure = f"partition {partition} of {self._topic.name} has no leader"
                continue
            try:
                body = await broker.ask(
                    ApiKey.PRODUCE,
                    lambda _: self._request(partition, batch, deadline),
                    decoded(ApiKey.PRODUCE),
                    deadline=deadline,
                    lowest=FIRST_VERSION,
                    highest=LAST_VERSION,
                )
            except AskFailed as why:
                failure = str(why)
                continue
            (answer,) = [one for topic in body["responses"] for one in topic["partition_responses"]]
            error = ErrorCode.of(answer["error_code"])
            if error is ErrorCode.NONE:
                return len(batch)
            failure = f"{broker.name} took no samples for {self._topic.name}: {error.name}"
            if not error.retriable:
                break
        raise WriteFailed(failure)

    def _request(self, partition: int, batch: bytes, deadline: float) -> dict[str, object]:
        left_ms = max(1, int((deadline - asyncio.get_running_loop().time()) * 1000))
        data = [{"name": self._topic.name, "partition_data": [{"index": partition, "records": batch}]}]
        return {"transactional_id": None, "acks": ACKS_ALL, "timeout_ms": left_ms, "topic_data": data}

    async def _find_leaders(self, deadline: float) -> None:
        leaders = await samples_topic.leaders_of(self._link, self._topic, deadline=deadline)
        if leaders is None:
            await samples_topic.create(self._link, self._topic, deadline=deadline)
            while leaders is None or -1 in leaders:  # told to all brokers a moment later
                await asyncio.sleep(RETRY_DELAY_S)
                leaders = await samples_topic.leaders_of(self._link, self._topic, deadline=deadline)
        self._leaders = leaders


def _batches(samples: Samples, partitions: int) -> Iterator[tuple[int, list[SampleMessage]]]:
    """Yield batches, each of one partition and of BATCH_BYTES at the most, as they get full."""
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


def _packed(messages: list[SampleMessage], round_ms: int) -> bytes:
    records = [Record(at, round_ms, one.key, one.value, HEADERS) for at, one in enumerate(messages)]
    try:
        return encode_batch(records, compression=Compression.GZIP)
    except WireError as why:
        raise WriteFailed(f"a batch cannot be made: {why}") from why


def _first(whys: ExceptionGroup) -> Exception:
    """Return one of the failures: the others are most likely the same."""
    first: Exception = whys
    while isinstance(first, ExceptionGroup):
        first = first.exceptions[0]
    return first

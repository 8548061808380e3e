"""A broker with logs in a folder, and partitions that it leads or follows, for tests of the replica manager and its APIs."""

from collections.abc import AsyncIterator, Callable, Sized
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

from kafka_log.files.partition_settings import PartitionSettings
from kafka_node.authorization.guard import Guard
from kafka_node.configs.layered_settings import Settings
from kafka_wire.compression import Compression
from kafka_wire.file_slice import FileSlice
from kafka_wire.records import Record, encode_batch
from kafka_wire.topic_partition import TopicPartition
from light_broker.core.fetch_sessions import FetchSessions
from light_broker.core.groups.offsets_topic import OFFSETS_TOPIC
from light_broker.core.groups.settings import GroupSettings
from light_broker.core.log_jobs import LogManagerSettings
from light_broker.core.metadata_view import MetadataView, PartitionView, TopicView
from light_broker.core.partition import IsrRules
from light_broker.core.replica_requests import FetchParams, FetchPartition, ReadLimit, ReadResult
from light_broker.shell.broker import Broker
from light_broker.shell.groups.coordinators import GroupCoordinators
from light_broker.shell.logs.manager import LogManager
from light_broker.shell.producer_ids import ProducerIds
from light_broker.shell.replicas.manager import ReplicaManager
from tests.light_broker.fixed_control import CLUSTER_ID, FixedControl, partition_view, topic_view, view_of

NOW_MS = 1_700_000_000_000
ORDERS = TopicPartition("orders", 0)
REPLICATED = partition_view(replicas=(1, 2), isr=(1, 2), leader_epoch=5)
"""A partition that broker 1 leads, with broker 2 in sync."""


@asynccontextmanager
async def hosting(
    folder: Path,
    *topics: TopicView,
    brokers: tuple[int, ...] = (1, 2),
    rules: IsrRules | None = None,
    settings: PartitionSettings | None = None,
    guard: Guard | None = None,
    clock: Callable[[], float] = lambda: 1_000.0,
    wall_clock: Callable[[], float] = lambda: NOW_MS / 1000,
    groups: GroupSettings | None = None,
) -> AsyncIterator[Broker]:
    """Yield broker 1, which leads the partitions of `topics` that it is the leader of and follows the others.

    Without topics there is `orders` with one partition and one replica. Time is fixed unless `clock` moves it.
    """
    view = view_of(*(topics or (topic_view("orders"),)), brokers=brokers)
    control = FixedControl(view)
    current: list[Broker] = []
    logs = LogManager(
        [folder],
        LogManagerSettings(),
        cluster_id=CLUSTER_ID,
        node_id=1,
        partition_settings=lambda _: settings or PartitionSettings(),
        on_failed_directory=lambda failed: current[0].replicas.log_directory_failed(
            [TopicPartition(*partition) for partition in failed.partitions]
        ),
        high_watermarks=lambda: current[0].replicas.high_watermarks() if current else {},
        clock=lambda: NOW_MS / 1000,
    )
    replicas = ReplicaManager(
        1,
        logs,
        control,
        view=lambda: current[0].view,
        isr_rules=lambda _: rules or IsrRules(),
        clock=clock,
    )
    broker = Broker(
        settings=Settings(1),
        view=view,
        control=control,
        logs=logs,
        replicas=replicas,
        producer_ids=ProducerIds(control),
        fetch_sessions=FetchSessions(),
        groups=GroupCoordinators(
            replicas,
            groups or GroupSettings(initial_rebalance_delay_ms=0),
            view=lambda: current[0].view,
            clock=wall_clock,
        ),
        guard=guard,
    )
    current.append(broker)
    await logs.open_all()
    for topic in view.topics.values():
        for number, state in enumerate(topic.partitions):
            await take_role(broker, TopicPartition(topic.name, number), state)
    try:
        yield broker
    finally:
        await broker.groups.close()
        await broker.replicas.close()
        await logs.close()


async def take_role(broker: Broker, partition: TopicPartition, state: PartitionView) -> None:
    """Let the broker lead or follow a partition, with the view changed accordingly."""
    broker.view = with_state(broker.view, partition, state)
    topic_id = broker.view.topics[partition.topic].id
    call = broker.replicas.lead if state.leader == 1 else broker.replicas.follow
    await call(partition, topic_id, state)
    log = broker.replicas.hosted()[partition].log
    log._clock = log.log._clock = lambda: NOW_MS / 1000
    if partition.topic == OFFSETS_TOPIC and state.leader == 1:
        broker.groups.lead(partition.partition, state.leader_epoch)
    elif partition.topic == OFFSETS_TOPIC:
        broker.groups.resign(partition.partition)


def with_state(view: MetadataView, partition: TopicPartition, state: PartitionView) -> MetadataView:
    """Return a view with another state of a partition."""
    topic = view.topics[partition.topic]
    partitions = (*topic.partitions[: partition.partition], state, *topic.partitions[partition.partition + 1 :])
    return replace(view, topics={**view.topics, topic.name: replace(topic, partitions=partitions)})


def records(
    *values: str,
    timestamp_ms: int = NOW_MS,
    compression: Compression = Compression.NONE,
    producer_id: int = -1,
    producer_epoch: int = -1,
    base_sequence: int = -1,
    is_transactional: bool = False,
) -> bytes:
    """Return one batch as a client sends it."""
    return encode_batch(
        [
            Record(offset, timestamp_ms + offset, b"key", value.encode())
            for offset, value in enumerate(values or ("value",))
        ],
        compression=compression,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        base_sequence=base_sequence,
        is_transactional=is_transactional,
    )


async def follower_fetches(
    broker: Broker, offset: int, *, broker_id: int = 2, broker_epoch: int = 2, start: int = 0
) -> ReadResult:
    """Let a follower of `orders` fetch from an offset, which is the end of its log, and return what it gets."""
    params = FetchParams(broker_id, broker_epoch, max_bytes=1_000_000, limit=ReadLimit.LOG_END)
    request = FetchPartition(broker.view.topics["orders"].id, offset, 1_000_000, log_start_offset=start)
    return (await broker.replicas.reads.fetch(params, {ORDERS: request}))[ORDERS]


def bytes_of(records: Sized | None) -> bytes:
    """Return the bytes of what a fetch returns, which may be a slice of a file."""
    if isinstance(records, FileSlice):
        return records.read_blocking(records.length, records.offset)
    assert isinstance(records, bytes | memoryview | None), records
    return bytes(records or b"")
